import { LedgerKeys } from '../../src/ledger/keys.js';
import { scriptSource, type ScriptName } from '../../src/ledger/ledger-connection.js';
import { LUA_LIBRARY } from './lua-library.js';
import { LuaTable, compileLua, type CompiledScript } from './lua-parser.js';
import { fromLua, type MemoryRedis, ReplyError, type Reply, toLua } from './memory-redis.js';

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

/**
 * Runs a script in one step.
 * @param own - the script's keys after the account's. @throws ReplyError
 */
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

/** Redis keeps more digits of a number than Lua does. @throws ReplyError for what is neither text nor number */
function toArgument(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : formatDouble(value);
  throw new ReplyError('ERR Lua redis lib command arguments must be strings or integers');
}

function formatDouble(number: number): string {
  const digits = number.toPrecision(17);
  return digits.includes('.') && !digits.includes('e') ? digits.replace(/\.?0+$/, '') : digits;
}
