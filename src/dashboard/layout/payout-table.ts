import { formatMoney, formatState, shorten } from '../../base/format.js';
import { lastMessage, type Payout } from '../../ledger/payout.js';
import type { UnreadablePayout } from '../../ledger/payout-queries.js';
import { type PayoutState, STATE_TONE } from '../../ledger/states.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';
import {
  copyButton,
  icon,
  relativeTime,
  type Shown,
  table,
  tableCell,
  textCell,
  txhashView,
  utcTime,
} from './pieces.js';
import { pickBox } from './selection.js';

export interface Column {
  readonly title: string;
  readonly className?: string;
  /** Without it, a column is shown if a payout has a value for it. */
  readonly isShown?: (payouts: readonly Payout[]) => boolean;
  /** A text is cut to one line. */
  readonly cell: (payout: Payout, shown: Shown) => Html | string | undefined;
}

export const ADDRESS: Column = {
  title: 'To',
  cell: ({ payoutId, addressTo }) =>
    html`<bdi class="mono" title="${addressTo}">${shorten(addressTo)}</bdi
      >${copyButton(addressTo, `address of ${payoutId}`)}`,
};

export const AMOUNT: Column = {
  title: 'Amount',
  className: 'number',
  cell: ({ amount, paymentId }, { currencies }) => html`<strong>${formatMoney(amount, paymentId, currencies)}</strong>`,
};

export const REFERENCE: Column = { title: 'Reference', cell: ({ reference }) => reference };

export const AGE: Column = {
  title: 'For',
  className: 'number',
  cell: ({ updatedAt }, { wallNow }) => relativeTime(updatedAt, wallNow),
};

export const STATE: Column = { title: 'State', cell: ({ state }) => stateBadge(state) };

export const MESSAGE: Column = { title: 'Last message', cell: lastMessage };

const BUBBLE = icon('M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z');

/** The last one: in a list it says who looks after what. */
export const COMMENT: Column = {
  title: 'Comment',
  className: 'text',
  cell: ({ comments }, { wallNow }) => {
    const last = comments?.at(-1);
    if (last === undefined) return undefined;
    const text = `${last.by}: ${last.text}`;
    return html`<bdi title="${text}">${BUBBLE} ${text}</bdi>
      <span class="quiet">${relativeTime(last.at, wallNow)}</span>`;
  },
};

const COLUMNS: readonly Column[] = [
  { ...STATE, isShown: (payouts) => new Set(payouts.map(({ state }) => state)).size > 1 },
  AMOUNT,
  ADDRESS,
  REFERENCE,
  {
    title: 'txhash',
    cell: (payout, { explorers }) => payout.txhash && txhashView(payout.txhash, payout, explorers, true),
  },
  { title: 'Scheduled for', cell: ({ notBefore }) => notBefore && utcTime(notBefore) },
  MESSAGE,
  COMMENT,
  AGE,
];

interface PayoutTableOptions {
  /** What the payouts share, for screen readers. */
  readonly caption: string;
  readonly columns?: readonly Column[];
  /** The ids of the payouts that are selected; undefined if none can be. */
  readonly picked?: ReadonlySet<string>;
}

/** One line a payout. */
export function payoutTable(
  { base }: Site,
  payouts: readonly Payout[],
  shown: Shown,
  { caption, columns: all = COLUMNS, picked }: PayoutTableOptions,
): Html {
  const columns = all.filter(
    ({ isShown, cell }) => isShown?.(payouts) ?? payouts.some((payout) => cell(payout, shown) !== undefined),
  );
  const heads = columns.map(({ title, className }) => (className === 'number' ? `#${title}` : title));
  return table(
    caption,
    [...(picked === undefined ? [] : ['']), 'Payout', ...heads],
    payouts.map((payout) => {
      const { payoutId } = payout;
      return html`<tr data-key="${payoutId}">
        ${picked && pickBox(payoutId, picked.has(payoutId))}
        <th scope="row" class="id"><a href="${base}${payoutPath(payoutId)}">${payoutId}</a></th>
        ${columns.map(({ className = '', cell }) => {
          const value = cell(payout, shown);
          return typeof value === 'string' ? textCell(value) : tableCell(className, value);
        })}
      </tr>`;
    }),
  );
}

/** Payouts whose record cannot be read, each with the reason. */
export function unreadableRows({ base }: Site, payouts: readonly UnreadablePayout[]): Html | undefined {
  if (payouts.length === 0) return undefined;
  return table(
    'Payouts that cannot be read',
    ['Payout', 'Cannot be read'],
    payouts.map(
      ({ payoutId, reason }) =>
        html`<tr data-key="${payoutId}">
          <th scope="row" class="id"><a href="${base}${payoutPath(payoutId)}">${payoutId}</a></th>
          ${textCell(reason)}
        </tr>`,
    ),
  );
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
