import { once, setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { followSignals, isAborted, untilAborted, within } from '../base/clock.js';
import { RedisUnavailableError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { toPlainJson } from '../base/plain-text.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { EventTail, findEventsEnd, readEvents } from '../producer/events/payout-events.js';

/** Server-sent events of an account: in order, each at least once. */

const PAGE = 100;
const TAIL_WAIT_MS = 5_000;
const RETRY_MS = 500;
/** Proxies end a connection that is silent for a minute. */
const KEEP_ALIVE_MS = 10_000;
/** A reader that takes nothing for so long is disconnected. */
const SLOW_READER_MS = 30_000;

/**
 * Wakes the readers of an account's events. All share one waiting connection to Redis.
 * @returns a signal that is aborted once there are new events; to be taken before the events are read
 */
export function openBell(connection: LedgerConnection, logger: Logger, closed: AbortSignal): () => AbortSignal {
  let rings = new AbortController();
  let following: Promise<void> | undefined;
  // One listener for each reader.
  setMaxListeners(0, closed, rings.signal);
  const ring = (): void => {
    const rung = rings;
    rings = new AbortController();
    setMaxListeners(0, rings.signal);
    rung.abort('rung');
  };
  const follow = async (): Promise<void> => {
    const tail = new EventTail(connection, TAIL_WAIT_MS);
    void untilAborted(closed).then(() => {
      tail.close();
    });
    let after: string | undefined;
    while (!isAborted(closed)) {
      try {
        if (after === undefined) {
          after = (await findEventsEnd(connection)).afterEventId;
          ring();
        }
        const events = await tail.read(after, PAGE);
        after = events.at(-1)?.eventId ?? after;
        if (events.length > 0) ring();
      } catch (error) {
        logger.debug({ error: (error as Error).message }, 'readers of events wait for Redis');
        await connection.clock.sleep(RETRY_MS, closed);
      }
    }
  };
  return () => {
    following ??= follow();
    return rings.signal;
  };
}

interface EventReader {
  readonly connection: LedgerConnection;
  readonly nextEvents: () => AbortSignal;
  readonly response: ServerResponse;
  readonly after: string | undefined;
  readonly signal: AbortSignal;
  /** Asked at least every ten seconds: false ends the stream. */
  readonly isAllowed: () => boolean;
}

/**
 * Writes events until the reader leaves, or the signal is aborted. Waits for an unavailable Redis once it has begun.
 * @throws RedisUnavailableError before anything is written
 */
export async function streamEvents({ connection, nextEvents, response, after, signal, isAllowed }: EventReader) {
  const ended = followSignals(signal);
  response.once('close', ended.end);
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
      const rings = nextEvents();
      const events = await readPatiently(connection, position, ended.signal);
      position = events.at(-1)?.eventId ?? position;
      text = events.map((event) => `id: ${event.eventId}\ndata: ${toPlainJson(event)}\n\n`).join('');
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
