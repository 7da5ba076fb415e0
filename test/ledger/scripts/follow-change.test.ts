import { expect, it } from '@jest/globals';
import { nextBegin, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import { openTestAccount } from '../support/test-account.js';
import { instrumentScripts } from './script-scenarios.js';

const MOST_COMMANDS = 100;

/** @returns the queue in order, and whether the script ended before it came so far */
async function revertTwice(interruptedAfter: number) {
  const account = openTestAccount();
  const { ledger, sender, redis, connection } = account;
  try {
    await ledger.enqueue(['first', 'second'].map((payoutId) => aPayout(payoutId)));
    const attempt = await nextBegin(sender, await takeLease(sender, 'one'), 'first');
    await sender.beginSend(attempt);
    await ledger.enqueue([aPayout('third')]);
    instrumentScripts(redis, { name: 'revert-send', after: interruptedAfter });
    const isOver = await sender.revertSend(attempt, 'no connection').then(
      () => true,
      (error: unknown) => !(error as Error).message.includes('interrupted'),
    );
    instrumentScripts(redis);
    await sender.revertSend(attempt, 'no connection');
    return { isOver, queued: await redis.zrange(connection.keys.state('queued'), '0', '-1') };
  } finally {
    await account.close();
  }
}

it('a payout goes back to its former place in the queue wherever the script that puts it back was interrupted', async () => {
  let after = 1;
  for (let isOver = false; !isOver; after += 1) {
    const found = await revertTwice(after);
    expect({ after, queued: found.queued }).toEqual({ after, queued: ['first', 'second', 'third'] });
    ({ isOver } = found);
    expect(after).toBeLessThan(MOST_COMMANDS);
  }
  expect(after).toBeGreaterThan(5);
});
