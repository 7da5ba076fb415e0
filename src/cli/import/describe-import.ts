import { formatTable } from '../format-table.js';
import { formatDuration } from '../format-text.js';
import type { FileCheck } from './check-rows.js';
import type { Conflict, EnqueueCounts } from './enqueue-spool.js';

/** What is in a file, for people. @param intervalMs - between two sends */
export function describeCheck({ rows, payouts, repeated, invalid, totals }: FileCheck, intervalMs: number): string {
  const others = [
    repeated === 0 ? '' : `, ${repeated} repeat an earlier row`,
    invalid === 0 ? '' : `, ${invalid} have errors and are left out`,
  ];
  const table = totals.map(({ paymentId, symbol, payouts: count, amount }) => [
    '',
    String(paymentId),
    symbol ?? '',
    String(count),
    amount,
  ]);
  return [
    `${rows} rows: ${payouts} payouts${others.join('')}\n`,
    formatTable([['', 'PAYMENT ID', 'SYMBOL', 'PAYOUTS', 'AMOUNT'], ...table], [1, 3, 4]),
    `At one every ${intervalMs} ms they take at least ${formatDuration(payouts * intervalMs)} to send.\n`,
  ].join('');
}

export function describeCounts({ created, existing, conflicts }: EnqueueCounts): string {
  const others = [
    existing === 0 ? '' : `, ${existing} were there already`,
    conflicts === 0 ? '' : `, ${conflicts} are there with other data`,
  ];
  return `${created} payouts enqueued${others.join('')}.\n`;
}

/** One payout that could not be enqueued, because there is another one with its payoutId. */
export function describeConflict(conflict: Conflict): string {
  const { line, payoutId, state } = conflict;
  return conflict.kind === 'removed'
    ? `line ${line}: payout ${payoutId} was there, ended ${state}, and was removed since`
    : `line ${line}: payout ${payoutId} is there already (${state}) with another ${conflict.fields.join(', ')}`;
}
