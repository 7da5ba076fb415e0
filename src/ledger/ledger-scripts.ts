import { UnreadableRecordError } from '../base/errors.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';
import { readSource } from '../base/source-path.cjs';
import { otherFormat, STORED_FORMAT } from '../base/stored-format.js';
import { KEY_CONSTANTS, type LedgerKeys } from './keys.js';
import {
  ENDED_STATES,
  FINAL_STATES,
  KEPT_STATES,
  PAYOUT_STATES,
  STATE_CODE,
  STATES_WITH_JOB,
  TRANSITIONS,
  UNSENT_STATES,
} from './states.js';

/** The arguments of each script, in their order. In a script each is a local of that name, and `REST` their number. */
export const SCRIPT_ARGUMENTS = {
  'enqueue-payouts': 'at atText latest payouts',
  'begin-send':
    'at ledgerId owner epoch sends last acts payoutId attempt token journalId journal inFlightMs beat spend spentSince decisions audience',
  'bind-ledger': 'at by reason act audience',
  'hold-payout': 'at attempt held',
  'add-approval': 'at decision by reason field approval most held source',
  'add-receipt': 'state attempt gatewayId entries',
  'revert-send': 'at attempt token reason',
  'finish-send':
    'at attempt token to gatewayId txhash message cause maxRejections maxUnknowns blockedReason inFlightMs found',
  'mark-sends-unknown': 'at owner epoch reason inFlightMs',
  'note-look-up': 'at attempt lookUp nextAt other',
  'remove-entries': 'at owner epoch reason',
  'read-sender': 'newId',
  'acquire-lease': 'owner journalId journal forgetBefore seenOwner seenEpoch seenBeat seenReleased seenSends seenLast',
  'renew-lease': 'owner epoch',
  'release-lease': 'owner epoch',
  'change-payouts': 'at from to by reason oneAct source',
  'pause-account': 'at by reason',
  'publish-event': 'kind at to by reason',
  'resume-account': 'at by reason act of',
  'object-to-ledger': 'at journalId objection',
  'find-forgotten-sends': '',
  'adopt-send': 'at by reason inFlightMs attempt token outcome detail txhash',
  'adopt-ledger': 'at by reason act epoch sends acts token inFlightMs bookmarks journals',
  'keep-acts': 'acts',
  'put-back-ended': 'at by reason to',
  'undo-cancel': 'at by reason oneAct batch since',
  'comment-payout': 'at by text most',
  'declare-new': 'at by reason',
  'raise-replicas': 'count names',
  'lower-replicas': 'at by reason count names',
  'mark-unsent-unknown': 'at by reason inFlightMs',
  'read-group-events': 'group consumer claimAfterMs limit',
  'ack-group-event': 'group consumer eventId',
  'set-group-idle': 'group consumer idleMs limit',
  'remove-payouts': 'state before',
  'trim-events': 'keep limit',
  'count-payouts': '',
  'write-statistics': 'revision',
} as const satisfies Readonly<Record<string, string>>;

export type ScriptName = keyof typeof SCRIPT_ARGUMENTS;

export const SCRIPT_NAMES = Object.keys(SCRIPT_ARGUMENTS) as readonly ScriptName[];

const ARGUMENT_NAMES: ReadonlyMap<ScriptName, readonly string[]> = new Map(
  SCRIPT_NAMES.map((name) => [name, SCRIPT_ARGUMENTS[name].split(' ').filter((word) => word !== '')]),
);

const OTHER_FORMAT = -10;

/** The beginning of every script. A part uses only the parts before it, and the last one can end the script. */
export const PRELUDE_PARTS = [
  'header',
  'events',
  'history',
  'follow-change',
  'attempts',
  'payout',
  'outcome',
  'account',
  'check-format',
] as const;

const PRELUDE = [constants(), ...PRELUDE_PARTS.map((part) => readScript(`prelude/${part}`))].join('\n');

function readScript(name: string): string {
  return readSource(`ledger/lua/${name}.lua`);
}

/** Scripts that `payouts doctor` runs too, which leaves Redis as it is. */
const LEAVES_UNMARKED: ReadonlySet<ScriptName> = new Set(['find-forgotten-sends']);

export function scriptSource(name: ScriptName): string {
  const names = ARGUMENT_NAMES.get(name) ?? [];
  const script = readScript(name);
  return [
    `local MARKS_FORMAT = ${!LEAVES_UNMARKED.has(name)}`,
    `local ACCOUNT_FIELDS = { ${findAccountFields(PRELUDE + script).join(', ')} }`,
    PRELUDE,
    `local REST = ${names.length}`,
    ...(names.length === 0 ? [] : [`local ${names.join(', ')} = unpack(ARGV, 1, REST)`]),
    script,
  ].join('\n');
}

/** Reading all of them takes as long as some writes. */
function findAccountFields(script: string): string[] {
  const named = [...script.matchAll(/\baccount\.(\w+)/g)].map(([, field = '']) => field);
  return [...new Set(named)].map((field) => `'${field}'`);
}

/**
 * The tables of states.ts, and the keys' names, as Lua: a script cannot make an undefined
 * transition.
 */
function constants(): string {
  const rows = PAYOUT_STATES.map((from) => {
    const targets = TRANSITIONS.filter((transition) => transition.from === from).map(({ to }) => to);
    return `${from} = { ${toLuaSet(targets)} }`;
  });
  return [
    `local ${KEY_CONSTANTS.join(', ')} = unpack(KEYS, 1, ${KEY_CONSTANTS.length})`,
    `local INDEX = { ${toLuaKeys(PAYOUT_STATES, KEY_CONSTANTS.length)} }`,
    `local ENDED = { ${toLuaSet(ENDED_STATES)} }`,
    `local OWN = ${KEY_CONSTANTS.length + PAYOUT_STATES.length}`,
    `local ALLOWED = { ${rows.join(', ')} }`,
    `local CODE = { ${PAYOUT_STATES.map((state) => `${state} = '${STATE_CODE[state]}'`).join(', ')} }`,
    `local STATE_OF = { ${PAYOUT_STATES.map((state) => `${STATE_CODE[state]} = '${state}'`).join(', ')} }`,
    `local FINAL = { ${toLuaSet(FINAL_STATES)} }`,
    `local NEEDS_JOB = { ${toLuaSet(STATES_WITH_JOB)} }`,
    `local UNSENT = { ${toLuaSet(UNSENT_STATES)} }`,
    `local KEPT = { ${toLuaSet(KEPT_STATES)} }`,
    `local PAYOUT_PREFIX = string.sub(LEDGER, 1, -7) .. 'payout:'`,
    `local FORMAT = '${STORED_FORMAT}'`,
  ].join('\n');
}

function toLuaKeys(states: readonly string[], offset: number): string {
  return states.map((state, place) => `${state} = KEYS[${offset + place + 1}]`).join(', ');
}

function toLuaSet(names: readonly string[]): string {
  return names.map((name) => `${name} = true`).join(', ');
}

type Words<Text extends string> = Text extends `${infer Word} ${infer Rest}` ? Word | Words<Rest> : Exclude<Text, ''>;

/** What a script must be given by name. */
type ScriptArguments<Name extends ScriptName> = Readonly<
  Record<Words<(typeof SCRIPT_ARGUMENTS)[Name]>, string | number>
>;

/**
 * Runs a ledger script: `run('pause-account', { at, by, reason })`. `keys`: the script's own, after the account's.
 * `rest`: what follows the named arguments, as the script's header says.
 */
export type RunScript = <Name extends ScriptName>(
  name: Name,
  args: ScriptArguments<Name>,
  keys?: readonly string[],
  rest?: readonly (string | number)[],
) => Promise<unknown>;

/**
 * Prepares a connection for the scripts.
 * @returns a function that runs one script. It throws RedisUnavailableError, UnsupportedFormatError if the ledger has
 * another format, or an Error with the script's name and Redis's words if the script failed.
 */
export function prepareScripts(redis: RedisClient, ledgerKeys: LedgerKeys): RunScript {
  const commands = redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>;
  const ofEveryScript = ledgerKeys.ofEveryScript;
  return async (name, args, keys = [], rest = []) => {
    const named = orderArguments(name, args);
    // At its first use, and once for all accounts of the connection: each pipeline copies what its connection defines, and
    // a command that is defined again is sent with its whole text.
    if (!(commandName(name) in redis)) redis.defineCommand(commandName(name), { lua: scriptSource(name) });
    const count = ofEveryScript.length + keys.length;
    let reply: unknown;
    try {
      reply = await commands[commandName(name)]?.(count, ...ofEveryScript, ...keys, ...named, ...rest);
    } catch (error) {
      throw toScriptError(name, toRedisError(error));
    }
    if (Array.isArray(reply) && reply[0] === OTHER_FORMAT) throw otherFormat('ledger in Redis', reply[1]);
    return reply;
  };
}

/** In the order of {@link SCRIPT_ARGUMENTS}. */
export function orderArguments<Name extends ScriptName>(name: Name, args: ScriptArguments<Name>): (string | number)[] {
  const values: Readonly<Record<string, string | number>> = args;
  return (ARGUMENT_NAMES.get(name) ?? []).map((argument) => values[argument] ?? '');
}

/** Redis names the script by its hash only. */
function toScriptError(name: ScriptName, error: unknown): unknown {
  if (error instanceof UnreadableRecordError)
    return new UnreadableRecordError(`What the ledger script ${name} reads`, error.cause as Error);
  if (!(error instanceof Error) || error.name !== 'ReplyError') return error;
  return new Error(`The ledger script ${name} failed: ${error.message}`, { cause: error });
}

export function commandName(name: ScriptName): string {
  return `payouts:${name}`;
}
