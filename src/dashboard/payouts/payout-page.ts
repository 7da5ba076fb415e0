import { formatMoney } from '../../base/format.js';
import type { HistoryEntry, Payout } from '../../ledger/payout.js';
import { STATE_MEANING, STATE_TONE } from '../../ledger/states.js';
import { nextSteps } from '../../operator/next-steps.js';
import { controlSection } from '../control/control-section.js';
import type { PayoutControl } from '../control/payout-control.js';
import { Html, html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { batchPath, stateBadge } from '../layout/payout-table.js';
import { copyButton, nextStepsSection, type Shown, txhashView, utcTime } from '../layout/pieces.js';

/** A payout is sent and paid within seconds. */
const REFRESH_MS = 2_000;

export function payoutPage(site: Site, payout: Payout, shown: Shown, control: PayoutControl): string {
  const { payoutId, state, held, message } = payout;
  return layout(
    site,
    { title: payoutId, refreshMs: REFRESH_MS },
    html`<div class="heading">
        <h1><bdi class="mono">${payoutId}</bdi>${copyButton(payoutId, `payoutId ${payoutId}`)}</h1>
        <p>${stateBadge(state)} <span class="quiet">${STATE_MEANING[state]}</span></p>
      </div>
      ${
        held === undefined
          ? undefined
          : html`<section class="card tone-warning">
              <h2>Why it is held</h2>
              <p><bdi>${held.message}</bdi> <span class="quiet">${held.kind}: ${held.reason}</span></p>
            </section>`
      }
      ${
        message === undefined
          ? undefined
          : html`<section class="card tone-warning">
              <h2>Last message</h2>
              <p><bdi>${message}</bdi></p>
            </section>`
      }
      ${nextStepsSection(nextSteps(payout, site.platformId, site))} ${controlSection(payout, control)}
      <div class="columns">${dataSection(site, payout, shown)} ${historySection(payout.history)}</div>`,
  );
}

interface DataRow {
  readonly name: string;
  readonly value: Html | string | number | undefined;
}

function dataSection({ base }: Site, payout: Payout, { currencies, explorers }: Shown): Html {
  const { payoutId, paymentId, batch, notBefore } = payout;
  const txhash = (hash: string | undefined): Html | undefined =>
    hash === undefined ? undefined : txhashView(hash, { payoutId, paymentId, explorers });
  const rows: readonly DataRow[] = [
    { name: 'Amount', value: formatMoney(payout.amount, paymentId, currencies) },
    { name: 'Currency (payment_id)', value: paymentId },
    { name: 'Account currency', value: payout.symbol },
    { name: 'To', value: mono(payout.addressTo, `address of ${payoutId}`) },
    { name: 'txhash', value: txhash(payout.txhash) },
    { name: 'Paid too late as', value: txhash(payout.lateTxhash) },
    { name: 'Fee', value: payout.fee },
    { name: 'Reference', value: payout.reference },
    { name: 'Batch', value: batch === undefined ? undefined : html`<a href="${base}${batchPath(batch)}">${batch}</a>` },
    { name: 'Priority', value: payout.priority },
    { name: 'Scheduled for', value: notBefore === undefined ? undefined : utcTime(notBefore) },
    { name: 'Send attempts', value: payout.attempt },
    { name: 'Requeued by an operator', value: payout.requeueCount === 0 ? undefined : `${payout.requeueCount}×` },
    { name: 'Created', value: utcTime(payout.createdAt) },
    { name: 'In this state since', value: utcTime(payout.updatedAt) },
    {
      name: 'Metadata',
      value: payout.metadata === undefined ? undefined : html`<pre>${JSON.stringify(payout.metadata, null, 2)}</pre>`,
    },
  ];
  const known = rows.filter(({ value }) => value !== undefined);
  return html`<section class="card">
    <h2>Data</h2>
    <dl class="data">
      ${known.map(
        ({ name, value }) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value instanceof Html ? value : html`<bdi>${value}</bdi>`}</dd>
          </div>`,
      )}
    </dl>
  </section>`;
}

/** A value for comparison character by character. @param what - names it on a copy button, if it has one */
function mono(value: string, what?: string): Html {
  return html`<bdi class="mono">${value}</bdi>${what === undefined ? undefined : copyButton(value, what)}`;
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
  return html`<li class="${to} tone-${STATE_TONE[to]}">
    ${stateBadge(to)} ${utcTime(at)} ${by === undefined ? undefined : html`<p>by <bdi>${by}</bdi></p>`}
    ${reason === undefined ? undefined : html`<p><bdi>${reason}</bdi></p>`}
  </li>`;
}
