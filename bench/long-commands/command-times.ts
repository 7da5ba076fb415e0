import type { Redis } from 'ioredis';
import { readScriptNames } from '../command-log.js';

/** Faster commands are of no interest, and would push the others out of the log. */
export const LOGGED_FROM_US = 100;
const KEPT = 200_000;

export interface TakenTimes {
  /** Of each command the time that nearly all of its calls were within, by name, in ms. */
  readonly longest: ReadonlyMap<string, number>;
  /** The longest of all, in ms. */
  readonly everMs: number;
  /** How many commands ran, those that were too fast for the log too. */
  readonly calls: number;
}

export interface CommandTimes {
  reset(): Promise<void>;
  /** Since the last call. */
  take(): Promise<TakenTimes>;
}

/**
 * Asks a Redis how long it was busy with each command: SLOWLOG tells of every command, also of those in a transaction, but
 * not of the transaction as a whole, which keeps others waiting as long; LATENCY does.
 */
export async function watchCommandTimes(client: Redis): Promise<CommandTimes> {
  const scripts = readScriptNames();
  await client.config('SET', 'slowlog-log-slower-than', LOGGED_FROM_US);
  await client.config('SET', 'slowlog-max-len', KEPT);
  await client.config('SET', 'latency-monitor-threshold', 1);
  const reset = async (): Promise<void> => {
    await client.slowlog('RESET');
    await client.latency('RESET');
    await client.config('RESETSTAT');
  };
  return {
    reset,
    async take() {
      // First: to give the log takes its time.
      const latest = (await client.latency('LATEST')) as [event: string, at: number, ms: number, most: number][];
      const log = (await client.slowlog('GET', -1)) as [id: number, at: number, us: number, args: string[]][];
      const calls = readCalls(await client.info('commandstats'));
      await reset();
      const times = new Map<string, number[]>();
      for (const [, , us, args] of log) {
        const name = nameOf(args, scripts);
        if (!OWN.includes(name)) push(times, name, us / 1_000);
      }
      const longest = new Map(
        [...times].map(([name, all]) => [name, longestOf(all, calls.get(name) ?? all.length)] as const),
      );
      const command = [...times.values()].flat().reduce((most, ms) => Math.max(most, ms), 0);
      const transaction = Math.max(0, ...latest.filter(([event]) => event === 'command').map(([, , , ms]) => ms));
      // LATENCY counts in whole ms.
      if (transaction > command + 1) longest.set('transaction', transaction);
      const others = [...calls].filter(([name]) => !OWN.includes(name));
      return {
        longest,
        everMs: Math.max(command, transaction),
        calls: others.reduce((all, [, count]) => all + count, 0),
      };
    },
  };
}

const OWN = ['slowlog', 'latency', 'config', 'info', 'script'];

/** The calls of one command in an act do the same. What few of them took, while others ran in its place, tells of the machine. */
const LEFT_OUT = 0.05;

function push(lists: Map<string, number[]>, name: string, value: number): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [value]);
  else list.push(value);
}

function longestOf(times: readonly number[], calls: number): number {
  const sorted = [...times].sort((one, other) => other - one);
  return sorted[Math.min(sorted.length - 1, Math.floor(calls * LEFT_OUT))] ?? NaN;
}

function readCalls(info: string): Map<string, number> {
  return new Map([...info.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name = '', calls]) => [name, Number(calls)]));
}

function nameOf([command = '', first = '']: readonly string[], scripts: ReadonlyMap<string, string>): string {
  const name = command.toLowerCase();
  if (name === 'evalsha') return scripts.get(first) ?? `script ${first}`;
  return name;
}
