import { createHash } from 'node:crypto';
import { LedgerKeys } from '../../src/ledger/keys.js';
import { scriptSource, type ScriptName } from '../../src/ledger/ledger-scripts.js';
import { LuaTable, numberToText, parseNumber, typeName, compileLua, type CompiledScript } from './lua-parser.js';
import { fromLua, type MemoryRedis, ReplyError, type Reply, toLua } from './memory-redis.js';

export const LUA_LIBRARY: Readonly<Record<string, unknown>> = {
  tonumber: parseNumber,
  type: typeName,
  error: (message: unknown): never => {
    throw new Error(message as string);
  },
  pcall: (run: (...args: unknown[]) => unknown, ...args: unknown[]): unknown => {
    try {
      const result = run(...args);
      return [true, ...(Array.isArray(result) ? (result as unknown[]) : [result])];
    } catch (error) {
      return [false, (error as Error).message];
    }
  },
  unpack: ({ items }: LuaTable, from = 1, to = items.length) =>
    to <= items.length ? items.slice(from - 1, to) : [...items.slice(from - 1), ...Array<undefined>(to - items.length)],
  ipairs: function* ({ items }: LuaTable): Generator<[number, unknown]> {
    for (const [index, item] of items.entries()) {
      if (item === undefined) return;
      yield [index + 1, item];
    }
  },
  'string.sub': (text: string, from: number, to = -1) => {
    const start = from < 0 ? Math.max(0, text.length + from) : Math.max(0, from - 1);
    return text.slice(start, Math.max(start, to < 0 ? text.length + to + 1 : to));
  },
  'string.lower': (text: string) => text.toLowerCase(),
  'string.upper': (text: string) => text.toUpperCase(),
  'string.match': (text: string, pattern: string): unknown => {
    const found = toRegExp(pattern).exec(asText(text));
    return found === null ? undefined : captures(found);
  },
  'string.gmatch': function* (text: string, pattern: string): Generator<unknown[]> {
    for (const found of text.matchAll(new RegExp(toRegExp(pattern).source, 'gs'))) yield captures(found);
  },
  'string.format': (format: string, ...values: unknown[]) =>
    format.replaceAll('%.0f', () => Number(values.shift()).toFixed(0)),
  'table.concat': ({ items }: LuaTable, separator = '') => items.map(asText).join(separator),
  'math.abs': Math.abs,
  'math.floor': Math.floor,
  'math.max': (...numbers: number[]) => Math.max(...numbers),
  'math.min': (...numbers: number[]) => Math.min(...numbers),
  'cjson.encode': (value: unknown): string => JSON.stringify(toJson(value)),
  'cjson.decode': (text: string): unknown => fromJson(JSON.parse(text)),
  'redis.sha1hex': (text: string) => {
    if (hashed.text !== text) hashed = { text, hash: createHash('sha1').update(text).digest('hex') };
    return hashed.hash;
  },
};

let hashed = { text: '', hash: 'da39a3ee5e6b4b0d3255bfef95601890afd80709' };

function asText(value: unknown) {
  return typeof value === 'number' ? numberToText(value) : (value as string);
}

function captures(found: RegExpExecArray) {
  return found.length > 1 ? found.slice(1) : [found[0]];
}

const CLASSES = new Map(Object.entries({ d: '\\d', S: '\\S', w: '[a-zA-Z0-9]', x: '[a-fA-F0-9]', l: '[a-z]' }));
const patterns = new Map<string, RegExp>();

function toRegExp(pattern: string): RegExp {
  let known = patterns.get(pattern);
  if (known === undefined) {
    const source = pattern.replaceAll(/(\[[^\]]*)?%(.)/g, (_, open: string | undefined, name: string) => {
      const found = CLASSES.get(name);
      if (found === undefined || open !== undefined) throw new Error(`unsupported pattern ${pattern}`);
      return found;
    });
    known = new RegExp(source, 's');
    patterns.set(pattern, known);
  }
  return known;
}

function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return new LuaTable(value.map(fromJson));
  if (typeof value !== 'object' || value === null) return value === null ? NULL : value;
  const table = new LuaTable();
  for (const [key, field] of Object.entries(value)) table.set(key, fromJson(field));
  return table;
}

function toJson(value: unknown): unknown {
  if (!(value instanceof LuaTable)) return value;
  if (value.fields === undefined || value.fields.size === 0) return value.items.map(toJson);
  return Object.fromEntries([...value.fields].map(([key, field]) => [String(key), toJson(field)]));
}

/** What `cjson` makes of null: true as a condition, and equal to itself only. */
const NULL = Object.freeze({});

/** Every simulated ledger is of this account, so that what the scripts make of its keys is made once. */
export const WORLD_KEYS = new LedgerKeys(1);
const KEYS = WORLD_KEYS.ofEveryScript;
const KEY_TABLE = new LuaTable([...KEYS]);

let redis: MemoryRedis;

function call(words: unknown[]): unknown {
  const [name] = words;
  for (let index = 1; index < words.length; index += 1) {
    if (typeof words[index] !== 'string') words[index] = toArgument(words[index]);
  }
  words.shift();
  return toLua(redis.call(name as string, words as string[]));
}

const LIBRARY = {
  ...LUA_LIBRARY,
  'redis.call': call,
  'redis.pcall': (words: unknown[]): unknown => {
    try {
      return call(words);
    } catch (error) {
      const table = new LuaTable();
      table.set('err', (error as Error).message);
      return table;
    }
  },
};

export function compileScript(name: ScriptName): CompiledScript {
  return compileLua(scriptSource(name), name, LIBRARY);
}

const compiled = new Map<ScriptName, CompiledScript>();

export function compiledScript(name: ScriptName): CompiledScript {
  let script = compiled.get(name);
  if (script === undefined) compiled.set(name, (script = compileScript(name)));
  return script;
}

/** @param own - the script's keys after the account's. @throws ReplyError */
export function runScript(
  on: MemoryRedis,
  script: CompiledScript,
  own: readonly string[],
  args: readonly (string | number)[],
): Reply {
  redis = on;
  try {
    const result = script(
      own.length === 0 ? KEY_TABLE : new LuaTable([...KEYS, ...own]),
      new LuaTable(args.map(String)),
    );
    return fromLua(Array.isArray(result) ? result[0] : result);
  } catch (error) {
    throw error instanceof ReplyError ? error : new ReplyError(`ERR ${(error as Error).message}`);
  }
}

function toArgument(value: unknown) {
  if (typeof value === 'number') return numberToText(value);
  throw new ReplyError('ERR Lua redis lib command arguments must be strings or integers');
}
