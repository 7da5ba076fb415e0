import { z } from 'zod';
import { fromUnits, toUnits } from '../../base/decimal.js';
import { formatAmount } from '../../base/format.js';
import { type Actor, toLine } from '../payout.js';
import { nameBalance } from './balance-cover.js';
import type { Balance, Currency } from './gateway-facts.js';
import { parseStored, storedAmount, storedTime } from '../parse-stored.js';
import { ask, askReadable, type LedgerConnection } from '../ledger-connection.js';

/**
 * The sender's comparison of the gateway's balances with the payouts, as in Redis. Amounts are decimal strings in their
 * balance's unit.
 */
export interface Reconciliation {
  /** Last comparison: wall clock, ms. */
  readonly comparedAt: number;
  /** No event was missed since then; earlier sends may still be debited. Wall clock, ms. */
  readonly followedSince: number;
  /** The event before the ends of `recent` and all later sends. */
  readonly followedTo: string;
  /** The largest fee of a completed payout in each currency. */
  readonly fees: Readonly<Record<number, string>>;
  /** Each open currency's highest rate since its oldest open send began, in USD. */
  readonly rates: Readonly<Record<number, string>>;
  readonly balances: readonly ReconciledBalance[];
}

/** One balance, and what explains its decreases. */
export interface ReconciledBalance extends Balance {
  /** What later readings are compared with; undefined until one can serve. */
  readonly baseline: { readonly amount: string; readonly at: number } | undefined;
  /** The most decimals it ever had. */
  readonly decimalsSeen: number;
  /** Sends that ended since, and that every later reading shows. */
  readonly settled: SendSum;
  /** Sends that ended lately: the balance may not show them yet. */
  readonly recent: SendSum;
  /** Open sends, which may be debited or not. */
  readonly open: SendSum;
  /** The unexplained decrease beyond earlier reports; undefined if unknown. */
  readonly unexplained: string | undefined;
  /** Why it is unknown. */
  readonly incomparable: string | undefined;
  /** The last reading was too low; the next one decides. */
  readonly isSuspected: boolean;
  /** The part of earlier reports that the baseline still contains. */
  readonly reported: string;
  /** All that was reported and no operator has accepted. */
  readonly drop: ReportedDrop | undefined;
}

/** The most that sends can have taken from a balance. */
export interface SendSum {
  readonly count: number;
  /** Undefined without an upper bound. */
  readonly high: string | undefined;
}

/** A decrease that no payout explains. */
export interface ReportedDrop {
  readonly amount: string;
  /** First and last report: wall clock of the worker, ms. */
  readonly since: number;
  readonly at: number;
}

interface AcceptedDrops {
  /** An operator accepted drops reported up to then, by the worker's wall clock, ms. */
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
 * The drop that needs an operator, if any.
 * @param acceptedUpTo - see {@link AcceptedDrops}
 */
export function pendingDrop(
  { drop }: Pick<ReconciledBalance, 'drop'>,
  acceptedUpTo = -Infinity,
): ReportedDrop | undefined {
  return drop === undefined || drop.at <= acceptedUpTo ? undefined : drop;
}

export interface StoredReconciliation {
  readonly reconciliation: Reconciliation | undefined;
  readonly acceptedDrops: AcceptedDrops | undefined;
}

export async function readReconciliation({ redis, keys }: LedgerConnection): Promise<StoredReconciliation> {
  const [compared, accepted] = await askReadable(redis.hmget(keys.gateway, 'reconciliation', 'acceptedDrops'), []);
  return {
    reconciliation: parseStored(reconciliationField, compared)?.reconciliation,
    acceptedDrops: parseStored(acceptedField, accepted)?.acceptedDrops,
  };
}

const sendSum = z
  .object({ count: z.int(), high: storedAmount.optional() })
  .transform((sum): SendSum => ({ high: undefined, ...sum }));

const reconciledBalance = z
  .object({
    paymentId: z.int().optional(),
    symbol: z.string().optional(),
    amount: storedAmount,
    baseline: z.object({ amount: storedAmount, at: storedTime }).optional(),
    decimalsSeen: z.int(),
    settled: sendSum,
    recent: sendSum,
    open: sendSum,
    unexplained: storedAmount.optional(),
    incomparable: z.string().optional(),
    isSuspected: z.boolean(),
    reported: storedAmount,
    drop: z.object({ amount: storedAmount, since: storedTime, at: storedTime }).optional(),
  })
  .transform((balance): ReconciledBalance => ({ ...ABSENT, ...balance }));

/** JSON leaves these out. */
const ABSENT = {
  paymentId: undefined,
  symbol: undefined,
  baseline: undefined,
  unexplained: undefined,
  incomparable: undefined,
  drop: undefined,
};

const reconciliationField = z.object({
  reconciliation: z.object({
    comparedAt: storedTime,
    followedSince: storedTime,
    followedTo: z.string(),
    fees: z.record(z.string(), storedAmount),
    rates: z.record(z.string(), storedAmount),
    balances: z.array(reconciledBalance),
  }),
});

const acceptedField = z.object({
  acceptedDrops: z.object({ upTo: storedTime, by: z.string(), reason: z.string() }),
});

export async function saveReconciliation(
  { redis, keys }: LedgerConnection,
  reconciliation: Reconciliation,
): Promise<void> {
  await ask(redis.hset(keys.gateway, 'reconciliation', JSON.stringify({ reconciliation })));
}

/** The event is also an activity of the worker. */
export async function reportDrop({ run, clock }: LedgerConnection, reason: string): Promise<void> {
  await run('publish-event', {
    ...{ kind: 'balance_dropped', at: clock.wallNow(), to: '', by: 'worker' },
    reason: toLine(reason),
  });
}

/**
 * Records that an operator accepted the reports, which ends their alert. Later drops alert again.
 * @param upTo - drops reported up to then, by the worker's wall clock, ms
 * @throws RedisUnavailableError if it may or may not have happened; a repeat is safe
 */
export async function acceptDrops(
  { redis, keys, run, clock }: LedgerConnection,
  upTo: number,
  { by, reason }: Actor,
): Promise<void> {
  const acceptedDrops: AcceptedDrops = { upTo, by, reason };
  await run('publish-event', {
    ...{ kind: 'drop_accepted', at: clock.wallNow(), to: '' },
    ...{ by: toLine(by), reason: toLine(reason) },
  });
  await ask(redis.hset(keys.gateway, 'acceptedDrops', JSON.stringify({ acceptedDrops })));
}

/** A balance's decrease that no payout explains and no operator has accepted. */
export interface UnexplainedDrop {
  /** The currency's name, or the account's symbol; `USD` if the gateway names neither. */
  readonly currency: string;
  /** A decimal string; `0` if nothing is missing. */
  readonly amount: string;
  /** When the first of it was noticed, if something is missing. Wall clock, ms. */
  readonly since?: number;
}

export function summariseDrops(
  { reconciliation, acceptedDrops }: StoredReconciliation,
  currencies: readonly Currency[],
): UnexplainedDrop[] {
  return (reconciliation?.balances ?? []).map((balance) => {
    const { amount = '0', since } = pendingDrop(balance, acceptedDrops?.upTo) ?? {};
    return { currency: nameBalance(balance, currencies), amount, ...(since !== undefined && { since }) };
  });
}

export function listDrops(drops: readonly UnexplainedDrop[]): string {
  return drops.map(({ currency, amount }) => formatAmount(amount, currency)).join(', ');
}
