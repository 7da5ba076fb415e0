import type { CountedCommand } from './command-log.js';

/** What a worker asks Redis for, by the script, or by the command that none runs. */
const PURPOSES: Readonly<Record<string, string>> = {
  'bullmq moveToFinished': 'BullMQ ends a job, and takes the next',
  'bullmq moveToActive': 'BullMQ takes a job',
  'bullmq addDelayedJob': 'the job of a poll',
  'bullmq moveStalledJobsToWait': 'jobs of killed workers',
  bzpopmin: 'BullMQ waits for a job',
  'begin-send': 'an attempt begins',
  waitaof: 'disk and replicas have the begin',
  'finish-send': 'an outcome; the last one again every 10 s',
  'change-payouts': 'a payout ends',
  'find-forgotten-sends': "the journal's newest 100 sends",
  'renew-lease': 'heartbeat',
  'read-sender': 'lease and ledger, by who stands by',
  hgetall: 'a record before its send, before the job of its poll, and before its poll',
  hget: 'the gateway of the ledger, before a poll',
  zrem: 'the outbox, once the job is added',
  hmget: 'replicas before a wait; amounts for statistics',
  xrange: 'events for statistics',
  'write-statistics': 'statistics',
  'count-payouts': 'statistics compared with the ledger',
  'count-jobs': 'payouts and jobs compared',
  hset: 'reports of the worker, facts of the gateway',
  hdel: "a producer's request for the currencies",
  exists: 'jobs due, while a BullMQ worker is idle',
  time: "Redis's clock, once for all accounts",
  pttl: 'times of the queues after a clock jump',
  lrange: 'active jobs',
};

interface AskedFor {
  readonly asks: string;
  readonly purpose: string;
  /** Sent by a client, and run by its scripts. */
  readonly commands: number;
  readonly sent: number;
}

/** The commands by who asks, those of a script together. */
export function groupByAsker(commands: readonly CountedCommand[]): Map<string, AskedFor> {
  const groups = new Map<string, AskedFor>();
  for (const { command, isSent, count } of commands) {
    const [asks = ''] = command.split(' > ');
    const { commands: before = 0, sent = 0 } = groups.get(asks) ?? {};
    const purpose = PURPOSES[asks] ?? '';
    groups.set(asks, { asks, purpose, commands: before + count, sent: sent + (isSent ? count : 0) });
  }
  return groups;
}
