import { isAborted } from '../../clock.js';
import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { duplicateForWaiting, type RedisClient } from '../../redis.js';
import { parseEvent, type PayoutEvent } from './payout-events.js';

/** Waits at the end of an account's event stream, on a connection of its own. */
export class EventTail {
  readonly #connection: LedgerConnection;
  readonly #waitMs: number;
  #redis: RedisClient | undefined;
  readonly #closed = new AbortController();

  /** @param waitMs - for how long one read waits at most */
  constructor(connection: LedgerConnection, waitMs: number) {
    this.#connection = connection;
    this.#waitMs = waitMs;
  }

  /**
   * Waits until there are events behind this one.
   * @returns the first of them, none when the time is over or the tail was closed
   * @throws RedisUnavailableError
   */
  async read(afterEventId: string, limit: number): Promise<PayoutEvent[]> {
    if (isAborted(this.#closed.signal)) return [];
    this.#redis ??= duplicateForWaiting(this.#connection.redis, this.#waitMs);
    const { events } = this.#connection.keys;
    const waiting = this.#redis.xread('COUNT', limit, 'BLOCK', this.#waitMs, 'STREAMS', events, afterEventId);
    try {
      const [stream] = (await ask(waiting)) ?? [];
      return (stream?.[1] ?? []).map(([eventId, pairs]) => parseEvent(eventId, pairs));
    } catch (error) {
      if (isAborted(this.#closed.signal)) return [];
      throw error;
    }
  }

  /** Ends also a read that waits. */
  close(): void {
    this.#closed.abort();
    this.#redis?.disconnect();
  }
}
