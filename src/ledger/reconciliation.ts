import { fromUnits, toUnits } from '../decimal.js';
import type { Balance } from './gateway-facts.js';

/**
 * What the sender found when it compared the gateway's balance with the payouts, as it stands in Redis. Amounts are decimal
 * strings in the unit of their balance.
 */
export interface Reconciliation {
  /** When it was compared last: wall clock, ms. */
  readonly comparedAt: number;
  /** Since when no event was missed: sends that ended before may still be debited. Wall clock, ms. */
  readonly followedSince: number;
  /** The last event of the ledger that is counted. */
  readonly position: string;
  /** The largest fee that a completed payout of each currency had. */
  readonly fees: Readonly<Record<number, string>>;
  /** The highest rate that each currency of an open send had since the oldest of them began, in USD. */
  readonly rates: Readonly<Record<number, string>>;
  readonly balances: readonly ReconciledBalance[];
}

/** One balance, and what explains that it is lower than it was. */
export interface ReconciledBalance extends Balance {
  /** What everything since is compared with; undefined until a reading can serve as one. */
  readonly baseline: { readonly amount: string; readonly at: number } | undefined;
  /** The most decimals that it was ever stated with. */
  readonly places: number;
  /** Sends that ended since, and can have been debited since. */
  readonly settled: ExplainedSum;
  /** Sends that ended lately: the balance may not show them yet. */
  readonly recent: readonly (ExplainedSum & { readonly at: number })[];
  /** Sends that have not ended: they may have been debited or not. */
  readonly open: ExplainedSum;
  /** By how much it is lower than can be explained, beyond what was reported; undefined while it cannot be judged. */
  readonly unexplained: string | undefined;
  /** Why it cannot be judged. */
  readonly doubt: string | undefined;
  /** The last reading was too low, the next decides. */
  readonly isSuspected: boolean;
  /** The part of what was reported that the baseline still contains. */
  readonly reported: string;
  /** All that was reported and not accepted by an operator. */
  readonly drop: ReportedDrop | undefined;
}

/** What sends can have taken from a balance. */
export interface ExplainedSum {
  readonly count: number;
  readonly low: string;
  /** Undefined where no most can be said. */
  readonly high: string | undefined;
}

/** A balance that fell without a payout that explains it. */
export interface ReportedDrop {
  readonly amount: string;
  /** When it was first and last reported: wall clock of the worker, ms. */
  readonly since: number;
  readonly at: number;
}

/** An operator has looked at what was reported. */
export interface AcceptedDrops {
  /** Drops reported up to then, by the worker's wall clock, ms. */
  readonly upTo: number;
  readonly by: string;
  readonly reason: string;
}

/**
 * The drop that needs an operator; undefined where there is none.
 * @param acceptedUpTo - see {@link AcceptedDrops}
 */
export function pendingDrop(
  { drop }: Pick<ReconciledBalance, 'drop'>,
  acceptedUpTo = -Infinity,
): ReportedDrop | undefined {
  return drop === undefined || drop.at <= acceptedUpTo ? undefined : drop;
}

export function addExplained(sums: readonly ExplainedSum[]): ExplainedSum {
  const highs = sums.flatMap(({ high }) => (high === undefined ? [] : [high]));
  return {
    count: sums.reduce((total, { count }) => total + count, 0),
    low: addDecimals(sums.map(({ low }) => low)),
    high: highs.length < sums.length ? undefined : addDecimals(highs),
  };
}

function addDecimals(decimals: readonly string[]): string {
  return fromUnits(decimals.reduce((total, decimal) => total + toUnits(decimal), 0n));
}
