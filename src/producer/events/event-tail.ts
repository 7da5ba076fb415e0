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

  constructor(connection: LedgerConnection, waitMs: number) {
    this.#connection = connection;
    this.#waitMs = waitMs;
  }

  /**
   * @returns the first of the events behind this one; none after the time limit or a close
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

  close(): void {
    this.#closed.abort();
    this.#redis?.disconnect();
  }
}
