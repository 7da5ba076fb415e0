import { until } from '../../support/until.js';
import { again, sendTo, type AccountAttack } from '../support/account-attack.js';

/** Jobs in BullMQ, and payouts that change while they are on their way. */

export const JOBS: readonly AccountAttack[] = [
  {
    name: 'address altered and put back all the while that payouts wait for their slot',
    attack: async ({ account }) => {
      const ids = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
      const address = (id: string): string => `wallet-${id}${account.platformId}`;
      for (const payoutId of ids) {
        await account.enqueue({ payoutId, paymentId: 6, amount: '3', addressTo: address(payoutId) });
      }
      let turn = 0;
      again(7, async () => {
        turn += 1;
        for (const id of ids) {
          if ((await account.redis.hget(account.keys.payout(id), 'state')) !== 'queued') continue;
          await account.set(id, { addressTo: turn % 2 === 0 ? 'wallet-thief' : address(id) });
        }
      });
    },
    expect: 'either',
  },
  {
    name: 'jobs for a payout that was paid',
    attack: async ({ account }) => {
      for (let count = 0; count < 5; count += 1) await account.ring('first');
    },
    expect: 'continues',
  },
  {
    name: 'jobs for payouts that are not there, or are no payoutId',
    attack: async ({ account }) => {
      for (const id of ['nobody', 'a:b', '', 7, null, { a: 1 }, ['first'], 'first\n']) await account.ring(id);
    },
    expect: 'continues',
  },
  {
    name: 'job with the data of another payment',
    attack: async ({ account }) => {
      await account.enqueue({
        payoutId: 'job',
        paymentId: 6,
        amount: '3',
        addressTo: `wallet-job${account.platformId}`,
      });
      await account.ring('job', { paymentId: 6, amount: '999', addressTo: 'wallet-thief', txhash: 'forged' });
    },
    expect: 'continues',
  },
  {
    name: 'ten jobs for one queued payout, and the limiter deleted again and again',
    attack: async ({ account }) => {
      const names = ['limit', 'limiter', 'meta', 'marker'].map((name) => `${account.keys.prefix}:withdraw:${name}`);
      again(10, async () => account.redis.del(...names.slice(0, 2)));
      for (const id of ['one', 'two', 'three']) {
        await account.enqueue({
          payoutId: id,
          paymentId: 6,
          amount: '3',
          addressTo: `wallet-${id}${account.platformId}`,
        });
        for (let count = 0; count < 10; count += 1) await account.ring(id);
      }
    },
    expect: 'continues',
  },
  {
    name: 'sending set back to queued while the response comes',
    attack: async (scene) => {
      const { account } = scene;
      await sendTo(scene, 'slow', 'latency-after');
      await until('it is being sent', async () => (await account.payout('slow')).state === 'sending');
      await account.revive('slow');
    },
    expect: 'continues',
  },
  {
    name: 'sending set back to queued while the response comes, attempt lowered',
    attack: async (scene) => {
      const { account } = scene;
      await sendTo(scene, 'slow', 'latency-after');
      await until('it is being sent', async () => (await account.payout('slow')).state === 'sending');
      await account.revive('slow', { attempt: '0' });
      await account.unset('slow', 'tokens');
      // What is enqueued behind it before the response comes is sent as signed.
      await until('the worker objects', async () => (await account.redis.exists(account.keys.objections)) === 1);
    },
    expect: 'stopped',
  },
  {
    name: 'in_progress set back to queued',
    attack: async ({ world, account }) => {
      const addressTo = `wallet-slow${account.platformId}`;
      world.sandbox.addFaults([{ kind: 'drop-before', endpoint: 'transactionstatus', addresses: [addressTo] }]);
      await account.enqueue({ payoutId: 'slow', paymentId: 6, amount: '2', addressTo });
      await until('it is in progress', async () => (await account.payout('slow')).state === 'in_progress');
      await account.revive('slow');
      await until('it is held', async () => (await account.payout('slow')).state === 'held');
    },
    ...{ expect: 'continues', refusal: 'sent_before' },
  },
];
