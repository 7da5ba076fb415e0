import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import { type Clock, followSignals, isAborted } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import { millisecondsField } from '../../base/fields.js';
import type { Logger } from '../../base/logger.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { lineField } from '../../ledger/payout.js';
import { EventTail, findEventsEnd, parseEvent, type PayoutEvent, type PayoutEventName } from './payout-events.js';

/** An application's subscription to an account's events. */
export interface EventsOptions {
  /** The application: each group gets every event. A new group begins with the oldest event kept. */
  readonly group: string;
  /**
   * This loop, by a name unique within the group. After a crash the same name continues at once. Two loops of one name
   * get the same events twice, which is logged as an error.
   * @defaultValue a unique name; after a crash another loop continues after `claimAfterMs`
   */
  readonly consumer?: string;
  /** Ends the loop at its next event: the way to end without getting the last event again. */
  readonly signal?: AbortSignal;
  /**
   * How long one read waits for events, in ms; the loop continues afterwards. At most 2147483647. @defaultValue 5000
   */
  readonly blockMs?: number;
  /** Another consumer takes over after this time without a heartbeat, in ms. 100 to 2147483647. @defaultValue 30000 */
  readonly claimAfterMs?: number;
}

/** Spares Redis if only some events are of interest. */
interface EventSelection {
  /** The others are acknowledged together, without being yielded. @defaultValue every event is wanted */
  readonly isWanted?: (event: PayoutEvent) => boolean;
  /** How long new events may gather before a read, in ms. @defaultValue 0 */
  readonly lingerMs?: number;
  /** Called after each read of the group, also of no events: at least every `blockMs` while Redis answers. */
  readonly onRead?: () => void;
}

function uniqueConsumer(): string {
  return `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
}

export const eventsSchema = z.strictObject({
  group: lineField,
  consumer: lineField.default(uniqueConsumer),
  signal: z.instanceof(AbortSignal, { error: 'must be an AbortSignal' }).exactOptional(),
  blockMs: millisecondsField(1).default(5_000),
  claimAfterMs: millisecondsField(100).default(30_000),
});

/** Events given to a consumer at a time. Unprocessed ones go to the consumer that takes over. */
const LIMIT = 100;
const LOOK_AGAIN_MS = 500;
const ACKNOWLEDGED_BEFORE = -1;
/** Long enough for any claimAfterMs. */
const GIVEN_UP_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * The events of an account, for one consumer of a group.
 *
 * One consumer of the group at a time gets all events, in the order of the stream, each at least once. An event counts
 * as handled when the loop asks for the next one. A consumer sends a heartbeat every third of `claimAfterMs`, also
 * during a long loop body. Without it, another consumer takes over, beginning with the dead consumer's current event.
 * Waits for an unavailable Redis.
 */
export async function* readGroupEvents(
  connection: LedgerConnection,
  options: z.output<typeof eventsSchema>,
  closed: AbortSignal,
  logger: Logger,
  { isWanted = () => true, lingerMs = 0, onRead }: EventSelection = {},
): AsyncGenerator<PayoutEvent, void, undefined> {
  const { signal: stopped, end } = followSignals(closed, ...(options.signal === undefined ? [] : [options.signal]));
  const group = new EventGroup(connection, options, stopped, lingerMs, logger);
  try {
    while (!stopped.aborted) {
      let handled: PayoutEvent[] = [];
      const events = await group.next();
      onRead?.();
      for (const event of events) {
        handled.push(event);
        if (!isWanted(event)) continue;
        yield event;
        const isOurs = await group.acknowledge(handled);
        handled = [];
        if (!isOurs || isAborted(stopped)) break;
      }
      if (handled.length > 0) await group.acknowledge(handled);
    }
  } finally {
    await group.close();
    end();
  }
}

class EventGroup {
  readonly #run: LedgerConnection['run'];
  readonly #clock: Clock;
  readonly #name: { readonly group: string; readonly consumer: string };
  readonly #claimAfterMs: number;
  readonly #tail: EventTail;
  readonly #lingerMs: number;
  readonly #stopped: AbortSignal;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #logger: Logger;
  #holdsEvents = false;
  /** When this consumer last surely had its events: no other may take them over before `claimAfterMs` has passed. */
  #heldAt = 0;
  #saidShared = false;

  constructor(
    connection: LedgerConnection,
    options: z.output<typeof eventsSchema>,
    stopped: AbortSignal,
    lingerMs: number,
    logger: Logger,
  ) {
    const { group, consumer, claimAfterMs, blockMs } = options;
    this.#run = connection.run;
    this.#clock = connection.clock;
    this.#name = { group, consumer };
    this.#claimAfterMs = claimAfterMs;
    this.#stopped = stopped;
    this.#logger = logger;
    this.#lingerMs = lingerMs;
    this.#tail = new EventTail(connection, blockMs);
    stopped.addEventListener('abort', this.#endTail);
    this.#heartbeat = setInterval(() => void this.#setIdle(0), claimAfterMs / 3);
  }

  async next(): Promise<PayoutEvent[]> {
    const reply = await this.#patiently(async () => {
      this.#heldAt = this.#clock.now();
      return this.#run('read-group-events', { ...this.#name, claimAfterMs: this.#claimAfterMs, limit: LIMIT });
    });
    if (reply === undefined) return [];
    const [newestId, othersForMs, entries] = reply as [string, number, [string, string[]][]];
    this.#holdsEvents = entries.length > 0;
    if (othersForMs > 0) await this.#clock.sleep(Math.min(othersForMs, LOOK_AGAIN_MS), this.#stopped);
    else if (!this.#holdsEvents) await this.#waitBehind(newestId);
    return entries.map(([eventId, pairs]) => parseEvent(eventId, pairs));
  }

  async #waitBehind(newestId: string): Promise<void> {
    const events = await this.#patiently(async () => this.#tail.read(newestId, 1));
    if (events !== undefined && events.length > 0) await this.#clock.sleep(this.#lingerMs, this.#stopped);
  }

  /** @returns false if another consumer has taken over with all later events */
  async acknowledge(events: readonly PayoutEvent[]): Promise<boolean> {
    const [eventId = '', ...before] = events.map((event) => event.eventId).reverse();
    const had = this.#clock.now() - this.#heldAt < this.#claimAfterMs;
    let calls = 0;
    const reply = await this.#patiently(async () => {
      calls += 1;
      return this.#run('ack-group-event', { ...this.#name, eventId }, [], before);
    }, true);
    // A repeated call may find its own acknowledgement.
    if (reply === ACKNOWLEDGED_BEFORE && had && calls === 1) this.#saySharedName();
    return reply === 1;
  }

  #saySharedName(): void {
    if (this.#saidShared) return;
    this.#saidShared = true;
    const { group, consumer } = this.#name;
    this.#logger.error(
      { group, consumer },
      `events come twice: another loop uses the consumer name ${JSON.stringify(consumer)} of the group ` +
        `${JSON.stringify(group)} too, or a shorter claimAfterMs. Leave out consumer for a unique name`,
    );
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#stopped.removeEventListener('abort', this.#endTail);
    this.#endTail();
    await this.#setIdle(GIVEN_UP_MS);
  }

  readonly #endTail = (): void => {
    this.#tail.close();
  };

  async #setIdle(idleMs: number): Promise<void> {
    if (!this.#holdsEvents) return;
    try {
      const at = this.#clock.now();
      if (((await this.#run('set-group-idle', { ...this.#name, idleMs, limit: LIMIT })) as number) > 0)
        this.#heldAt = at;
    } catch {
      // Another consumer then takes over later or earlier, and the acknowledgement detects it.
    }
  }

  /**
   * Waits for an unavailable Redis.
   * @param once - tried even after a stop
   * @returns undefined if stopped meanwhile
   */
  async #patiently<Result>(work: () => Promise<Result>, once = false): Promise<Result | undefined> {
    for (let attempt = 0; !this.#stopped.aborted || (once && attempt === 0); attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof RedisUnavailableError)) throw error;
        await this.#clock.sleep(LOOK_AGAIN_MS, this.#stopped);
      }
    }
    return undefined;
  }
}

/** Called for each event in turn; a returned promise is not awaited. */
export type PayoutEventListener = (event: PayoutEvent) => unknown;

const WAIT_MS = 5_000;
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
          this.#emit(event);
        }
      } catch (error) {
        this.#logger.debug({ error: (error as Error).message }, 'listeners wait for Redis');
        await this.#clock.sleep(RETRY_MS, this.#closed);
      }
    }
  }

  /** One listener's error does not affect the others. */
  #emit(event: PayoutEvent): void {
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
