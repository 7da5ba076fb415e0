import { type ChainableCommander, Cluster } from 'ioredis';
import { type Clock, systemClock } from '../base/clock.js';
import { UnreadableRecordError } from '../base/errors.js';
import type { RedisClient } from '../base/redis.js';
import { toRedisError } from '../base/redis-errors.js';
import { readSource } from '../base/source-path.cjs';
import { otherFormat, STORED_FORMAT } from '../base/stored-format.js';
import { KEY_CONSTANTS, LedgerKeys } from './keys.js';
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

/**
 * One account's keys on one connection. Every function that takes it throws RedisUnavailableError if Redis is
 * unavailable.
 */
export interface LedgerConnection {
  readonly platformId: number;
  readonly redis: RedisClient;
  readonly keys: LedgerKeys;
  readonly clock: Clock;
  readonly run: RunScript;
}

export function connectLedger(redis: RedisClient, platformId: number, clock: Clock = systemClock): LedgerConnection {
  const keys = new LedgerKeys(platformId);
  return { platformId, redis, keys, clock, run: prepareScripts(redis, keys) };
}

/**
 * Sends several commands in one round trip, but not in a cluster. There a pipeline goes to one server as a whole: while
 * a slot moves to it, keys that have not moved yet read as absent.
 * @throws the first error of a command
 */
export async function pipelined(
  { redis }: Pick<LedgerConnection, 'redis'>,
  fill: (pipeline: ChainableCommander) => void,
): Promise<unknown[]> {
  const results = await settle(redis, record(fill));
  return results.map(({ error, reply }) => {
    if (error !== undefined) throw error;
    return reply;
  });
}

interface ReadableReplies {
  /** Undefined for a key of another type. */
  readonly replies: unknown[];
  /** The keys of another type, each once. */
  readonly unreadable: readonly string[];
}

/** As {@link pipelined}, but what cannot be read hides nothing beside it. */
export async function pipelinedReadable(
  { redis }: Pick<LedgerConnection, 'redis'>,
  fill: (pipeline: ChainableCommander) => void,
): Promise<ReadableReplies> {
  const commands = record(fill);
  const results = await settle(redis, commands);
  const unreadable = new Set<string>();
  const replies = results.map(({ error, reply }, index) => {
    if (error === undefined) return reply;
    if (!(error instanceof UnreadableRecordError)) throw error;
    unreadable.add(commands[index]?.key ?? '');
    return undefined;
  });
  return { replies, unreadable: [...unreadable] };
}

interface Settled {
  readonly error?: Error;
  readonly reply?: unknown;
}

async function settle(redis: RedisClient, commands: readonly Command[]): Promise<Settled[]> {
  // A single command avoids the pipeline, which copies every script of the connection.
  if (redis instanceof Cluster || commands.length === 1) {
    const settled = await Promise.allSettled(commands.map(({ run }) => run(redis)));
    return settled.map((each) =>
      each.status === 'fulfilled' ? { reply: each.value } : { error: toRedisError(each.reason) as Error },
    );
  }
  const pipeline = redis.pipeline();
  for (const { run } of commands) void run(pipeline);
  try {
    const results = await pipeline.exec();
    return (results ?? []).map(([error, reply]) =>
      error === null ? { reply } : { error: toRedisError(error) as Error },
    );
  } catch (error) {
    throw toRedisError(error);
  }
}

interface Command {
  readonly key: string;
  readonly run: (target: RedisClient | ChainableCommander) => unknown;
}

function record(fill: (pipeline: ChainableCommander) => void): Command[] {
  const commands: Command[] = [];
  const recorder: ChainableCommander = new Proxy({} as ChainableCommander, {
    get:
      (_, name: 'get') =>
      (...args: [string]): ChainableCommander => {
        commands.push({ key: args[0], run: (target) => target[name](...args) });
        return recorder;
      },
  });
  fill(recorder);
  return commands;
}

/** Turns an unavailable Redis into RedisUnavailableError. */
export async function ask<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command;
  } catch (error) {
    throw toRedisError(error);
  }
}

/** As {@link ask}, for a key that may be deleted at any time: one of another type is read as absent. */
export async function askReadable<Reply>(command: Promise<Reply>, absent: Reply): Promise<Reply> {
  try {
    return await ask(command);
  } catch (error) {
    if (error instanceof UnreadableRecordError) return absent;
    throw error;
  }
}

export const SCRIPT_NAMES = [
  'enqueue-payouts',
  'begin-send',
  'bind-ledger',
  'hold-payout',
  'add-approval',
  'add-receipt',
  'revert-send',
  'finish-send',
  'mark-sends-unknown',
  'remove-entries',
  'read-sender',
  'acquire-lease',
  'renew-lease',
  'release-lease',
  'change-payouts',
  'pause-account',
  'publish-event',
  'resume-account',
  'object-to-ledger',
  'find-forgotten-sends',
  'adopt-send',
  'adopt-ledger',
  'keep-acts',
  'put-back-ended',
  'declare-new',
  'raise-replicas',
  'lower-replicas',
  'doubt-payouts',
  'read-group-events',
  'ack-group-event',
  'set-group-idle',
  'remove-payouts',
  'trim-events',
  'count-payouts',
  'write-statistics',
] as const;

export type ScriptName = (typeof SCRIPT_NAMES)[number];

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
  return `local MARKS_FORMAT = ${!LEAVES_UNMARKED.has(name)}\n${PRELUDE}\n${readScript(name)}`;
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

/** Runs a ledger script: `run('pause-account', [at, by, reason])`. `keys`: the script's own, after the account's. */
type RunScript = (name: ScriptName, args: readonly (string | number)[], keys?: readonly string[]) => Promise<unknown>;

/**
 * Prepares a connection for the scripts.
 * @returns a function that runs one script. It throws RedisUnavailableError, UnsupportedFormatError if the ledger has
 * another format, or an Error with the script's name and Redis's words if the script failed.
 */
function prepareScripts(redis: RedisClient, ledgerKeys: LedgerKeys): RunScript {
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
    if (Array.isArray(reply) && reply[0] === OTHER_FORMAT) throw otherFormat('ledger in Redis', reply[1]);
    return reply;
  };
}

/** @throws UnsupportedFormatError if a ledger's format, as in its hash, is another one than this program's */
export function checkFormat(format: string | null | undefined): void {
  if (format != null && format !== String(STORED_FORMAT)) throw otherFormat('ledger in Redis', format);
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
