import { readFileSync } from 'node:fs';
import { toRedisError, type RedisClient } from '../redis.js';
import { UnsupportedFormatError } from '../errors.js';
import { KEY_CONSTANTS, type LedgerKeys } from './keys.js';
import { FINAL_STATES, PAYOUT_STATES, STATES_WITH_JOB, UNSENT_STATES } from './states.js';
import { TRANSITIONS } from './transitions.js';

/** The scripts of `lua/`, one for each change of the ledger. */
export const SCRIPT_NAMES = [
  'enqueue-payouts',
  'begin-send',
  'hold-payout',
  'add-approval',
  'revert-send',
  'finish-send',
  'mark-sends-unknown',
  'read-sender',
  'acquire-lease',
  'renew-lease',
  'release-lease',
  'change-state',
  'change-states',
  'pause-account',
  'tell-of-balance',
  'tell-of-control',
  'resume-account',
  'object-to-ledger',
  'find-forgotten-sends',
  'adopt-send',
  'adopt-ledger',
  'declare-new',
  'hold-payouts',
  'read-group-events',
  'ack-group-event',
  'set-group-idle',
  'remove-payouts',
  'trim-events',
  'count-payouts',
  'write-statistics',
] as const;

export type ScriptName = (typeof SCRIPT_NAMES)[number];

/**
 * The newest version of the ledger's format that is read: how records, keys and counters are to be understood. A ledger of a
 * newer one is refused; one of format 1 (attempts known by their epoch, no mark) is read and marked by the first script that
 * runs. Format 3 has payouts that are `held`, a state that earlier versions do not know.
 */
export const LEDGER_FORMAT = 3;

/**
 * With which a new ledger is marked: the earlier version reads it as well. The first `held` payout makes it format 3, so
 * nothing changes for processes of the earlier version where nothing is held.
 */
const NEW_LEDGER_FORMAT = 2;

/** What a script returns on a ledger of a newer format. */
const NEWER_FORMAT = -10;

const PRELUDE = `${constants()}\n${readScript('prelude')}`;

function readScript(name: string): string {
  return readFileSync(new URL(`lua/${name}.lua`, import.meta.url), 'utf8');
}

/** The scripts that also look at a ledger which is not theirs to mark: `payouts doctor` leaves Redis as it is. */
const LEAVES_UNMARKED: ReadonlySet<ScriptName> = new Set(['find-forgotten-sends']);

/** The whole text of a script, as Redis gets it. */
export function scriptSource(name: ScriptName): string {
  return `local MARKS_FORMAT = ${!LEAVES_UNMARKED.has(name)}\n${PRELUDE}\n${readScript(name)}`;
}

/** The tables of states.ts and transitions.ts, and names for the keys, as Lua: a script cannot make a transition that does not exist. */
function constants(): string {
  const rows = PAYOUT_STATES.map((from) => {
    const targets = TRANSITIONS.filter((transition) => transition.from === from).map(({ to }) => to);
    return `${from} = { ${toLuaSet(targets)} }`;
  });
  const index = PAYOUT_STATES.map((state, place) => `${state} = KEYS[${KEY_CONSTANTS.length + place + 1}]`);
  return [
    `local ${KEY_CONSTANTS.join(', ')} = unpack(KEYS, 1, ${KEY_CONSTANTS.length})`,
    `local INDEX = { ${index.join(', ')} }`,
    `local OWN = ${KEY_CONSTANTS.length + PAYOUT_STATES.length}`,
    `local ALLOWED = { ${rows.join(', ')} }`,
    `local FINAL = { ${toLuaSet(FINAL_STATES)} }`,
    `local NEEDS_JOB = { ${toLuaSet(STATES_WITH_JOB)} }`,
    `local UNSENT = { ${toLuaSet(UNSENT_STATES)} }`,
    `local PAYOUT_PREFIX = string.sub(LEDGER, 1, -7) .. 'payout:'`,
    `local FORMAT = ${LEDGER_FORMAT}`,
    `local NEW_FORMAT = ${NEW_LEDGER_FORMAT}`,
  ].join('\n');
}

function toLuaSet(names: readonly string[]): string {
  return names.map((name) => `${name} = true`).join(', ');
}

/** Runs a ledger script: `run('pause-account', [at, by, reason])`. `keys`: those that it takes beside the account's. */
export type RunScript = (
  name: ScriptName,
  args: readonly (string | number)[],
  keys?: readonly string[],
) => Promise<unknown>;

/**
 * Prepares a connection for the scripts.
 * @returns a function that runs one script; it throws RedisUnavailableError while Redis is unavailable,
 * UnsupportedFormatError when the ledger is of a newer version, and an Error with the script's name and Redis's words when
 * the script itself failed
 */
export function prepareScripts(redis: RedisClient, ledgerKeys: LedgerKeys): RunScript {
  for (const name of SCRIPT_NAMES) redis.defineCommand(commandName(name), { lua: scriptSource(name) });
  const commands = redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>;
  const ofEveryScript = ledgerKeys.ofEveryScript;
  return async (name, args, keys = []) => {
    const count = ofEveryScript.length + keys.length;
    let reply: unknown;
    try {
      reply = await commands[commandName(name)]?.(count, ...ofEveryScript, ...keys, ...args);
    } catch (error) {
      throw toScriptError(name, toRedisError(error));
    }
    if (Array.isArray(reply) && reply[0] === NEWER_FORMAT) throw newerFormat(reply[1]);
    return reply;
  };
}

/** @throws UnsupportedFormatError when a ledger's format, as its hash has it, is newer than this program */
export function checkFormat(format: string | null | undefined): void {
  if (Number(format ?? 0) > LEDGER_FORMAT) throw newerFormat(format);
}

function newerFormat(format: unknown): UnsupportedFormatError {
  return new UnsupportedFormatError(
    `The ledger in Redis has format ${String(format)}; this version of payout-queue reads formats 1 to ${LEDGER_FORMAT}. Run the version that wrote it, or a newer one.`,
  );
}

/** What Redis says names the script by its hash only. */
function toScriptError(name: ScriptName, error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return error;
  return new Error(`The ledger script ${name} failed: ${error.message}`, { cause: error });
}

/** The name under which a connection knows a script. */
export function commandName(name: ScriptName): string {
  return `payouts:${name}`;
}
