import { formatTable } from '../output/format-table.js';
import { formatCount, formatDuration, formatMoney } from '../../format.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import type { FileCheck } from './check-rows.js';
import type { CurrencyTotal } from './currency-totals.js';
import type { Conflict, EnqueueCounts } from './enqueue-spool.js';

/** What is in a file, as text. @param intervalMs - between two sends */
export function describeCheck(
  { rows, payouts, repeated, invalid, totals }: FileCheck,
  intervalMs: number,
  currencies: readonly Currency[],
): string {
  const others = [
    repeated === 0 ? '' : `, ${repeated} repeated`,
    invalid === 0 ? '' : `, ${invalid} with errors, skipped`,
  ];
  return [
    `${formatCount(rows, 'row')}: ${formatCount(payouts, 'payout')}${others.join('')}\n`,
    formatTotals(totals, currencies),
    warnOfUnknown(totals, currencies),
    `At one every ${intervalMs} ms, sending them takes at least ${formatDuration(payouts * intervalMs)}.\n`,
  ].join('');
}

/** The sum of each currency, as a table. */
export function formatTotals(totals: readonly CurrencyTotal[], currencies: readonly Currency[]): string {
  const rows = totals.map(({ paymentId, symbol, payouts, amount }) => [
    '',
    String(paymentId),
    symbol ?? '',
    String(payouts),
    // The id stands beside it.
    currencies.some((known) => known.paymentId === paymentId) ? formatMoney(amount, paymentId, currencies) : amount,
  ]);
  return formatTable([['', 'PAYMENT ID', 'SYMBOL', 'PAYOUTS', 'AMOUNT'], ...rows], [1, 3, 4]);
}

/** The gateway may know more currencies than its list had: nothing is refused for that. */
function warnOfUnknown(totals: readonly CurrencyTotal[], currencies: readonly Currency[]): string {
  if (currencies.length === 0) return '';
  const known = new Set(currencies.map(({ paymentId }) => paymentId));
  const unknown = [...new Set(totals.map(({ paymentId }) => paymentId).filter((id) => !known.has(id)))];
  if (unknown.length === 0) return '';
  const ids = unknown.map((id) => `payment_id ${id}`).join(', ');
  return `Warning: the gateway does not list ${ids}; see \`payouts gateway currencies\`. It may reject such payouts.\n`;
}

/** What became of the payouts, as text. */
export function describeCounts({ created, existing, otherBatch, conflicts, removed }: EnqueueCounts): string {
  const others = [
    existing === 0 ? '' : `, ${existing} already existed`,
    conflicts === removed ? '' : `, ${conflicts - removed} with different data`,
    removed === 0 ? '' : `, ${removed} removed earlier`,
  ];
  const batch =
    otherBatch === 0
      ? ''
      : `${otherBatch} of those that already existed belong to another batch, or to none: stats and list do not show them under --batch.\n`;
  return `${formatCount(created, 'payout')} enqueued${others.join('')}.\n${batch}`;
}

/** One payout that was not enqueued, because its payoutId exists, or was removed, with different data. */
export function describeConflict(conflict: Conflict, nameField: (field: string) => string): string {
  const { line, payoutId, state } = conflict;
  return conflict.kind === 'removed'
    ? `line ${line}: payout ${payoutId} ended as ${state} and was removed after PAYOUT_RETENTION_DAYS. It is not paid again; use a new ${nameField('payoutId')} for a new payout`
    : `line ${line}: payout ${payoutId} already exists (${state}) with a different ${conflict.fields.map(nameField).join(', ')}`;
}
