import { formatMoney, formatState, shorten } from '../../base/format.js';
import { lastMessage, type Payout } from '../../ledger/payout.js';
import { type PayoutState, STATE_TONE } from '../../ledger/states.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';
import { copyButton, relativeTime, type Shown, tableCell, txhashView, utcTime, table } from './pieces.js';

interface Column {
  readonly title: string;
  readonly className: string;
  readonly isShown?: (payouts: readonly Payout[]) => boolean;
  readonly cell: (payout: Payout, shown: Shown) => Html | string | undefined;
}

/** A column without values is omitted. */
const COLUMNS: readonly Column[] = [
  {
    title: 'State',
    className: 'state',
    isShown: (payouts) => new Set(payouts.map(({ state }) => state)).size > 1,
    cell: ({ state }) => stateBadge(state),
  },
  {
    title: 'Amount',
    className: 'number money',
    cell: ({ amount, paymentId }, { currencies }) =>
      html`<strong>${formatMoney(amount, paymentId, currencies)}</strong>`,
  },
  {
    title: 'To',
    className: 'code',
    cell: ({ payoutId, addressTo }) =>
      html`<bdi class="mono" title="${addressTo}">${shorten(addressTo)}</bdi
        >${copyButton(addressTo, `address of ${payoutId}`)}`,
  },
  {
    title: 'txhash',
    className: 'code',
    isShown: (payouts) => payouts.some(({ txhash }) => txhash !== undefined),
    cell: (payout, { explorers }) => payout.txhash && txhashView(payout.txhash, payout, explorers, true),
  },
  {
    title: 'Scheduled for',
    className: 'time',
    isShown: (payouts) => payouts.some(({ notBefore }) => notBefore !== undefined),
    cell: ({ notBefore }) => notBefore && utcTime(notBefore),
  },
  {
    title: 'Last message',
    className: 'last-message',
    isShown: (payouts) => payouts.some((payout) => lastMessage(payout) !== undefined),
    cell: (payout) => {
      const message = lastMessage(payout);
      return message && html`<bdi>${message}</bdi>`;
    },
  },
  {
    title: 'In this state',
    className: 'number',
    cell: ({ updatedAt }, { wallNow }) => relativeTime(updatedAt, wallNow),
  },
];

/** @param caption - what the payouts share, for screen readers */
export function payoutTable({ base }: Site, payouts: readonly Payout[], shown: Shown, caption: string): Html {
  const columns = COLUMNS.filter(({ isShown }) => isShown?.(payouts) ?? true);
  return table(
    caption,
    ['Payout', ...columns.map(({ title, className }) => (className.includes('number') ? `#${title}` : title))],
    payouts.map(
      (payout) =>
        html`<tr>
          ${payoutCell(base, payout)}
          ${columns.map(({ title, className, cell }) => tableCell(title, className, cell(payout, shown)))}
        </tr>`,
    ),
  );
}

function payoutCell(base: string, { payoutId, reference }: Payout): Html {
  return html`<th scope="row" class="id">
    <a href="${base}${payoutPath(payoutId)}">${payoutId}</a>
    ${reference !== undefined && html`<bdi class="quiet line">${reference}</bdi>`}
  </th>`;
}

export function stateBadge(state: PayoutState): Html {
  return html`<span class="badge tone-${STATE_TONE[state]}">${formatState(state)}</span>`;
}

/**
 * Path below the mount path. A payoutId may hold a slash. Browsers resolve a path of dots, even escaped, so such a
 * payoutId goes into the query.
 */
export function payoutPath(payoutId: string): string {
  const encoded = encodeURIComponent(payoutId);
  return /^\.{1,2}$/.test(payoutId) ? `/payouts?payoutId=${encoded}` : `/payouts/${encoded}`;
}

/** Path below the account's pages. The name is in the query, since it may be only dots or hold a slash. */
export function batchPath(batch: string): string {
  return `/batch?name=${encodeURIComponent(batch)}`;
}
