import { formatTimeUtc } from '../format.js';
import type { HistoryEntry, Payout } from '../ledger/payout.js';
import { STATE_MEANING } from '../ledger/states.js';
import { commandLine } from './command-line.js';
import { html, type Html } from './html.js';
import { layout, type Site } from './layout.js';
import { nextSteps } from '../operator/next-steps.js';
import { stateBadge } from './payout-table.js';

/** One payout: its state, what an operator can do, all its data and its history. */
export function payoutPage(site: Site, payout: Payout): string {
  const { payoutId, state, message } = payout;
  return layout(
    site,
    { title: payoutId },
    html`<div class="heading">
        <h1 class="mono">${payoutId}</h1>
        <p>${stateBadge(state)} <span class="quiet">${STATE_MEANING[state]}</span></p>
      </div>
      ${
        message === undefined
          ? undefined
          : html`<section class="card last-message">
              <h2>Last message</h2>
              <p><bdi>${message}</bdi></p>
            </section>`
      }
      ${stepsSection(payout, site.platformId)}
      <div class="columns">${dataSection(payout)} ${historySection(payout.history)}</div>`,
  );
}

function stepsSection(payout: Payout, platformId: number): Html | undefined {
  const steps = nextSteps(payout, platformId);
  if (steps.length === 0) return undefined;
  return html`<section class="card steps">
    <h2>Next steps</h2>
    <p class="quiet">This page is read-only. Run one of these commands; replace the words in capitals.</p>
    <dl>
      ${steps.map(
        ({ when, command }) =>
          html`<div>
            <dt>${when}</dt>
            <dd>${commandLine(command)}</dd>
          </div>`,
      )}
    </dl>
  </section>`;
}

/** `mono`: a value that is compared character by character. */
type DataRow = readonly [name: string, value: string | number | undefined, font?: 'mono'];

function dataSection(payout: Payout): Html {
  const rows: readonly DataRow[] = [
    ['Amount', payout.amount],
    ['Currency (payment_id)', payout.paymentId],
    ['Account currency', payout.symbol],
    ['To', payout.addressTo, 'mono'],
    ['txhash', payout.txhash, 'mono'],
    ['Paid too late as', payout.lateTxhash, 'mono'],
    ['Fee', payout.fee],
    ['Reference', payout.reference],
    ['Batch', payout.batch],
    ['Priority', payout.priority],
    ['Not before', payout.notBefore && formatTimeUtc(payout.notBefore)],
    ['Send attempts', payout.attempt],
    ['Requeued by an operator', payout.requeueCount === 0 ? undefined : `${payout.requeueCount}×`],
    ['Created', formatTimeUtc(payout.createdAt)],
    ['In this state since', formatTimeUtc(payout.updatedAt)],
    ['Metadata', payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata, null, 2), 'mono'],
  ];
  const known = rows.filter(([, value]) => value !== undefined);
  return html`<section class="card">
    <h2>Data</h2>
    <dl class="data">
      ${known.map(
        ([name, value, font]) =>
          html`<div>
            <dt>${name}</dt>
            <dd><bdi class="${font}">${value}</bdi></dd>
          </div>`,
      )}
    </dl>
  </section>`;
}

function historySection(history: readonly HistoryEntry[]): Html {
  return html`<section class="card">
    <h2>History</h2>
    <ol class="history">
      ${history.map(historyItem)}
    </ol>
  </section>`;
}

function historyItem({ at, to, by, reason }: HistoryEntry): Html {
  return html`<li class="${to}">
    ${stateBadge(to)} <time datetime="${at}">${formatTimeUtc(at)}</time>
    ${by === undefined ? undefined : html`<p>by <bdi>${by}</bdi></p>`}
    ${reason === undefined ? undefined : html`<p><bdi>${reason}</bdi></p>`}
  </li>`;
}
