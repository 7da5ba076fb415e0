import { formatTable } from '../output/format-table.js';
import { formatCount, formatDuration } from '../../format.js';
import type { FileCheck } from './check-rows.js';
import type { CurrencyTotal } from './currency-totals.js';
import type { Conflict, EnqueueCounts } from './enqueue-spool.js';

/** What is in a file, for people. @param intervalMs - between two sends */
export function describeCheck({ rows, payouts, repeated, invalid, totals }: FileCheck, intervalMs: number): string {
  const others = [
    repeated === 0 ? '' : `, ${repeated} that repeat an earlier row`,
    invalid === 0 ? '' : `, ${invalid} with errors that are left out`,
  ];
  return [
    `${formatCount(rows, 'row')}: ${formatCount(payouts, 'payout')}${others.join('')}\n`,
    formatTotals(totals),
    `At one every ${intervalMs} ms, sending them takes at least ${formatDuration(payouts * intervalMs)}.\n`,
  ].join('');
}

/** The sum of each currency, for people. */
export function formatTotals(totals: readonly CurrencyTotal[]): string {
  const rows = totals.map(({ paymentId, symbol, payouts, amount }) => [
    '',
    String(paymentId),
    symbol ?? '',
    String(payouts),
    amount,
  ]);
  return formatTable([['', 'PAYMENT ID', 'SYMBOL', 'PAYOUTS', 'AMOUNT'], ...rows], [1, 3, 4]);
}

/** What became of the payouts, for people. */
export function describeCounts({ created, existing, otherBatch, conflicts, removed }: EnqueueCounts): string {
  const others = [
    existing === 0 ? '' : `, ${existing} there already`,
    conflicts === removed ? '' : `, ${conflicts - removed} there with other data`,
    removed === 0 ? '' : `, ${removed} ended and removed long ago`,
  ];
  const batch =
    otherBatch === 0
      ? ''
      : `Of those there already ${otherBatch} stay in another batch, or in none: --batch of stats and list does not show them here.\n`;
  return `${formatCount(created, 'payout')} enqueued${others.join('')}.\n${batch}`;
}

/** One payout that was not enqueued, because there is, or was, another one with its payoutId. */
export function describeConflict(conflict: Conflict, nameField: (field: string) => string): string {
  const { line, payoutId, state } = conflict;
  return conflict.kind === 'removed'
    ? `line ${line}: payout ${payoutId} ended ${state} and was removed after PAYOUT_RETENTION_DAYS: it is never paid again, and another payout needs another ${nameField('payoutId')}`
    : `line ${line}: payout ${payoutId} is there already (${state}) with another ${conflict.fields.map(nameField).join(', ')}`;
}
