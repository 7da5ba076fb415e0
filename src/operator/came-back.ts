import { RedisUnavailableError } from '../base/errors.js';
import { ask, type LedgerConnection } from '../ledger/ledger-connection.js';
import type { HeldFor, Payout } from '../ledger/payout.js';
import { listPayouts, readEach } from '../ledger/payout-queries.js';

/**
 * The payouts of which an older Redis decides when, or whether, they are sent: no journal knows of holds and dates, so
 * what was decided about them since that copy is lost.
 */
export interface CameBack {
  readonly held: CameBackList<Pick<Payout, 'payoutId' | 'updatedAt'> & { readonly held: HeldFor }>;
  /** Of queued payouts, the earliest first. One whose date has passed is sent as soon as the account is resumed. */
  readonly notBefore: CameBackList<{ readonly payoutId: string; readonly notBefore: string }>;
}

/** The first ones, and how many there are beyond. */
export interface CameBackList<Item> {
  readonly payouts: readonly Item[];
  readonly more: number;
}

/** More than a person looks through. */
const LISTED = 1_000;

/**
 * @param listed - how many of each. @defaultValue 1,000
 * @returns undefined if Redis is unavailable: the adoption has ended, and is not to fail for its list
 */
export async function readCameBack(connection: LedgerConnection, listed = LISTED): Promise<CameBack | undefined> {
  try {
    return { held: await readHeld(connection, listed), notBefore: await readDates(connection, listed) };
  } catch (error) {
    if (error instanceof RedisUnavailableError) return undefined;
    throw error;
  }
}

async function readHeld(connection: LedgerConnection, listed: number): Promise<CameBack['held']> {
  const total = await ask(connection.redis.zcard(connection.keys.state('held')));
  const { payouts, next } = await listPayouts(connection, { state: 'held', limit: listed });
  return {
    payouts: payouts.flatMap(({ payoutId, updatedAt, held }) => (held ? [{ payoutId, updatedAt, held }] : [])),
    more: next === undefined ? 0 : Math.max(0, total - listed),
  };
}

async function readDates(connection: LedgerConnection, listed: number): Promise<CameBack['notBefore']> {
  const { redis, keys } = connection;
  const [total, entries] = await Promise.all([
    ask(redis.zcard(keys.scheduled)),
    ask(redis.zrange(keys.scheduled, '0', String(listed - 1))),
  ]);
  const payoutIds = entries.map((entry) => entry.slice(entry.indexOf(' ') + 1));
  const { payouts } = await readEach(connection, payoutIds);
  return {
    payouts: payouts.flatMap(({ payoutId, state, notBefore }) =>
      state === 'queued' && notBefore !== undefined ? [{ payoutId, notBefore }] : [],
    ),
    more: Math.max(0, total - listed),
  };
}
