import { formatDuration, formatTime } from '../../format.js';
import { nameBalance } from '../../ledger/balance-cover.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import {
  addExplained,
  pendingDrop,
  type ExplainedSum,
  type ReconciledBalance,
  type ReportedDrop,
} from '../../ledger/reconciliation.js';
import type { StoredReconciliation } from '../../ledger/reconciliation-store.js';
import type { CliContext } from '../context/cli-context.js';
import { formatTable } from './format-table.js';

/** What `payouts reconcile --json` prints. Times are ISO 8601, UTC; amounts are decimal strings. */
export interface ReconciliationView {
  readonly platformId: number;
  /** False where a drop was reported that no operator has accepted. */
  readonly ok: boolean;
  readonly comparedAt: string;
  /** Since when no event of the ledger was missed. */
  readonly followedSince: string;
  /** When a drop was reported last that no operator has accepted. */
  readonly lastDropAt: string | null;
  readonly balances: readonly BalanceView[];
}

interface BalanceView {
  readonly currency: string;
  readonly balance: string;
  readonly baseline: { readonly amount: string; readonly at: string } | null;
  /** Sends that ended since the baseline, and what they can have taken. */
  readonly sent: ExplainedSum;
  /** Sends that have not ended. */
  readonly open: ExplainedSum;
  /** Null while it cannot be judged; `doubt` says why. */
  readonly unexplained: string | null;
  readonly doubt: string | null;
  /** Too low in the last reading: the next decides. */
  readonly isSuspected: boolean;
  /** What was reported and not accepted. */
  readonly drop: { readonly amount: string; readonly since: string; readonly at: string } | null;
}

/** @returns undefined where nothing was compared yet */
export function toReconciliationView(
  platformId: number,
  { reconciliation, acceptedDrops }: StoredReconciliation,
  currencies: readonly Currency[],
): ReconciliationView | undefined {
  if (reconciliation === undefined) return undefined;
  const drops = reconciliation.balances.map((balance) => pendingDrop(balance, acceptedDrops?.upTo));
  const dropTimes = drops.flatMap((drop) => (drop === undefined ? [] : [drop.at]));
  return {
    platformId,
    ok: dropTimes.length === 0,
    comparedAt: toTime(reconciliation.comparedAt),
    followedSince: toTime(reconciliation.followedSince),
    lastDropAt: dropTimes.length === 0 ? null : toTime(Math.max(...dropTimes)),
    balances: reconciliation.balances.map((balance, index) => viewBalance(balance, drops[index], currencies)),
  };
}

function viewBalance(
  balance: ReconciledBalance,
  drop: ReportedDrop | undefined,
  currencies: readonly Currency[],
): BalanceView {
  const { amount, baseline, settled, recent, open, unexplained, doubt, isSuspected } = balance;
  return {
    currency: nameBalance(balance, currencies),
    balance: amount,
    baseline: baseline === undefined ? null : { ...baseline, at: toTime(baseline.at) },
    sent: addExplained([settled, ...recent]),
    open,
    unexplained: unexplained ?? null,
    doubt: doubt ?? null,
    isSuspected,
    drop: drop === undefined ? null : { amount: drop.amount, since: toTime(drop.since), at: toTime(drop.at) },
  };
}

function toTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The same for people. */
export function describeReconciliation(
  { platformId, comparedAt, balances }: ReconciliationView,
  wallNow: number,
  colours: CliContext['colours'],
): string {
  const age = formatDuration(Math.max(0, wallNow - Date.parse(comparedAt)));
  const rows = balances.flatMap((balance) => describeBalance(balance, colours));
  return `Account ${platformId}, compared ${age} ago\n${formatTable(rows)}`;
}

function describeBalance(view: BalanceView, colours: CliContext['colours']): string[][] {
  const { currency, balance, baseline, sent, open, drop } = view;
  return [
    ['', currency, 'balance', balance],
    ['', '', 'baseline', baseline === null ? 'none yet' : `${baseline.amount} (${formatTime(baseline.at)} UTC)`],
    ['', '', 'sent since', describeSum(sent)],
    ['', '', 'not ended', describeSum(open)],
    ['', '', 'unexplained', describeUnexplained(view)],
    ...(drop === null
      ? []
      : [['', '', 'REPORTED', colours.red(`${drop.amount} missing, since ${formatTime(drop.since)} UTC`)]]),
  ];
}

function describeSum({ count, low, high }: ExplainedSum): string {
  return count === 0 ? 'nothing' : `${low} to ${high ?? 'more than can be said'} (${count})`;
}

function describeUnexplained({ unexplained, doubt, isSuspected }: BalanceView): string {
  if (unexplained === null) return `cannot be judged: ${doubt ?? ''}`;
  return isSuspected ? `${unexplained}, the next reading decides` : unexplained;
}
