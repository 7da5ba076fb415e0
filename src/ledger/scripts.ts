import { readFileSync } from 'node:fs';
import { toRedisError, type RedisClient } from '../redis.js';
import { FINAL_STATES, PAYOUT_STATES, TRANSITIONS } from './states.js';
import { JOURNAL_WITNESS } from './witness.js';

/** The scripts of `lua/`, one for each change of the ledger. */
const SCRIPT_NAMES = [
  'enqueue-payouts',
  'begin-send',
  'revert-send',
  'finish-send',
  'recover-sends',
  'acquire-lease',
  'beat-lease',
  'release-lease',
  'change-state',
  'pause-account',
  'resume-account',
  'find-txhash',
  'find-forgotten-sends',
  'adopt-send',
  'adopt-ledger',
  'read-group-events',
  'ack-group-event',
  'set-group-idle',
  'remove-payouts',
  'trim-events',
] as const;

type ScriptName = (typeof SCRIPT_NAMES)[number];

const PRELUDE = `${allowedTable()}\nlocal WITNESS = '${JOURNAL_WITNESS}'\nlocal FINAL = { ${toLuaSet(FINAL_STATES)} }\n${readScript('prelude')}`;
const SOURCES = SCRIPT_NAMES.map((name) => ({ name, lua: `${PRELUDE}\n${readScript(name)}` }));

function readScript(name: string): string {
  return readFileSync(new URL(`lua/${name}.lua`, import.meta.url), 'utf8');
}

/** The transitions of states.ts as a Lua table, so that a script cannot make one that does not exist. */
function allowedTable(): string {
  const rows = PAYOUT_STATES.map((from) => {
    const targets = TRANSITIONS.filter((transition) => transition.from === from).map(({ to }) => to);
    return `${from} = { ${toLuaSet(targets)} }`;
  });
  return `local ALLOWED = { ${rows.join(', ')} }`;
}

function toLuaSet(names: readonly string[]): string {
  return names.map((name) => `${name} = true`).join(', ');
}

/** Runs a ledger script: `run('pause-account', [at, by, reason])`. */
export type RunScript = (name: ScriptName, args: readonly (string | number)[]) => Promise<unknown>;

/**
 * Prepares a connection for the scripts.
 * @param ledgerKey - the one key that every script takes
 * @returns a function that runs one script; it throws RedisUnavailableError when Redis is away
 */
export function prepareScripts(redis: RedisClient, ledgerKey: string): RunScript {
  for (const { name, lua } of SOURCES) redis.defineCommand(commandName(name), { numberOfKeys: 1, lua });
  const commands = redis as unknown as Record<string, (key: string, ...args: (string | number)[]) => Promise<unknown>>;
  return async (name, args) => {
    try {
      return await commands[commandName(name)]?.(ledgerKey, ...args);
    } catch (error) {
      throw toRedisError(error);
    }
  };
}

function commandName(name: ScriptName): string {
  return `payouts:${name}`;
}
