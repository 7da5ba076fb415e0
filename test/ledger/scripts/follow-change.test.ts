import { expect, it } from '@jest/globals';
import { commandName, scriptSource } from '../../../src/ledger/ledger-scripts.js';
import { nextBegin, takeLease } from '../contract/ledger-rig.js';
import { aPayout } from '../support/a-payout.js';
import { openTestAccount } from '../support/test-account.js';
import { findContradictions } from './find-contradictions.js';
import { instrumentScripts } from './script-scenarios.js';

const MOST_COMMANDS = 100;
const ANN = { by: 'ann', reason: 'not wanted' };

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

it.each(['completed', 'queued', 'sending', 'nonsense'])(
  'a payout whose mark of an interrupted change was altered to %s stays in its index, and can be changed',
  async (pending) => {
    const account = openTestAccount();
    try {
      const { ledger, redis, connection } = account;
      await ledger.enqueue([aPayout('other'), aPayout('p')]);
      await ledger.change({ payoutId: 'other', from: 'queued', to: 'sending' });
      await ledger.change({ payoutId: 'other', from: 'sending', to: 'in_progress', gatewayId: 'h' });
      await ledger.change({ payoutId: 'other', from: 'in_progress', to: 'completed' });
      await redis.hset(connection.keys.payout('p'), 'pending', pending);
      await ledger.enqueue([aPayout('p')]);
      const refused = ledger.change({ payoutId: 'p', from: 'held', to: 'queued', ...ANN });
      await expect(refused).rejects.toMatchObject({ code: 'CONFLICT' });
      expect(await findContradictions(account)).toEqual([]);
      await ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled', ...ANN });
      expect(await findContradictions(account)).toEqual([]);
    } finally {
      await account.close();
    }
  },
);

it.each([
  ['never enters its new index', "redis.call('ZADD', INDEX[payout.state]", "redis.call('ZREM', INDEX[payout.state]"],
  ['never leaves its former index', "redis.call('ZREM', INDEX[from]", "redis.call('ZSCORE', INDEX[from]"],
])('a begin by a script after which a payout %s says so', async (_mistake, right, wrong) => {
  const account = openTestAccount();
  try {
    const { ledger, sender, redis } = account;
    await ledger.enqueue([aPayout('p')]);
    const begin = await nextBegin(sender, await takeLease(sender, 'one'), 'p');
    const lua = scriptSource('begin-send');
    expect(lua).toContain(right);
    redis.defineCommand(commandName('begin-send'), { lua: lua.replace(right, wrong) });
    expect(await sender.beginSend(begin)).toMatchObject({ kind: 'begun', isIndexed: false });
  } finally {
    await account.close();
  }
});
