import type { Payout } from '../ledger/payout.js';
import { STATE_TONE, type PayoutState } from '../ledger/states.js';
import { formatCurrency, formatDuration, formatState, formatTimeUtc, shorten } from '../format.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';
import { payoutPath } from './payout-path.js';

/** Payouts of one state as a table; on a narrow screen, as cards. */
export function payoutTable({ base }: Site, payouts: readonly Payout[], wallNow: number): Html {
  return html`<table class="payouts">
    <thead>
      <tr>
        <th>Payout</th>
        <th class="number">Amount</th>
        <th>To</th>
        <th>Last message</th>
        <th class="number">Since</th>
      </tr>
    </thead>
    <tbody>
      ${payouts.map((payout) => payoutRow(base, payout, wallNow))}
    </tbody>
  </table>`;
}

function payoutRow(base: string, payout: Payout, wallNow: number): Html {
  const { payoutId, amount, addressTo, reference, message, updatedAt } = payout;
  return html`<tr>
    <td class="id">
      <a href="${base}${payoutPath(payoutId)}">${payoutId}</a>
      ${reference === undefined ? undefined : html`<bdi class="quiet">${reference}</bdi>`}
    </td>
    <td class="number"><strong>${amount}</strong> <span class="quiet">${formatCurrency(payout)}</span></td>
    <td class="mono" title="${addressTo}">${shorten(addressTo)}</td>
    <td class="last-message">
      ${message === undefined ? html`<span class="quiet">–</span>` : html`<bdi>${message}</bdi>`}
    </td>
    <td class="number">${timeAgo(updatedAt, wallNow)}</td>
  </tr>`;
}

/** The age, with the exact time as a tooltip. */
function timeAgo(iso: string, wallNow: number): Html {
  return html`<time datetime="${iso}" title="${formatTimeUtc(iso)}"
    >${formatDuration(Math.max(0, wallNow - Date.parse(iso)))}</time
  >`;
}

/** A state's name in its colour. */
export function stateBadge(state: PayoutState): Html {
  return html`<span class="badge tone-${STATE_TONE[state]}">${formatState(state)}</span>`;
}
