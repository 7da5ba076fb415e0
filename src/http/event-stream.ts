import { once, setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { followSignals, isAborted, untilAborted, within } from '../base/clock.js';
import { RedisUnavailableError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { EventTail, findEventsEnd, readEvents } from '../producer/events/payout-events.js';

/** Server-sent events of an account: in order, each at least once, from any place that is still kept. */

const PAGE = 100;
const TAIL_WAIT_MS = 5_000;
const RETRY_MS = 500;
/** Proxies end a connection that is silent for a minute. */
const KEEP_ALIVE_MS = 10_000;
/** A reader that takes nothing for so long is disconnected, and continues with its last id. */
const SLOW_READER_MS = 30_000;

/** Wakes the readers of an account's events. All share one waiting connection to Redis. */
export class EventBell {
  readonly #connection: LedgerConnection;
  readonly #logger: Logger;
  readonly #closed: AbortSignal;
  #rings = new AbortController();
  #isFollowing = false;

  constructor(connection: LedgerConnection, logger: Logger, closed: AbortSignal) {
    this.#connection = connection;
    this.#logger = logger;
    this.#closed = closed;
    // One listener for each reader.
    setMaxListeners(0, closed, this.#rings.signal);
  }

  /** Aborted once there are new events. To be taken before the events are read. */
  get next(): AbortSignal {
    if (!this.#isFollowing) {
      this.#isFollowing = true;
      void this.#follow();
    }
    return this.#rings.signal;
  }

  #ring(): void {
    const rung = this.#rings;
    this.#rings = new AbortController();
    setMaxListeners(0, this.#rings.signal);
    rung.abort('rung');
  }

  async #follow(): Promise<void> {
    const { clock } = this.#connection;
    const tail = new EventTail(this.#connection, TAIL_WAIT_MS);
    const close = (): void => {
      tail.close();
    };
    this.#closed.addEventListener('abort', close, { once: true });
    let after: string | undefined;
    while (!isAborted(this.#closed)) {
      try {
        if (after === undefined) {
          after = (await findEventsEnd(this.#connection)).afterEventId;
          // What came before is not waited for.
          this.#ring();
        }
        const events = await tail.read(after, PAGE);
        after = events.at(-1)?.eventId ?? after;
        if (events.length > 0) this.#ring();
      } catch (error) {
        this.#logger.debug({ error: (error as Error).message }, 'readers of events wait for Redis');
        await clock.sleep(RETRY_MS, this.#closed);
      }
    }
  }
}

interface EventReader {
  readonly connection: LedgerConnection;
  readonly bell: EventBell;
  readonly response: ServerResponse;
  /** The id after which it begins. @defaultValue the newest event */
  readonly after: string | undefined;
  /** Ends the stream. */
  readonly signal: AbortSignal;
  /** Asked at least every ten seconds: false ends the stream, as after the loss of its token. */
  readonly isAllowed: () => boolean;
}

/**
 * Writes events until the reader leaves, or the signal is aborted. Waits for an unavailable Redis once it has begun.
 * @throws RedisUnavailableError before anything is written
 */
export async function streamEvents({ connection, bell, response, after, signal, isAllowed }: EventReader) {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort('gone');
  });
  const ended = followSignals(signal, gone.signal);
  let position = after ?? (await findEventsEnd(connection)).afterEventId;
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // nginx would collect events before it passes them on.
    'x-accel-buffering': 'no',
  });
  // An id without data moves the reader's place, so that it misses nothing if it reconnects before the first event.
  let text = `retry: 1000\nid: ${position}\n\n`;
  try {
    while (!isAborted(ended.signal) && isAllowed() && (await write(response, text, ended.signal))) {
      const rings = bell.next;
      const events = await readPatiently(connection, position, ended.signal);
      position = events.at(-1)?.eventId ?? position;
      text = events.map((event) => `id: ${event.eventId}\ndata: ${JSON.stringify(event)}\n\n`).join('');
      if (events.length > 0) continue;
      const turn = followSignals(ended.signal, rings);
      await connection.clock.sleep(KEEP_ALIVE_MS, turn.signal);
      turn.end();
      text = rings.aborted ? '' : ': keep-alive\n\n';
    }
  } finally {
    ended.end();
    // `end` would wait for a reader that takes nothing.
    if (response.writableNeedDrain) response.destroy();
    else response.end();
  }
}

async function readPatiently(connection: LedgerConnection, position: string, ended: AbortSignal) {
  try {
    return await readEvents(connection, { afterEventId: position }, PAGE);
  } catch (error) {
    if (!(error instanceof RedisUnavailableError)) throw error;
    await connection.clock.sleep(RETRY_MS, ended);
    return [];
  }
}

/** Waits for a slow reader, so that memory holds one page of it. @returns false if it takes nothing for too long */
async function write(response: ServerResponse, text: string, ended: AbortSignal): Promise<boolean> {
  if (text === '' || response.write(text)) return true;
  const drained = once(response, 'drain').then(() => true);
  drained.catch(() => undefined);
  return (await within(SLOW_READER_MS, Promise.race([drained, untilAborted(ended).then(() => false)]))) ?? false;
}
