import { SCRIPT_NAMES, scriptSource, type ScriptName } from '../../src/ledger/ledger-connection.js';
import { LUA_LIBRARY } from './lua-library.js';
import { compileLua, type CompiledScript, type Library } from './lua-parser.js';
import { LuaTable } from './lua-table.js';
import { fromLua, type MemoryRedis, ReplyError, type Reply, toLua } from './memory-redis.js';

const compiled = new Map<ScriptName, CompiledScript>();

function compiledScript(name: ScriptName): CompiledScript {
  let script = compiled.get(name);
  if (script === undefined) {
    script = compileLua(scriptSource(name), name);
    compiled.set(name, script);
  }
  return script;
}

/** Runs the ledger's scripts, each in one step. @throws ReplyError */
export function makeScriptRunner(
  redis: MemoryRedis,
): (name: ScriptName, keys: readonly string[], args: readonly (string | number)[]) => Reply {
  const call = (name: string, ...args: unknown[]): unknown => toLua(redis.call(name, args.map(toArgument)));
  const base = {
    ...LUA_LIBRARY,
    'redis.call': call,
    'redis.pcall': (name: string, ...args: unknown[]): unknown => {
      try {
        return call(name, ...args);
      } catch (error) {
        return toErrorTable(error);
      }
    },
  };
  const libraries = new Map<ScriptName, Library>();
  return (name, keys, args) => {
    let library = libraries.get(name);
    if (library === undefined) libraries.set(name, (library = { ...base, shared: [] }));
    try {
      const result = compiledScript(name)(library, new LuaTable([...keys]), new LuaTable(args.map(String)));
      return fromLua(Array.isArray(result) ? result[0] : result);
    } catch (error) {
      throw error instanceof ReplyError ? error : new ReplyError(`ERR ${(error as Error).message}`);
    }
  };
}

function toErrorTable(error: unknown): LuaTable {
  const table = new LuaTable();
  table.set('err', (error as Error).message);
  return table;
}

/** Redis keeps more digits of a number than Lua does. @throws ReplyError for what is neither text nor number */
function toArgument(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : formatDouble(value);
  throw new ReplyError('ERR Lua redis lib command arguments must be strings or integers');
}

/** As `%.17g`. */
function formatDouble(number: number): string {
  const digits = number.toPrecision(17);
  return digits.includes('.') && !digits.includes('e') ? digits.replace(/\.?0+$/, '') : digits;
}

/** All of them are supported: compiled before any runs. */
export function compileAll(): void {
  for (const name of SCRIPT_NAMES) compiledScript(name);
}
