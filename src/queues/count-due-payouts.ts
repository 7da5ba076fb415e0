import { pipelined, type LedgerConnection } from '../ledger/ledger-connection.js';
import type { PayoutQueues } from './payout-queues.js';
import { delayedScore } from './queue-times.js';

/** Counts queued payouts, except those whose job is delayed to a future `notBefore`. */
export async function countDuePayouts(connection: LedgerConnection, queues: PayoutQueues): Promise<number> {
  const { keys, clock } = connection;
  const [queued, delayed] = (await pipelined(connection, (pipeline) => {
    pipeline
      .zcard(keys.state('queued'))
      .zcount(queues.withdraw.toKey('delayed'), delayedScore(clock.wallNow() + 1), '+inf');
  })) as [number, number];
  return Math.max(0, queued - delayed);
}
