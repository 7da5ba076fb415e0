import type { Queue } from 'bullmq';
import { ask, type LedgerConnection, pipelined, pipelinedReadable } from '../ledger/ledger-connection.js';
import { parseOutboxMember, statesInQueueOf, type StateWithJob } from '../ledger/states.js';
import { JOB_STRUCTURES, runQueueScript } from './job-records.js';
import { delayedScore, type PayoutQueues } from './payout-queues.js';

export interface JobBalance {
  readonly payouts: number;
  readonly jobs: number;
  readonly outboxed: number;
  /**
   * Payouts with neither. Negative while a job outlives its payout's state: some ms after a send or a poll, or until
   * its turn after a change by hand.
   */
  readonly lost: number;
}

/** Outbox members read to separate the states. The rest count for each state. */
const OUTBOX_READ = 1_000;

/** Counts payouts and jobs in one command, whatever the backlog. A long outbox with invalid members takes more. */
export async function readJobBalance(
  connection: LedgerConnection,
  queues: PayoutQueues,
  state: StateWithJob,
): Promise<JobBalance> {
  const { keys } = connection;
  const indexes = statesInQueueOf(state).map((counted) => keys.state(counted));
  const queue = queues.queueOf(state);
  const structures = (type: 'list' | 'sorted set'): string[] =>
    JOB_STRUCTURES.filter((structure) => structure.type === type).map(({ name }) => queue.toKey(name));
  const sets = [...indexes, ...structures('sorted set')];
  const { members, outboxSize, counts } = await count(connection, sets, structures('list'));
  const payouts = sum(counts.slice(0, indexes.length));
  const jobs = sum(counts.slice(indexes.length));
  const entries = members.map(parseOutboxMember);
  const named = entries.filter((entry) => 'state' in entry && entry.state === state);
  const isStrange = entries.some((entry) => 'unknownMember' in entry);
  const behind = Math.max(0, outboxSize - OUTBOX_READ);
  // Invalid members stay at the head. Counted as payouts, they would hide lost jobs.
  const outboxed = named.length + (isStrange ? behind - (await countUnknownBehind(connection, outboxSize)) : behind);
  return { payouts, jobs, outboxed, lost: payouts - jobs - outboxed };
}

async function count(
  { redis, keys }: LedgerConnection,
  sets: readonly string[],
  lists: readonly string[],
): Promise<{ readonly members: string[]; readonly outboxSize: number; readonly counts: number[] }> {
  const args = [OUTBOX_READ, sets.length];
  const reply = await runQueueScript(redis, 'count-jobs', [keys.outbox, ...sets, ...lists], args);
  const [members, outboxSize, ...counts] = reply as [string[], number, ...number[]];
  return { members, outboxSize, counts };
}

async function countUnknownBehind({ redis, keys }: LedgerConnection, outboxSize: number): Promise<number> {
  let unknown = 0;
  for (let start = OUTBOX_READ; start < outboxSize; start += OUTBOX_READ) {
    const members = await ask(redis.zrange(keys.outbox, start, String(start + OUTBOX_READ - 1)));
    unknown += members.filter((member) => 'unknownMember' in parseOutboxMember(member)).length;
  }
  return unknown;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** 0 while the queue is paused. */
export async function countDueJobs(connection: LedgerConnection, queue: Queue): Promise<number> {
  const now = connection.clock.wallNow();
  const [isPaused, waiting, prioritized, delayed] = (await pipelined(connection, (pipeline) => {
    pipeline
      .hexists(queue.toKey('meta'), 'paused')
      .llen(queue.toKey('wait'))
      .zcard(queue.toKey('prioritized'))
      .zcount(queue.toKey('delayed'), '-inf', delayedScore(now));
  })) as [number, number, number, number];
  return isPaused === 1 ? 0 : waiting + prioritized + delayed;
}

/** Counts queued payouts, except those with a future `notBefore`. The ledger says so: jobs can be delayed by hand. */
export async function countDuePayouts(connection: LedgerConnection): Promise<number> {
  const { keys, clock } = connection;
  const { replies } = await pipelinedReadable(connection, (pipeline) => {
    pipeline.zcard(keys.state('queued')).zlexcount(keys.scheduled, fromDate(clock.wallNow() + 1), '+');
  });
  const [queued = 0, scheduled = 0] = replies as (number | undefined)[];
  return Math.max(0, queued - scheduled);
}

/** How many more jobs wait for a future date than payouts: someone delayed them. */
export async function countDelayedByHand(connection: LedgerConnection, queue: Queue): Promise<number> {
  const { keys, clock } = connection;
  const later = clock.wallNow() + 1;
  const [delayed, scheduled] = (await pipelined(connection, (pipeline) => {
    pipeline.zcount(queue.toKey('delayed'), delayedScore(later), '+inf');
    pipeline.zlexcount(keys.scheduled, fromDate(later), '+');
  })) as [number, number];
  return delayed - scheduled;
}

/** The lower bound of entries of the key `scheduled`. @param at - wall clock, ms */
function fromDate(at: number): string {
  return `[${new Date(at).toISOString()}`;
}
