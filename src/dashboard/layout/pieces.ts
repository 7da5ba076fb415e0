import { formatMicros, worthInMicros } from '../../control/policy/values.js';
import { amountField } from '../../base/fields.js';
import { formatAmount, formatDuration, formatTimeUtc, shorten } from '../../base/format.js';
import type { Payout } from '../../ledger/payout.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { NextStep } from '../../operator/next-steps.js';
import { Html, html, type HtmlValue } from './html.js';

export interface Shown {
  readonly currencies: readonly Currency[];
  readonly explorers: ReadonlyMap<number, string>;
  /** What it means that the gateway does not know an order id. */
  readonly lookUpEvidence?: string | undefined;
  readonly wallNow: number;
}

export function heading(title: Html | string, about: HtmlValue): Html {
  return html`<div class="heading">
    <h1>${title}</h1>
    <p class="quiet">${about}</p>
  </div>`;
}

/** Names and values. A row without a value is left out. */
export function dataList(
  rows: readonly (readonly [name: string, value: Html | string | number | undefined])[],
  className = 'data',
): Html {
  return html`<dl class="${className}">
    ${rows.flatMap(([name, value]) =>
      value === undefined
        ? []
        : [
            html`<div>
              <dt>${name}</dt>
              <dd>${value instanceof Html ? value : html`<bdi>${value}</bdi>`}</dd>
            </div>`,
          ],
    )}
  </dl>`;
}

/**
 * Links to other pages of a list.
 * @param before - what comes before the links
 */
export function pager(
  first: string | undefined,
  next: string | undefined,
  nextText: 'Older' | 'Next page',
  before: readonly Html[] = [],
): Html {
  return html`<nav class="more" aria-label="Pages">
    ${before} ${first !== undefined && html`<a href="${first}">First page</a>`}
    ${next !== undefined && html`<a href="${next}" rel="next">${nextText}</a>`}
  </nav>`;
}

/**
 * A table of one line a row; on a phone each row is a card, in which each cell has the title of its column.
 * @param titles - of the columns; `#` before the title of a column of numbers, `` for one of check boxes
 */
export function table(caption: string, titles: readonly string[], rows: readonly Html[]): Html {
  const heads = titles.map((title) =>
    title === ''
      ? html`<td class="pick"></td>`
      : title.startsWith('#')
        ? html`<th scope="col" class="number">${title.slice(1)}</th>`
        : html`<th scope="col">${title}</th>`,
  );
  return html`<div class="box" role="region" aria-label="${caption}" tabindex="0">
    <table>
      <thead>
        <tr>
          ${heads}
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) => titleCells(row, titles))}
      </tbody>
    </table>
  </div>`;
}

/** Every other `<` of a row is escaped, so that these begin its cells. */
function titleCells(row: Html, titles: readonly string[]): Html {
  let index = 0;
  return new Html(
    row.text.replace(/<t[dh](?=[\s>])/g, (cell) => {
      const title = (titles[index++] ?? '').replace('#', '');
      return title === '' ? cell : html`${new Html(cell)} data-title="${title}"`.text;
    }),
  );
}

/** @param content - an empty cell shows a dash */
export function tableCell(className: string, content: Html | string | number | undefined): Html {
  return html`<td class="${className}">${content ?? html`<span class="quiet" aria-hidden="true">–</span>`}</td>`;
}

/** A cell of free text, cut to one line; the whole is its title. */
export function textCell(text: string | undefined): Html {
  if (text === undefined) return tableCell('', undefined);
  return html`<td class="text" title="${text}"><bdi>${text}</bdi></td>`;
}

/** A time in UTC. The script adds the reader's local time, and can show that instead. */
export function utcTime(iso: string): Html {
  return html`<time class="utc" datetime="${iso}">${formatTimeUtc(iso)}</time>`;
}

/** As {@link utcTime}, for a text from Redis that may be no time. */
export function storedTime(text: string): Html {
  return Number.isNaN(Date.parse(text)) ? html`<bdi>${text}</bdi>` : utcTime(text);
}

/** Relative time, with the exact time as a tooltip. */
export function relativeTime(iso: string, wallNow: number): Html {
  const ms = wallNow - Date.parse(iso);
  const text = ms < 0 ? `in ${formatDuration(-ms)}` : formatDuration(ms);
  return html`<time datetime="${iso}" title="${formatTimeUtc(iso)}">${text}</time>`;
}

const CENT = 10_000n;

/**
 * The worth by the gateway's cached rate, for people: `≈ 2,500.00 USD`.
 * @returns undefined if the rate is unknown, or the amount was altered to an invalid one
 */
export function usdWorth(amount: string, paymentId: number, currencies: readonly Currency[]): string | undefined {
  const { usdRate } = currencies.find((known) => known.paymentId === paymentId) ?? {};
  const isUsable = amountField.safeParse(amount).success && amountField.safeParse(usdRate).success;
  if (!isUsable || usdRate === undefined) return undefined;
  const micros = worthInMicros(amount, usdRate);
  return `≈ ${formatAmount(formatMicros(((micros + CENT - 1n) / CENT) * CENT), 'USD')}`;
}

/** @param outline - a path within 16 × 16 */
export function icon(outline: string): Html {
  return html`<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
    <path d="${outline}" fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" />
  </svg>`;
}

const COPY = icon('M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z');

/**
 * A copy button, shown only if the script runs. The text itself is beside it.
 * @param what - names the text, such as `txhash of order:7`
 */
export function copyButton(text: string, what: string): Html {
  return html`<button type="button" class="copy" data-copy="${text}" aria-label="Copy ${what}" title="Copy ${what}">
    ${COPY}
  </button>`;
}

/** A command, or a block of several lines; one click selects all of it. */
export function commandLine(command: string): Html {
  const lines = command.split('\n').map((line, index) => {
    const words = line.split(' ').map((word, place) => html`${place === 0 ? '' : ' '}<span>${word}</span>`);
    return html`${index === 0 ? '' : '\n'}${words}`;
  });
  return html`<div class="command">
    <pre><code>${lines}</code></pre>
    ${copyButton(command, `the command ${command}`)}
  </div>`;
}

export function nextStepsSection(steps: readonly NextStep[]): Html | undefined {
  if (steps.length === 0) return undefined;
  const hasCommand = steps.some(({ command }) => command !== undefined);
  return html`<section class="card steps">
    <h2>What you can do</h2>
    ${hasCommand ? html`<p class="quiet">This page changes nothing. Run one of these; replace the words in capitals.</p>` : undefined}
    ${stepList(steps)}
  </section>`;
}

export function stepList(steps: readonly NextStep[]): Html {
  return html`<dl>
    ${steps.map(
      ({ when, command }) =>
        html`<div>
          <dt>${when}</dt>
          ${command !== undefined && html`<dd>${commandLine(command)}</dd>`}
        </div>`,
    )}
  </dl>`;
}

const ARROW = html`<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
  <path d="M6.5 3.5h-3v9h9v-3m-3-6h3v3m0-3-6 6" fill="none" stroke="currentColor" stroke-width="1.4" />
</svg>`;

export function txhashView(
  txhash: string,
  { payoutId, paymentId }: Pick<Payout, 'payoutId' | 'paymentId'>,
  explorers: Shown['explorers'],
  isShort = false,
): Html {
  const template = explorers.get(paymentId);
  const href = template?.replace('{txhash}', () => encodeURIComponent(txhash));
  const link =
    href === undefined
      ? undefined
      : html`<a
          class="explorer"
          href="${href}"
          target="_blank"
          rel="noopener noreferrer"
          aria-label="Block explorer: ${txhash}"
          title="Block explorer"
          >${ARROW}</a
        >`;
  const shown = isShort ? html`<span title="${txhash}">${shorten(txhash)}</span>` : html`${txhash}`;
  return html`<bdi class="mono">${shown}</bdi>${copyButton(txhash, `txhash of ${payoutId}`)} ${link}`;
}
