import { fromUnits, toUnits } from '../base/decimal.js';
import { type Actor, toLine } from './payout.js';
import { nameBalance } from './balance-cover.js';
import type { Balance, Currency } from './gateway-facts.js';
import { ask, type LedgerConnection } from './ledger-connection.js';

/**
 * What the sender found when it compared the gateway's balance with the payouts, as it stands in Redis. Amounts are decimal
 * strings in the unit of their balance.
 */
export interface Reconciliation {
  /** When it was compared last: wall clock, ms. */
  readonly comparedAt: number;
  /** Since when no event was missed: sends that ended before may still be debited. Wall clock, ms. */
  readonly followedSince: number;
  /** The event behind which the ends of `recent` and of all later sends are found; version 0.2 did not keep it. */
  readonly followedTo?: string | undefined;
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
  /** Sends that ended since, and that every later reading shows. */
  readonly settled: SendSum;
  /** Sends that ended lately: the balance may not show them yet. */
  readonly recent: SendSum;
  /** Sends that have not ended: they may have been debited or not. */
  readonly open: SendSum;
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

/** The most that sends can have taken from a balance. */
export interface SendSum {
  readonly count: number;
  /** Undefined if no most can be said. */
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
interface AcceptedDrops {
  /** Drops reported up to then, by the worker's wall clock, ms. */
  readonly upTo: number;
  readonly by: string;
  readonly reason: string;
}

export const NO_SENDS: SendSum = { count: 0, high: '0' };

export function addSums(sums: readonly SendSum[]): SendSum {
  const highs = sums.flatMap(({ high }) => (high === undefined ? [] : [toUnits(high)]));
  return {
    count: sums.reduce((total, { count }) => total + count, 0),
    high: highs.length < sums.length ? undefined : fromUnits(highs.reduce((total, high) => total + high, 0n)),
  };
}

/**
 * The drop that needs an operator; undefined if there is none.
 * @param acceptedUpTo - see {@link AcceptedDrops}
 */
export function pendingDrop(
  { drop }: Pick<ReconciledBalance, 'drop'>,
  acceptedUpTo = -Infinity,
): ReportedDrop | undefined {
  return drop === undefined || drop.at <= acceptedUpTo ? undefined : drop;
}

/** What Redis has of the comparison, beside the facts of the gateway. */
export interface StoredReconciliation {
  /** Undefined if nothing was compared yet. */
  readonly reconciliation: Reconciliation | undefined;
  readonly acceptedDrops: AcceptedDrops | undefined;
}

/** @throws RedisUnavailableError */
export async function readReconciliation({ redis, keys }: LedgerConnection): Promise<StoredReconciliation> {
  const texts = await ask(redis.hmget(keys.gateway, 'reconciliation', 'acceptedDrops'));
  const parts = texts.map((text) => (text === null ? {} : (JSON.parse(text) as Partial<StoredReconciliation>)));
  return { reconciliation: parts[0]?.reconciliation, acceptedDrops: parts[1]?.acceptedDrops };
}

/** @throws RedisUnavailableError */
export async function saveReconciliation(
  { redis, keys }: LedgerConnection,
  reconciliation: Reconciliation,
): Promise<void> {
  await ask(redis.hset(keys.gateway, 'reconciliation', JSON.stringify({ reconciliation })));
}

/** Adds the event, which is also an activity of the worker. @throws RedisUnavailableError */
export async function reportDrop({ run, clock }: LedgerConnection, reason: string): Promise<void> {
  await run('tell-of-balance', ['balance_dropped', clock.wallNow(), 'worker', toLine(reason)]);
}

/**
 * Notes that an operator has looked at what was reported: it is no alert any more. What is found later is one again.
 * @param upTo - drops reported up to then, by the worker's wall clock, ms
 * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
 */
export async function acceptDrops(
  { redis, keys, run, clock }: LedgerConnection,
  upTo: number,
  { by, reason }: Actor,
): Promise<void> {
  const acceptedDrops: AcceptedDrops = { upTo, by, reason };
  await run('tell-of-balance', ['drop_accepted', clock.wallNow(), toLine(by), toLine(reason)]);
  await ask(redis.hset(keys.gateway, 'acceptedDrops', JSON.stringify({ acceptedDrops })));
}

/** What a balance lost without a payout that explains it, and no operator has accepted. */
export interface UnexplainedDrop {
  /** The currency's name, or the account's symbol; `account` if the gateway names neither. */
  readonly currency: string;
  /** A decimal string; `0` if nothing is missing. */
  readonly amount: string;
}

/** One for each balance that was compared. */
export function summariseDrops(
  { reconciliation, acceptedDrops }: StoredReconciliation,
  currencies: readonly Currency[],
): UnexplainedDrop[] {
  return (reconciliation?.balances ?? []).map((balance) => ({
    currency: nameBalance(balance, currencies),
    amount: pendingDrop(balance, acceptedDrops?.upTo)?.amount ?? '0',
  }));
}

/** As operators read it. */
export function listDrops(drops: readonly UnexplainedDrop[]): string {
  return drops.map(({ currency, amount }) => `${amount} ${currency}`).join(', ');
}
