import type { Queue } from 'bullmq';
import { pipelined, type LedgerConnection } from '../ledger/ledger-connection.js';
import { delayedScore } from './queue-times.js';

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
