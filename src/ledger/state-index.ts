import { pipelined, type LedgerConnection } from './ledger-connection.js';
import type { PayoutIndex } from './keys.js';

/** A payout in an index. */
export interface IndexEntry {
  readonly payoutId: string;
  /** The number that orders the index; all indexes of an account share one counter. */
  readonly place: number;
  /** Its id in the index's stream; undefined where it is in the sorted set. */
  readonly streamId: string | undefined;
}

/** Which part of an index to read. */
export interface IndexRange {
  /** Begin behind this place, in the direction of reading; at the first one where it is undefined. */
  readonly after?: string | number | undefined;
  /** The last place to read. Only where the oldest come first. */
  readonly upTo?: string | undefined;
  readonly limit: number;
  /** @defaultValue false */
  readonly newestFirst?: boolean;
}

/**
 * Reads the same part of several indexes in one round trip.
 * @returns the entries of each index, in the direction of reading
 * @throws RedisUnavailableError
 */
export async function readIndexes(
  connection: LedgerConnection,
  indexes: readonly PayoutIndex[],
  { after, upTo, limit, newestFirst = false }: IndexRange,
): Promise<IndexEntry[][]> {
  const replies = await pipelined(connection, (pipeline) => {
    for (const { sortedSet, stream } of indexes) {
      const [start, end] = [after === undefined ? undefined : `(${after}`, upTo];
      if (newestFirst)
        pipeline.zrange(sortedSet, start ?? '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit, 'WITHSCORES');
      else pipeline.zrange(sortedSet, start ?? '-inf', end ?? '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES');
      if (stream === undefined) continue;
      if (newestFirst) pipeline.xrevrange(stream, toStreamId(start) ?? '+', '-', 'COUNT', limit);
      else pipeline.xrange(stream, toStreamId(start, MAX_PART) ?? '-', toStreamId(end) ?? '+', 'COUNT', limit);
    }
  });
  return indexes.map(({ stream }) => {
    const entries = parseSortedSet(replies.shift() as string[]);
    if (stream !== undefined) entries.push(...parseStream(replies.shift() as [string, string[]][]));
    // Each part is in order already.
    entries.sort((one, other) => (newestFirst ? other.place - one.place : one.place - other.place));
    return entries.slice(0, limit);
  });
}

/** As {@link readIndexes}, of one index. */
export async function readIndex(
  connection: LedgerConnection,
  index: PayoutIndex,
  range: IndexRange,
): Promise<IndexEntry[]> {
  const [entries = []] = await readIndexes(connection, [index], range);
  return entries;
}

/** Where the next page begins: `after` of the next reading; undefined at the end. */
export function nextPlace(entries: readonly IndexEntry[], limit: number): string | undefined {
  const last = entries.length < limit ? undefined : entries.at(-1);
  return last === undefined ? undefined : String(last.place);
}

/** The highest second part of an id: behind all of a place, also what somebody put there, so that each page leads on. */
const MAX_PART = '18446744073709551615';

/** The id that the scripts give to the entry of a place. */
function toStreamId(place: string | undefined, part = '0'): string | undefined {
  return place === undefined ? undefined : `${place}-${part}`;
}

function parseSortedSet(reply: readonly string[]): IndexEntry[] {
  return reply.flatMap((payoutId, at) =>
    at % 2 === 0 ? [{ payoutId, place: Number(reply[at + 1]), streamId: undefined }] : [],
  );
}

function parseStream(reply: readonly (readonly [string, readonly string[]])[]): IndexEntry[] {
  return reply.map(([id, [, payoutId = '']]) => ({ payoutId, place: Number.parseInt(id, 10), streamId: id }));
}
