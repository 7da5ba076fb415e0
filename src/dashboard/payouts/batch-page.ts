import { fromUnits, toUnits } from '../../base/decimal.js';
import type { Payout } from '../../ledger/payout.js';
import { formatAmount, formatCount, formatMoney, formatState } from '../../base/format.js';
import type { AccountStats } from '../../ledger/reads/account-stats.js';
import {
  type Batch,
  type BatchMessage,
  type BatchSummary,
  progressOf,
  type UncountedBatch,
} from '../../ledger/reads/batches.js';
import { type AccountStatistics, type CurrencySum, estimateEnd } from '../../ledger/reads/statistics.js';
import { PAYOUT_STATES, type PayoutState, STATE_MEANING } from '../../ledger/states.js';
import { batchSteps } from '../../operator/next-steps.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { batchPath, payoutTable, stateBadge } from '../layout/payout-table.js';
import {
  dataList,
  heading,
  nextStepsSection,
  type Shown,
  table,
  tableCell,
  textCell,
  utcTime,
} from '../layout/pieces.js';
import { formatEnd } from '../overview/figures.js';
import { csvPath, listPath } from './list-query.js';

/** What tells when a batch will be sent. */
interface Pace {
  readonly stats: AccountStats;
  readonly statistics: AccountStatistics;
}

const REFRESH_MS = 2_000;

interface BatchView extends Pace {
  readonly summary: BatchSummary;
  readonly urgent: readonly Payout[];
}

export function batchPage(site: Site, { summary, urgent, ...pace }: BatchView, shown: Shown): string {
  const { name, messages } = summary;
  return layout(
    site,
    { title: `Batch ${name}`, current: 'batches', refreshMs: REFRESH_MS },
    html`${batchHeading(summary)}
      <section class="card progress">
        <h2>${progressText(summary)}</h2>
        ${progressBar(summary)}
        ${dataList(
          [
            ['Enqueued', enqueuedText(summary)],
            ['In the queue', placeText(summary)],
            ['All of it sent', endText(summary, pace, shown.wallNow)],
          ],
          'vitals',
        )}
      </section>
      ${sumsTable(site, summary, shown)} ${messages.length > 0 && messagesTable(site, name, messages)}
      ${nextStepsSection(batchSteps(name, countsOf(summary), site.platformId, site))}
      ${urgent.length > 0 && urgentSection(site, name, urgent, shown)} ${batchLinks(site, name)}`,
  );
}

/** A count of 100,000 payouts takes seconds. Meanwhile the page says what is known. */
export function uncountedPage(site: Site, batch: UncountedBatch): string {
  return layout(
    site,
    { title: `Batch ${batch.name}`, current: 'batches', refreshMs: REFRESH_MS },
    html`${batchHeading(batch)}
      <section class="card progress">
        <h2>Being counted …</h2>
        ${dataList([['Enqueued', enqueuedText(batch)]], 'vitals')}
        <p class="quiet">
          No worker has counted this batch yet, so the dashboard does. This page shows the result in some seconds.
        </p>
      </section>
      ${batchLinks(site, batch.name)}`,
  );
}

type Known = Pick<Batch, 'name' | 'total' | 'enqueuedAt' | 'enqueuedBy'>;

function batchHeading({ name, total }: Known): Html {
  return heading(html`Batch <bdi class="mono">${name}</bdi>`, formatCount(total, 'payout'));
}

function enqueuedText({ enqueuedAt, enqueuedBy }: Known): Html {
  return html`${utcTime(enqueuedAt)} by <bdi>${enqueuedBy ?? 'a producer without a name'}</bdi>`;
}

function batchLinks({ base }: Site, batch: string): Html {
  return html`<nav class="more" aria-label="Payouts of the batch">
    <a href="${base}${csvPath({ batch })}" download>Download all as CSV</a>
    <a href="${base}${listPath({ batch })}">All payouts of the batch</a>
  </nav>`;
}

type Counts = Readonly<Record<PayoutState, number>>;

function countsOf({ sums }: Pick<Batch, 'sums'>): Counts {
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, countOf(sums[state])])) as Counts;
}

function countOf(sums: readonly CurrencySum[]): number {
  return sums.reduce((total, { count }) => total + count, 0);
}

/** Nothing counts as done that is not paid. */
function progressText(batch: Batch): string {
  const { paid, failed, cancelled, writtenOff, left } = progressOf(batch);
  const percent = Math.floor((paid.count / batch.total) * 100);
  const others = [
    ...(failed.count > 0 ? [`${formatAmount(failed.count)} failed or rejected`] : []),
    ...(cancelled.count > 0 ? [`${formatAmount(cancelled.count)} cancelled`] : []),
    ...(writtenOff.count > 0 ? [`${formatAmount(writtenOff.count)} written off`] : []),
    `${formatAmount(left.count)} left`,
  ];
  return `${percent} % paid: ${formatAmount(paid.count)} of ${formatAmount(batch.total)}, ${others.join(', ')}`;
}

const BAR_WIDTH = 1_000;
const BAR_PARTS = [
  { part: 'paid', tone: 'good', opacity: 1 },
  { part: 'failed', tone: 'bad', opacity: 1 },
  { part: 'cancelled', tone: 'muted', opacity: 1 },
  { part: 'writtenOff', tone: 'muted', opacity: 0.5 },
  { part: 'left', tone: 'active', opacity: 0.25 },
] as const;

function progressBar(batch: Batch): Html {
  const progress = progressOf(batch);
  let x = 0;
  const parts = BAR_PARTS.map(({ part, tone, opacity }) => {
    const width = (progress[part].count / batch.total) * BAR_WIDTH;
    x += width;
    return html`<rect
      class="tone-${tone}"
      opacity="${opacity}"
      x="${(x - width).toFixed(2)}"
      y="0"
      width="${width.toFixed(2)}"
      height="12"
    />`;
  });
  return html`<svg
    class="bar"
    role="img"
    aria-label="${progressText(batch)}"
    viewBox="0 0 ${BAR_WIDTH} 12"
    height="12"
    preserveAspectRatio="none"
  >
    ${parts}
  </svg>`;
}

function placeText({ ahead }: Batch): string {
  if (ahead === undefined) return 'nothing waits to be sent';
  return ahead === 0 ? 'next' : `after ${formatCount(ahead, 'earlier payout')}`;
}

function endText({ ahead, sums }: Batch, { stats, statistics }: Pace, wallNow: number): string {
  if (ahead === undefined) return '–';
  const { endsAt, why = 'nothing is sent now' } = estimateEnd(
    statistics,
    { ...stats, queued: ahead + countOf(sums.queued) },
    wallNow,
  );
  return endsAt === undefined ? `no end in sight: ${why}` : formatEnd(endsAt, wallNow);
}

function sumsTable({ base }: Site, summary: BatchSummary, { currencies }: Shown): Html {
  const { name, sums } = summary;
  const rows = PAYOUT_STATES.filter((state) => sums[state].length > 0).map(
    (state) =>
      html`<tr>
        <th scope="row"><a href="${base}${listPath({ state, batch: name })}">${stateBadge(state)}</a></th>
        ${tableCell('number', formatAmount(countOf(sums[state])))}
        ${tableCell(
          'number',
          html`${sums[state].map(
            ({ amount, paymentId, symbol }) =>
              html`<span class="line">
                ${formatMoney(amount, paymentId, currencies)}
                ${symbol === undefined ? undefined : html`<span class="quiet">perhaps in ${symbol}</span>`}
              </span>`,
          )}`,
        )}
        ${textCell(STATE_MEANING[state])}
      </tr>`,
  );
  return html`<section class="list">
    <h2>Sums</h2>
    ${table(`Payouts and sums of batch ${name} by state`, ['State', '#Payouts', '#Sum', 'Which means'], rows)}
  </section>`;
}

function messagesTable({ base }: Site, batch: string, messages: readonly BatchMessage[]): Html {
  return html`<section class="list">
    <h2>What went wrong</h2>
    ${table(
      `Messages of batch ${batch}, the most frequent first`,
      ['Message', 'State', '#Payouts'],
      messages.map(
        ({ state, message, count }) =>
          html`<tr>
            <th scope="row" class="text long" title="${message}"><bdi>${message}</bdi></th>
            <td>
              <a href="${base}${listPath({ state, batch })}" aria-label="Payouts ${formatState(state)} of the batch"
                >${stateBadge(state)}</a
              >
            </td>
            ${tableCell('number', formatAmount(count))}
          </tr>`,
      ),
    )}
  </section>`;
}

function urgentSection(site: Site, batch: string, urgent: readonly Payout[], shown: Shown): Html {
  return html`<section class="list">
    <h2>These need an operator</h2>
    ${payoutTable(site, urgent, shown, { caption: `Payouts of batch ${batch} that need an operator` })}
  </section>`;
}

interface BatchList extends Pace {
  readonly batches: readonly Batch[];
  /** When the sender counted them, by Redis's clock, ms; undefined before the first sender. */
  readonly asOf: number | undefined;
}

export const LISTED_BATCHES = 50;
const LIST_REFRESH_MS = 5_000;

export function batchesPage(site: Site, { batches, asOf, ...pace }: BatchList, shown: Shown): string {
  const about = asOf === undefined ? undefined : html`counted by the sender, ${utcTime(new Date(asOf).toISOString())}`;
  return layout(
    site,
    { title: 'Batches', current: 'batches', refreshMs: LIST_REFRESH_MS },
    html`${heading('Batches', html`the newest first ${about && html`· ${about}`}`)}
    ${
      batches.length === 0
        ? html`<p class="card quiet">
            ${asOf === undefined ? 'Not counted yet: the first worker of this version counts them. Until then, find a batch by its name.' : 'No payout came in a batch.'}
          </p>`
        : table(
            'Batches, the newest first',
            [
              'Batch',
              'Enqueued',
              'By',
              '#Payouts',
              'Paid, failed, cancelled, written off, left',
              'In the queue',
              'All of it sent',
              '#Sum',
            ],
            batches.map((batch) => batchRow(site, batch, pace, shown)),
          )
    }
    ${batches.length === LISTED_BATCHES && html`<p class="quiet">Older batches: find them by name.</p>`}`,
  );
}

function batchRow({ base }: Site, batch: Batch, pace: Pace, { currencies, wallNow }: Shown): Html {
  const { name, enqueuedAt, enqueuedBy, total } = batch;
  const { paid, failed, cancelled, writtenOff, left } = progressOf(batch);
  const counts = [paid, failed, cancelled, writtenOff, left].map(({ count }) => formatAmount(count)).join(' · ');
  return html`<tr data-key="${name}">
    <th scope="row" class="id"><a href="${base}${batchPath(name)}">${name}</a></th>
    ${tableCell('', utcTime(enqueuedAt))} ${tableCell('', enqueuedBy && html`<bdi>${enqueuedBy}</bdi>`)}
    ${tableCell('number', formatAmount(total))}
    ${tableCell('progress', html`${progressBar(batch)} <small>${counts}</small>`)} ${tableCell('', placeText(batch))}
    ${tableCell('', endText(batch, pace, wallNow))} ${tableCell('number', formatTotals(batch, currencies))}
  </tr>`;
}

function formatTotals({ sums }: Batch, currencies: Shown['currencies']): string {
  const totals = new Map<number, bigint>();
  for (const { paymentId, amount } of Object.values(sums).flat())
    totals.set(paymentId, (totals.get(paymentId) ?? 0n) + toUnits(amount));
  return [...totals].map(([paymentId, units]) => formatMoney(fromUnits(units), paymentId, currencies)).join(' + ');
}
