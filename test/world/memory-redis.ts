import type { RedisClient } from '../../src/base/redis.js';
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

type Contents = Readonly<{ hash: Map<string, string>; zset: Map<string, number>; set: Set<string>; stream: Stream }>;
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
  /** No stream gives an id again after the keys came back older: a restart takes longer than a millisecond. */
  #highest: StreamId = [0, 0];

  constructor(wallNow: () => number) {
    this.#wallNow = wallNow;
  }

  snapshot(): RedisSnapshot {
    this.#era = {};
    return { keys: new Map(this.#keys) };
  }

  restore({ keys }: RedisSnapshot) {
    this.#era = {};
    this.#keys = new Map(keys);
  }

  dump(): unknown {
    return [...this.#keys].map(([key, { content }]) => [key, copy(content)]);
  }

  flush() {
    this.#keys = new Map();
  }

  call(name: string, args: readonly string[]): Reply {
    const command = COMMANDS[name];
    if (command === undefined) throw new ReplyError(`ERR unknown command '${name}'`);
    return command(this, args);
  }

  wallNow() {
    return this.#wallNow();
  }

  read<Kind extends keyof Contents>(key: string, kind: Kind): Contents[Kind] | undefined {
    const kept = this.#keys.get(key);
    if (kept === undefined) return undefined;
    if (kept.kind !== kind) throw new ReplyError(WRONG_TYPE);
    return kept.content as Contents[Kind];
  }

  write<Kind extends keyof Contents>(key: string, kind: Kind): Contents[Kind] {
    const known = this.read(key, kind);
    const kept = this.#keys.get(key);
    if (known !== undefined && kept?.era === this.#era) {
      kept.version = versions += 1;
      return known;
    }
    const content = (known === undefined ? EMPTY[kind]() : copy(known)) as Contents[Kind];
    this.#keys.set(key, { kind, content, era: this.#era, version: (versions += 1) });
    return content;
  }

  versionOf(key: string) {
    return this.#keys.get(key)?.version ?? 0;
  }

  keysOf(prefix: string) {
    return [...this.#keys.keys()].flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []));
  }

  has(key: string) {
    return this.#keys.has(key);
  }

  remove(key: string) {
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

type Args = readonly string[];
type Command = (redis: MemoryRedis, args: Args) => Reply;

const reading =
  <Kind extends keyof Contents>(kind: Kind, run: (content: Contents[Kind], args: Args) => Reply): Command =>
  (redis, [key = '', ...args]) =>
    run(redis.read(key, kind) ?? EMPTY[kind](), args);

/** @returns how many it has more than before */
const adding =
  <Kind extends 'hash' | 'set'>(kind: Kind, add: (content: Contents[Kind], args: Args) => void): Command =>
  (redis, [key = '', ...args]) => {
    const content = redis.write(key, kind);
    const before = content.size;
    add(content, args);
    return content.size - before;
  };

function* inPairs(items: Args): Generator<[one: string, other: string]> {
  for (let index = 0; index < items.length; index += 2) yield [items[index] ?? '', items[index + 1] ?? ''];
}

const addFields = adding('hash', (hash, args) => {
  for (const [field, value] of inPairs(args)) hash.set(field, value);
});

const addScores: Command = (redis, [key = '', first = '', ...rest]) => {
  const isNew = first.toUpperCase() === 'NX';
  // Before there is a key: a wrong score makes none.
  const pairs = [...inPairs(isNew ? rest : [first, ...rest])].map(
    ([score, member]) => [toScore(score), member] as const,
  );
  const set = redis.write(key, 'zset');
  const before = set.size;
  for (const [score, member] of pairs) if (!isNew || !set.has(member)) set.set(member, score);
  return set.size - before;
};

const COMMANDS: Readonly<Record<string, Command | undefined>> = {
  TIME: (redis) => {
    const now = redis.wallNow();
    return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
  },
  EXISTS: (redis, keys) => keys.filter((key) => redis.has(key)).length,
  DEL: (redis, keys) => keys.filter((key) => redis.remove(key)).length,

  HGET: (redis, args) => redis.read(args[0] ?? '', 'hash')?.get(args[1] ?? '') ?? null,
  HMGET: reading('hash', (hash, fields) => fields.map((field) => hash.get(field) ?? null)),
  HGETALL: reading('hash', (hash) => [...hash].flat()),
  HKEYS: reading('hash', (hash) => [...hash.keys()]),
  HLEN: reading('hash', (hash) => hash.size),
  HEXISTS: reading('hash', (hash, [field = '']) => Number(hash.has(field))),
  HSET: (redis, args) => {
    if (args.length < 3 || args.length % 2 === 0) throw wrongArguments('hset');
    return addFields(redis, args);
  },
  HSETNX: (redis, [key = '', field = '', value = '']) =>
    redis.read(key, 'hash')?.has(field) === true ? 0 : addFields(redis, [key, field, value]),
  HDEL: removing('hash'),
  HINCRBY: (redis, [key = '', field = '', by = '']) => {
    const before = redis.read(key, 'hash')?.get(field) ?? '0';
    if (!/^-?\d{1,18}$/.test(before)) throw new ReplyError('ERR hash value is not an integer');
    const after = Number(before) + Number(by);
    redis.write(key, 'hash').set(field, String(after));
    return after;
  },

  SADD: adding('set', (set, members) => {
    for (const member of members) set.add(member);
  }),
  SREM: removing('set'),
  /** The first ones: what chance would pick is as good. */
  SRANDMEMBER: reading('set', (set, [count]) => [...set].slice(0, Number(count))),

  ZADD: addScores,
  ZREM: removing('zset'),
  ZSCORE: reading('zset', (set, [member = '']) => {
    const score = set.get(member);
    return score === undefined ? null : formatScore(score);
  }),
  ZCARD: reading('zset', (set) => set.size),
  ZRANGE: reading('zset', (set, [from = '', to = '', ...options]) => {
    const words = options.map((option) => option.toUpperCase());
    if (words.includes('REV')) throw new ReplyError('ERR REV is not supported here');
    let found = [...set].sort(([one, score], [other, otherScore]) => score - otherScore || (one < other ? -1 : 1));
    if (words.includes('BYSCORE')) {
      found = found.filter(([, score]) => isWithin(score, from, 1) && isWithin(score, to, -1));
      const limit = words.indexOf('LIMIT');
      const [skip, count] = limit < 0 ? [0, -1] : [Number(options[limit + 1]), Number(options[limit + 2])];
      found = found.slice(skip, count < 0 ? undefined : skip + count);
    } else found = found.slice(Number(from), Number(to) === -1 ? undefined : Number(to) + 1);
    return found.flatMap(([member, score]) => (words.includes('WITHSCORES') ? [member, formatScore(score)] : [member]));
  }),

  XADD: addToStream,
  XRANGE: reading('stream', (stream, [from = '', to = '', , count = 'Infinity']) =>
    range(stream, from, to).slice(0, Number(count)).map(toEntry),
  ),
  XREVRANGE: reading('stream', (stream, [to = '', from = '', , count = 'Infinity']) =>
    range(stream, from, to).reverse().slice(0, Number(count)).map(toEntry),
  ),
  XDEL: (redis, [key = '', ...ids]) => {
    if (!redis.has(key)) return 0;
    const { entries } = redis.write(key, 'stream');
    const before = entries.length;
    const removed = ids.map((text) => parseId(text));
    const kept = entries.filter(({ id }) => removed.every((other) => compareIds(id, other) !== 0));
    entries.splice(0, Infinity, ...kept);
    return before - kept.length;
  },
  XINFO: (redis, [, key = '']) => {
    const stream = redis.read(key, 'stream');
    if (stream === undefined) throw new ReplyError('ERR no such key');
    return ['length', stream.entries.length, 'last-generated-id', formatId(stream.last)];
  },
};

function wrongArguments(name: string) {
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** A key without content is gone. */
function removing(kind: 'hash' | 'zset' | 'set'): Command {
  return (redis, [key = '', ...names]) => {
    const before = redis.read(key, kind);
    if (!names.some((name) => before?.has(name))) return 0;
    const content = redis.write(key, kind);
    const removed = names.filter((name) => content.delete(name)).length;
    if (content.size === 0) redis.remove(key);
    return removed;
  };
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

function isWithin(score: number, bound: string, sign: 1 | -1) {
  const isExclusive = bound.startsWith('(');
  const limit = toScore(isExclusive ? bound.slice(1) : bound);
  return score === limit ? !isExclusive : sign * score > sign * limit;
}

function addToStream(redis: MemoryRedis, [key = '', ...rest]: readonly string[]): Reply {
  // Redis drops whole blocks of a stream, and only those that are full. An exact MAXLEN is refused, as no id.
  const at = rest[1] === '~' ? 3 : 0;
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

function compareIds([ms, sequence]: StreamId, [otherMs, other]: StreamId) {
  return ms === otherMs ? Math.sign(sequence - other) : Math.sign(ms - otherMs);
}

function range({ entries }: Stream, from: string, to: string): StreamEntry[] {
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

type Method = (...args: (string | number)[]) => unknown;
const withCalls = (make: (name: string) => Method) =>
  Object.fromEntries(Object.keys(COMMANDS).map((name) => [name.toLowerCase(), make(name)]));

export function makeMemoryClient(redis: MemoryRedis): RedisClient {
  const callOf =
    (name: string) =>
    async (...args: (string | number)[]): Promise<unknown> => {
      const reply = redis.call(name, args.flat().map(String));
      return Promise.resolve(name === 'HGETALL' ? Object.fromEntries(inPairs(reply as Args)) : reply);
    };
  const pipeline = () => {
    const replies: Promise<readonly [error: unknown, reply: unknown]>[] = [];
    const pipelined = withCalls((name) => (...args) => {
      const settled = callOf(name)(...args).then(
        (value) => [null, value] as const,
        (error: unknown) => [error, null] as const,
      );
      replies.push(settled);
      return pipelined;
    });
    pipelined['exec'] = async () => Promise.all(replies);
    return pipelined;
  };
  return { ...withCalls(callOf), pipeline } as unknown as RedisClient;
}
