import { pipelined, type LedgerConnection } from './ledger-connection.js';
import type { PayoutIndex } from './keys.js';

export interface IndexEntry {
  readonly payoutId: string;
  /** Orders the index; all indexes of an account share one counter. */
  readonly place: number;
  /** Its id in the index's stream; undefined if it is in the sorted set. */
  readonly streamId: string | undefined;
}

export interface IndexRange {
  /** Begin after this place, in the direction of reading; undefined: at the first one. */
  readonly after?: string | number | undefined;
  /** The last place to read. Only if the oldest come first. */
  readonly upTo?: string | undefined;
  readonly limit: number;
  /** @defaultValue false */
  readonly newestFirst?: boolean;
}

/** Takes one round trip. Entries are in the direction of reading. */
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

export async function readIndex(
  connection: LedgerConnection,
  index: PayoutIndex,
  range: IndexRange,
): Promise<IndexEntry[]> {
  const [entries = []] = await readIndexes(connection, [index], range);
  return entries;
}

/** The next reading's `after`; undefined at the end. */
export function nextPlace(entries: readonly IndexEntry[], limit: number): string | undefined {
  const last = entries.length < limit ? undefined : entries.at(-1);
  return last === undefined ? undefined : String(last.place);
}

/** An id's highest second part, after all of a place, even entries of others, so that each page leads on. */
const MAX_PART = '18446744073709551615';

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
