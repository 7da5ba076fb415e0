import type { Actor } from './actor.js';
import { ask, type LedgerConnection } from './ledger-connection.js';
import { toLine } from './payout.js';
import type { AcceptedDrops, Reconciliation } from './reconciliation.js';

/** What stands in Redis of the comparison, beside the facts of the gateway. */
export interface StoredReconciliation {
  /** Undefined where nothing was compared yet. */
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

/** Tells it as an event and as an activity of the worker. @throws RedisUnavailableError */
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
