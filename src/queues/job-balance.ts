import { ask, pipelined, type LedgerConnection } from '../ledger/ledger-connection.js';
import { parseOutboxMember } from '../ledger/outbox-member.js';
import { statesInQueueOf, type StateWithJob } from '../ledger/states.js';
import { JOB_STRUCTURES } from './job-places.js';
import type { PayoutQueues } from './payout-queues.js';

/** How many payouts of a state wait for a job, and how many jobs there are for them. */
export interface JobBalance {
  readonly payouts: number;
  readonly jobs: number;
  /** Payouts whose job has yet to be added. */
  readonly outboxed: number;
  /**
   * Payouts that have neither. Below zero while a job outlives the state of its payout: for some ms after a send or a poll,
   * and until its turn comes where the payout left its state by hand.
   */
  readonly lost: number;
}

/** Outbox members that are read to tell the states apart; more of them count for each state. */
const OUTBOX_READ = 1_000;

/**
 * Counts payouts and jobs in one round trip, whatever the backlog; in more where a long outbox holds what makes no sense.
 * @throws RedisUnavailableError
 */
export async function readJobBalance(
  connection: LedgerConnection,
  queues: PayoutQueues,
  state: StateWithJob,
): Promise<JobBalance> {
  const { keys } = connection;
  const states = statesInQueueOf(state);
  const replies = await pipelined(connection, (pipeline) => {
    pipeline.zrange(keys.outbox, '0', String(OUTBOX_READ - 1)).zcard(keys.outbox);
    for (const counted of states) pipeline.zcard(keys.state(counted));
    for (const { name, type } of JOB_STRUCTURES) {
      const key = queues.queueOf(state).toKey(name);
      if (type === 'list') pipeline.llen(key);
      else pipeline.zcard(key);
    }
  });
  const [members, outboxSize, ...counts] = replies as [string[], number, ...number[]];
  const payouts = sum(counts.slice(0, states.length));
  const jobs = sum(counts.slice(states.length));
  const entries = members.map(parseOutboxMember);
  const named = entries.filter((entry) => 'state' in entry && entry.state === state);
  const isStrange = entries.some((entry) => 'unknownMember' in entry);
  const behind = Math.max(0, outboxSize - OUTBOX_READ);
  // Members that make no sense stay at the head, and taken for payouts they would hide jobs that are lost.
  const outboxed = named.length + (isStrange ? behind - (await countUnknownBehind(connection, outboxSize)) : behind);
  return { payouts, jobs, outboxed, lost: payouts - jobs - outboxed };
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
