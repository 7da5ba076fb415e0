import { formatDuration, formatExactMoney, formatFee } from '../../base/format.js';
import { describeNetwork } from '../../gateway/wallet.js';
import { type HistoryEntry, lastedMs, type Payout, shownGatewayId } from '../../ledger/payout.js';
import { STATE_MEANING, STATE_TONE, URGENT_STATES } from '../../ledger/states.js';
import { describeLookUp } from '../../operator/describe-look-up.js';
import { formatCommand, nextSteps } from '../../operator/next-steps.js';
import { controlSection } from '../control/control-section.js';
import type { PayoutControl } from '../control/payout-control.js';
import { html, type Html } from '../layout/html.js';
import { layout, type Site } from '../layout/layout.js';
import { batchPath, stateBadge } from '../layout/payout-table.js';
import {
  commandLine,
  copyButton,
  dataList,
  nextStepsSection,
  type Shown,
  txhashView,
  utcTime,
} from '../layout/pieces.js';

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
        held !== undefined &&
        html`<section class="card tone-warning">
          <h2>Why it is held</h2>
          <p><bdi>${held.message}</bdi> <span class="quiet">${held.kind}: ${held.reason}</span></p>
        </section>`
      }
      ${
        message !== undefined &&
        html`<section class="card tone-warning">
          <h2>Last message</h2>
          <p><bdi>${message}</bdi></p>
        </section>`
      }
      ${nextStepsSection(nextSteps(payout, site.platformId, site))} ${commentsSection(site, payout)}
      ${controlSection(payout, control)}
      <div class="columns">${dataSection(site, payout, shown)} ${historySection(payout.history, shown.wallNow)}</div>`,
  );
}

/** The page of a payout that needs nobody has no place for comments until it has one. */
function commentsSection({ platformId }: Site, { payoutId, state, comments = [] }: Payout): Html | undefined {
  if (comments.length === 0 && !URGENT_STATES.includes(state)) return undefined;
  const args = payoutId.startsWith('-') ? ['--text', 'I am on it', '--', payoutId] : [payoutId, '--text', 'I am on it'];
  return html`<section class="card">
    <h2>Comments</h2>
    ${
      comments.length > 0 &&
      html`<ol class="approvals">
          ${comments.map(
            ({ at, by, text }) =>
              html`<li>
                <p><bdi>${text}</bdi></p>
                <p class="quiet">by <bdi>${by}</bdi>, ${utcTime(at)}</p>
              </li>`,
          )}
        </ol>
        <p class="quiet">
          Not signed: anyone who can write to Redis can write one under any name. No comment decides anything.
        </p>`
    }
    ${commandLine(formatCommand({ name: 'comment', args }, platformId))}
  </section>`;
}

function dataSection({ base }: Site, payout: Payout, { currencies, explorers, lookUpEvidence }: Shown): Html {
  const { payoutId, paymentId, batch, notBefore, metadata, lateGatewayId, lateTxhash } = payout;
  const txhash = (hash: string | undefined) => hash && txhashView(hash, payout, explorers);
  const copied = (text: string | undefined, what: string) =>
    text && html`<bdi class="mono">${text}</bdi>${copyButton(text, `${what} of ${payoutId}`)}`;
  return html`<section class="card">
    <h2>Data</h2>
    ${dataList([
      ['Amount', formatExactMoney(payout.amount, paymentId, currencies)],
      ['Currency (payment_id)', paymentId],
      ['Symbol: its amount may be in', payout.symbol],
      ['To', copied(payout.addressTo, 'address')],
      ['Network', describeNetwork(payout, currencies)],
      ['Called at the gateway', copied(shownGatewayId(payout), 'gatewayId')],
      ['txhash', txhash(payout.txhash)],
      ['Paid too late as', lateTxhash === lateGatewayId ? txhash(lateTxhash) : copied(lateGatewayId, 'late gatewayId')],
      ['Its txhash', lateTxhash === lateGatewayId ? undefined : txhash(lateTxhash)],
      ['Fee', formatFee(payout, currencies)],
      ['Reference', payout.reference],
      ['Batch', batch && html`<a href="${base}${batchPath(batch)}">${batch}</a>`],
      ['Priority', payout.priority],
      ['Scheduled for', notBefore && utcTime(notBefore)],
      ['Send attempts', payout.attempt],
      ['Request may arrive until', payout.inFlightUntil && utcTime(payout.inFlightUntil)],
      ['The worker', payout.lookUp && [describeLookUp(payout.lookUp), lookUpEvidence].filter(Boolean).join('. ')],
      ['Requeued by an operator', payout.requeueCount === 0 ? undefined : `${payout.requeueCount}×`],
      ['Created', utcTime(payout.createdAt)],
      ['In this state since', utcTime(payout.updatedAt)],
      ['Metadata', metadata === undefined ? undefined : html`<pre>${JSON.stringify(metadata, null, 2)}</pre>`],
    ])}
  </section>`;
}

function historySection(history: readonly HistoryEntry[], wallNow: number): Html {
  return html`<section class="card">
    <h2>History</h2>
    <ol class="history">
      ${history.map((entry, index) => historyItem(entry, lastedMs(history, index, wallNow)))}
    </ol>
  </section>`;
}

/** @param lasted - ms; undefined if it lasts for good */
function historyItem({ at, to, by, reason }: HistoryEntry, lasted: number | undefined): Html {
  return html`<li class="${to} tone-${STATE_TONE[to]}">
    ${stateBadge(to)} ${utcTime(at)}
    ${lasted !== undefined && html`<span class="quiet">for ${formatDuration(lasted)}</span>`}
    ${by !== undefined && html`<p>by <bdi>${by}</bdi></p>`} ${reason !== undefined && html`<p><bdi>${reason}</bdi></p>`}
  </li>`;
}
