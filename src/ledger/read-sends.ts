import { ask, type LedgerConnection } from './ledger-connection.js';
import { pairsToRecord } from './payout-record.js';

export interface BegunSend {
  readonly payoutId: string;
  /** Wall clock of the worker, ms. */
  readonly at: number;
  /** By the clock of Redis, ms. */
  readonly storedAt: number;
}

export interface ReadSendsOptions {
  readonly limit: number;
  readonly before?: string | undefined;
}

/** A page may be short or empty and still have a next one. */
const SEARCHED_EVENTS = 5_000;
const EVENTS_PER_READ = 1_000;

/** The newest sends first, as far as events are kept. For people: someone who can write to Redis can alter it. */
export async function readSends(
  { redis, keys }: LedgerConnection,
  { limit, before }: ReadSendsOptions,
): Promise<{ readonly sends: readonly BegunSend[]; readonly next: string | undefined }> {
  const sends: BegunSend[] = [];
  let place = before;
  for (let searched = 0; searched < SEARCHED_EVENTS; searched += EVENTS_PER_READ) {
    const start = place === undefined ? '+' : `(${place}`;
    const events = await ask(redis.xrevrange(keys.events, start, '-', 'COUNT', EVENTS_PER_READ));
    for (const [eventId, pairs] of events) {
      place = eventId;
      const { type, to, payoutId = '', at } = pairsToRecord(pairs);
      // Adoptions move payouts too; only a begin leads to this state.
      const isBegin = type === 'state' && to === 'sending' && !Number.isNaN(new Date(Number(at)).getTime());
      if (!isBegin) continue;
      sends.push({ payoutId, at: Number(at), storedAt: Number(eventId.split('-')[0]) });
      if (sends.length === limit) return { sends, next: place };
    }
    if (events.length < EVENTS_PER_READ) return { sends, next: undefined };
  }
  return { sends, next: place };
}
