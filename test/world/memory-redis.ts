import { LuaTable } from './lua-parser.js';

export type Reply = null | number | string | readonly Reply[];

export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

type StreamId = readonly [ms: number, sequence: number];

interface StreamEntry {
  readonly id: StreamId;
  readonly fields: readonly string[];
}

interface Stream {
  readonly entries: StreamEntry[];
  last: StreamId;
}

/** What a key may hold. Of a sorted set: the scores by member. */
type Contents = Readonly<{
  hash: Map<string, string>;
  zset: Map<string, number>;
  set: Set<string>;
  stream: Stream;
}>;
type Content = Contents[keyof Contents];

interface Kept {
  readonly kind: keyof Contents;
  readonly content: Content;
  /** Of which time: what was kept before the last snapshot is copied before it is changed. */
  readonly era: object;
  version: number;
}

export interface RedisSnapshot {
  readonly keys: ReadonlyMap<string, Kept>;
}

const EMPTY: { readonly [Kind in keyof Contents]: () => Contents[Kind] } = {
  hash: () => new Map(),
  zset: () => new Map(),
  set: () => new Set(),
  stream: () => ({ entries: [], last: [0, 0] }),
};

let versions = 0;

const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';

/**
 * A Redis in memory, with the commands of the ledger's scripts and of the sender's other calls. `memory-redis.test.ts`
 * compares it with a real one, command by command.
 */
export class MemoryRedis {
  readonly #wallNow: () => number;
  #keys = new Map<string, Kept>();
  #era = {};
  keysVersion = 0;
  /** No stream gives an id again after the keys came back older: a restart takes longer than a millisecond. */
  #highest: StreamId = [0, 0];

  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  snapshot(): RedisSnapshot {
    this.#era = {};
    return { keys: new Map(this.#keys) };
  }

  restore({ keys }: RedisSnapshot): void {
    this.#era = {};
    this.#keys = new Map(keys);
    this.keysVersion += 1;
  }

  dump(): unknown {
    return [...this.#keys].map(([key, { content }]) => [key, copy(content)]);
  }

  flush(): void {
    this.#keys = new Map();
    this.keysVersion += 1;
  }

  call(name: string, args: readonly string[]): Reply {
    const command = COMMANDS[name];
    if (command === undefined) throw new ReplyError(`ERR unknown command '${name}'`);
    return command(this, args);
  }

  wallNow(): number {
    return this.#wallNow();
  }

  /** For reading only. */
  read<Kind extends keyof Contents>(key: string, kind: Kind): Contents[Kind] | undefined {
    const kept = this.#keys.get(key);
    if (kept === undefined) return undefined;
    if (kept.kind !== kind) throw new ReplyError(WRONG_TYPE);
    return kept.content as Contents[Kind];
  }

  /** To be changed; empty where there is nothing yet. */
  write<Kind extends keyof Contents>(key: string, kind: Kind): Contents[Kind] {
    const known = this.read(key, kind);
    const kept = this.#keys.get(key);
    if (known !== undefined && kept?.era === this.#era) {
      kept.version = versions += 1;
      return known;
    }
    if (kept === undefined) this.keysVersion += 1;
    const content = (known === undefined ? EMPTY[kind]() : copy(known)) as Contents[Kind];
    this.#keys.set(key, { kind, content, era: this.#era, version: (versions += 1) });
    return content;
  }

  /** Two equal answers are of the same content; 0 where there is none. */
  versionOf(key: string): number {
    return this.#keys.get(key)?.version ?? 0;
  }

  keysOf(prefix: string): string[] {
    const found: string[] = [];
    for (const key of this.#keys.keys()) if (key.startsWith(prefix)) found.push(key.slice(prefix.length));
    return found;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  remove(key: string): boolean {
    this.keysVersion += 1;
    return this.#keys.delete(key);
  }

  nextId({ last }: Stream): StreamId {
    const [ms, sequence] = compareIds(last, this.#highest) < 0 ? this.#highest : last;
    const now = this.#wallNow();
    this.#highest = now > ms ? [now, 0] : [ms, sequence + 1];
    return this.#highest;
  }
}

function copy(content: Content): Content {
  if (content instanceof Map) return new Map(content as Map<string, never>);
  if (content instanceof Set) return new Set(content);
  return { entries: [...content.entries], last: content.last };
}

type Command = (redis: MemoryRedis, args: readonly string[]) => Reply;

const COMMANDS: Readonly<Record<string, Command | undefined>> = {
  TIME: (redis) => {
    const now = redis.wallNow();
    return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
  },
  EXISTS: (redis, keys) => keys.filter((key) => redis.has(key)).length,
  DEL: (redis, keys) => keys.filter((key) => redis.remove(key)).length,

  HGET: (redis, args) => redis.read(args[0] ?? '', 'hash')?.get(args[1] ?? '') ?? null,
  HMGET: (redis, args) => {
    const hash = redis.read(args[0] ?? '', 'hash');
    const values: (string | null)[] = [];
    for (let index = 1; index < args.length; index += 1) values.push(hash?.get(args[index] ?? '') ?? null);
    return values;
  },
  HGETALL: (redis, args) => {
    const pairs: string[] = [];
    redis.read(args[0] ?? '', 'hash')?.forEach((value, field) => pairs.push(field, value));
    return pairs;
  },
  HKEYS: (redis, [key = '']) => [...(redis.read(key, 'hash')?.keys() ?? [])],
  HLEN: (redis, [key = '']) => redis.read(key, 'hash')?.size ?? 0,
  HEXISTS: (redis, [key = '', field = '']) => Number(redis.read(key, 'hash')?.has(field) ?? false),
  HSET: (redis, args) => {
    if (args.length < 3 || args.length % 2 === 0) throw wrongArguments('hset');
    const hash = redis.write(args[0] ?? '', 'hash');
    const before = hash.size;
    for (let index = 1; index < args.length; index += 2) hash.set(args[index] ?? '', args[index + 1] ?? '');
    return hash.size - before;
  },
  HSETNX: (redis, [key = '', field = '', value = '']) => {
    if (redis.read(key, 'hash')?.has(field) === true) return 0;
    redis.write(key, 'hash').set(field, value);
    return 1;
  },
  HDEL: (redis, [key = '', ...names]) => removeAll(redis, key, names, 'hash'),
  HINCRBY: (redis, [key = '', field = '', by = '']) => {
    const before = redis.read(key, 'hash')?.get(field) ?? '0';
    if (!/^-?\d{1,18}$/.test(before)) throw new ReplyError('ERR hash value is not an integer');
    const after = Number(before) + Number(by);
    redis.write(key, 'hash').set(field, String(after));
    return after;
  },

  SADD: (redis, [key = '', ...members]) => {
    const set = redis.write(key, 'set');
    const before = set.size;
    for (const member of members) set.add(member);
    return set.size - before;
  },
  SREM: (redis, [key = '', ...names]) => removeAll(redis, key, names, 'set'),
  SMEMBERS: (redis, [key = '']) => [...(redis.read(key, 'set') ?? [])],

  ZADD: (redis, [key = '', ...rest]) => {
    const isNew = rest[0]?.toUpperCase() === 'NX';
    const pairs = isNew ? rest.slice(1) : rest;
    const scores = pairs.filter((_, index) => index % 2 === 0).map(toScore);
    const set = redis.write(key, 'zset');
    const before = set.size;
    for (const [index, score] of scores.entries()) {
      const member = pairs[2 * index + 1] ?? '';
      if (!isNew || !set.has(member)) set.set(member, score);
    }
    return set.size - before;
  },
  ZREM: (redis, [key = '', ...names]) => removeAll(redis, key, names, 'zset'),
  ZSCORE: (redis, [key = '', member = '']) => {
    const score = redis.read(key, 'zset')?.get(member);
    return score === undefined ? null : formatScore(score);
  },
  ZCARD: (redis, [key = '']) => redis.read(key, 'zset')?.size ?? 0,
  ZRANGE: (redis, [key = '', from = '', to = '', ...options]) => {
    const set = redis.read(key, 'zset');
    if (set === undefined) return [];
    const words = options.map((option) => option.toUpperCase());
    if (words.includes('REV')) throw new ReplyError('ERR REV is not supported here');
    let found = [...set].sort(([one, score], [other, otherScore]) => score - otherScore || (one < other ? -1 : 1));
    if (words.includes('BYSCORE')) {
      found = found.filter(([, score]) => isWithin(score, from, 1) && isWithin(score, to, -1));
      const limit = words.indexOf('LIMIT');
      if (limit >= 0) {
        const [skip, count] = [Number(options[limit + 1]), Number(options[limit + 2])];
        found = found.slice(skip, count < 0 ? undefined : skip + count);
      }
    } else {
      const last = Number(to) < 0 ? found.length + Number(to) : Number(to);
      found = found.slice(Number(from), last + 1);
    }
    return words.includes('WITHSCORES')
      ? found.flatMap(([member, score]) => [member, formatScore(score)])
      : found.map(([member]) => member);
  },

  XADD: addToStream,
  XLEN: (redis, [key = '']) => redis.read(key, 'stream')?.entries.length ?? 0,
  XRANGE: (redis, [key = '', from = '', to = '', , count = 'Infinity']) =>
    range(redis, key, from, to).slice(0, Number(count)).map(toEntry),
  XREVRANGE: (redis, [key = '', to = '', from = '', , count = 'Infinity']) =>
    range(redis, key, from, to).reverse().slice(0, Number(count)).map(toEntry),
  XDEL: (redis, [key = '', ...ids]) => {
    if (!redis.has(key)) return 0;
    const { entries } = redis.write(key, 'stream');
    const before = entries.length;
    for (const id of ids.map((text) => parseId(text))) {
      const index = entries.findIndex((entry) => compareIds(entry.id, id) === 0);
      if (index >= 0) entries.splice(index, 1);
    }
    return before - entries.length;
  },
  XINFO: (redis, [what = '', key = '']) => {
    const stream = redis.read(key, 'stream');
    if (what.toUpperCase() !== 'STREAM') throw new ReplyError(`ERR XINFO ${what} is not supported here`);
    if (stream === undefined) throw new ReplyError('ERR no such key');
    return ['length', stream.entries.length, 'last-generated-id', formatId(stream.last)];
  },
};

function wrongArguments(name: string): ReplyError {
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** A key without content is gone. */
function removeAll(redis: MemoryRedis, key: string, names: readonly string[], kind: 'hash' | 'zset' | 'set') {
  const before = redis.read(key, kind);
  const found = names.filter((name) => before?.has(name));
  if (found.length === 0) return 0;
  const content = redis.write(key, kind);
  const removed = found.filter((name) => content.delete(name)).length;
  if (content.size === 0) redis.remove(key);
  return removed;
}

function toScore(text: string) {
  const infinite = /^([-+]?)inf$/.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  const score = text === '' ? NaN : Number(text);
  if (Number.isNaN(score)) throw new ReplyError('ERR value is not a valid float');
  return score;
}

function formatScore(score: number) {
  if (Number.isFinite(score)) return String(score);
  return score < 0 ? '-inf' : 'inf';
}

/** Whether a score is on the inner side of a bound, or at one that is not exclusive. */
function isWithin(score: number, bound: string, sign: 1 | -1) {
  const isExclusive = bound.startsWith('(');
  const limit = toScore(isExclusive ? bound.slice(1) : bound);
  return score === limit ? !isExclusive : sign * score > sign * limit;
}

function addToStream(redis: MemoryRedis, [key = '', ...rest]: readonly string[]): Reply {
  let at = 0;
  let trim: Readonly<{ by: string; to: string }> | undefined;
  if (rest[0] === 'MAXLEN' || rest[0] === 'MINID') {
    // Redis drops whole blocks of a stream, and only those that are full.
    at = rest[1] === '~' ? 3 : 2;
    if (at === 2) trim = { by: rest[0], to: rest[1] ?? '' };
  }
  const fields = rest.slice(at + 1);
  if (fields.length === 0 || fields.length % 2 === 1) throw wrongArguments('xadd');
  const given = rest[at] === '*' ? undefined : parseId(rest[at] ?? '');
  if (given !== undefined && compareIds(given, redis.read(key, 'stream')?.last ?? [0, 0]) <= 0) {
    throw new ReplyError('ERR The ID specified in XADD is equal or smaller than the target stream top item');
  }
  const stream = redis.write(key, 'stream');
  const id = given ?? redis.nextId(stream);
  stream.entries.push({ id, fields });
  stream.last = id;
  if (trim !== undefined) throw new ReplyError(`ERR an exact ${trim.by} is not supported here`);
  return formatId(id);
}

function parseId(text: string, sequence = 0): StreamId {
  const [ms = '', rest] = text.split('-');
  if (!/^\d+$/.test(ms)) throw new ReplyError('ERR Invalid stream ID specified as stream command argument');
  return [Number(ms), rest === undefined ? sequence : Number(rest)];
}

function formatId([ms, sequence]: StreamId) {
  return `${ms}-${sequence}`;
}

function compareIds(one: StreamId, other: StreamId) {
  if (one[0] !== other[0]) return one[0] < other[0] ? -1 : 1;
  return one[1] === other[1] ? 0 : one[1] < other[1] ? -1 : 1;
}

function range(redis: MemoryRedis, key: string, from: string, to: string): StreamEntry[] {
  const entries = redis.read(key, 'stream')?.entries ?? [];
  if (from === '-' && to === '+') return [...entries];
  const isInside = (id: StreamId, bound: string, sign: 1 | -1) => {
    if (bound === '-' || bound === '+') return (bound === '-') === (sign === 1);
    const isExclusive = bound.startsWith('(');
    // A bound that names a millisecond only is its first or its last id.
    const by = sign * compareIds(id, parseId(isExclusive ? bound.slice(1) : bound, sign === 1 ? 0 : Infinity));
    return by > 0 || (!isExclusive && by === 0);
  };
  return entries.filter(({ id }) => isInside(id, from, 1) && isInside(id, to, -1));
}

function toEntry({ id, fields }: StreamEntry): Reply {
  return [formatId(id), fields];
}

export function toLua(reply: Reply): unknown {
  if (reply === null) return false;
  if (typeof reply !== 'object') return reply;
  const items: unknown[] = [];
  for (const item of reply) items.push(typeof item === 'string' ? item : toLua(item));
  return new LuaTable(items);
}

export function fromLua(value: unknown): Reply {
  if (value === undefined || value === false) return null;
  if (value === true) return 1;
  if (typeof value === 'number') return Math.trunc(value);
  if (!(value instanceof LuaTable)) return value as string;
  const error = value.get('err');
  if (error !== undefined) throw new ReplyError(error as string);
  const reply: Reply[] = [];
  for (const item of value.items) {
    if (item === undefined) break;
    reply.push(typeof item === 'string' ? item : fromLua(item));
  }
  return reply;
}
