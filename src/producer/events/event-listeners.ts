import { isAborted, type Clock } from '../../clock.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Logger } from '../../logger.js';
import { EventTail } from './event-tail.js';
import { findEventsEnd, type PayoutEvent, type PayoutEventName } from './payout-events.js';

/** Called for each event in turn; a returned promise is not awaited. */
export type PayoutEventListener = (event: PayoutEvent) => unknown;

const WAIT_MS = 5_000;
const LIMIT = 100;
const RETRY_MS = 500;

/**
 * Notifies listeners of events from now on, for screens and logs. Events during downtime are missed; an event group
 * misses none.
 */
export class EventListeners {
  readonly #connection: LedgerConnection;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #tail: EventTail;
  readonly #closed: AbortSignal;
  readonly #listeners = new Map<PayoutEventName, Set<PayoutEventListener>>();
  #following = false;

  constructor(connection: LedgerConnection, logger: Logger, closed: AbortSignal) {
    this.#connection = connection;
    this.#clock = connection.clock;
    this.#logger = logger;
    this.#tail = new EventTail(connection, WAIT_MS);
    this.#closed = closed;
    closed.addEventListener('abort', () => {
      this.#tail.close();
    });
  }

  on(name: PayoutEventName, listener: PayoutEventListener): void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    if (this.#following) return;
    this.#following = true;
    void this.#follow();
  }

  off(name: PayoutEventName, listener: PayoutEventListener): void {
    this.#listeners.get(name)?.delete(listener);
  }

  async #follow(): Promise<void> {
    let afterEventId: string | undefined;
    while (!isAborted(this.#closed)) {
      try {
        afterEventId ??= (await findEventsEnd(this.#connection)).afterEventId;
        for (const event of await this.#tail.read(afterEventId, LIMIT)) {
          afterEventId = event.eventId;
          this.#tell(event);
        }
      } catch (error) {
        this.#logger.debug({ error: (error as Error).message }, 'listeners wait for Redis');
        await this.#clock.sleep(RETRY_MS, this.#closed);
      }
    }
  }

  /** One listener's error does not affect the others. */
  #tell(event: PayoutEvent): void {
    const name = event.type === 'state' ? event.to : event.type;
    if (name === undefined) return;
    const complain = (error: unknown): void => {
      this.#logger.error({ eventId: event.eventId, error: String(error) }, 'a listener for payout events failed');
    };
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        void Promise.resolve(listener(event)).catch(complain);
      } catch (error) {
        complain(error);
      }
    }
  }
}
