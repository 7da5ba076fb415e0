import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { JOBS } from './attacks/jobs.js';
import { LEDGERS } from './attacks/ledger-keys.js';
import { PAUSES } from './attacks/pauses.js';
import { endRepeated } from './support/account-attack.js';
import { ForgingWorld } from './support/forging-world.js';
import { enqueueHonest, judgeBook } from './support/run-attacks.js';

/** Attacks on what the account itself keeps in Redis, under a running worker: each in an account of its own. */

const ATTACKS = [...PAUSES, ...LEDGERS, ...JOBS];
/** Longer than a lease, its takeover and a send: what has not been sent then was stopped. */
const QUIET_MS = 6_000;

let world: ForgingWorld;
const failures = new Map<number, Error>();

beforeAll(async () => {
  world = await ForgingWorld.open(ATTACKS.length * 2);
  await enqueueHonest(world.accounts, 'first');
  await world.startWorker();
  await until('all have sent', async () => {
    const states = await Promise.all(world.accounts.map(async (account) => (await account.payout('first')).state));
    return states.every((state) => state === 'completed');
  });
  await Promise.all(
    ATTACKS.map(async (row, index) => {
      try {
        await row.attack({ world, account: world.account(index), other: world.account(ATTACKS.length + index) });
      } catch (error) {
        failures.set(index, error as Error);
      }
    }),
  );
  // A ledger that was forged takes no payout: then there is none to be sent.
  await Promise.allSettled(
    world.accounts.slice(0, ATTACKS.length).map(async (account) => enqueueHonest([account], 'after')),
  );
  await delay(QUIET_MS);
}, 120_000);

afterAll(async () => {
  endRepeated();
  await world.close();
});

it.each(ATTACKS.map(({ name, expect: expected }, index) => ({ name, expected, index })))(
  '$name: $expected',
  async ({ expected, index }) => {
    const account = world.account(index);
    const failure = failures.get(index);
    if (failure !== undefined) throw failure;
    const countAfter = (): number =>
      world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo.startsWith('wallet-after')).length;
    if (expected === 'continues') await until('what is signed is paid', () => countAfter() === 1, 30_000);
    if (expected === 'stopped') expect(countAfter()).toBe(0);
    judgeBook(world, account);
    const refusal = ATTACKS[index]?.refusal;
    if (refusal !== undefined) {
      expect(world.refusals).toContainEqual({ platformId: account.platformId, reason: refusal, isTampering: true });
    }
  },
);

it('nothing else was paid in any account', () => {
  for (const account of world.accounts) judgeBook(world, account);
});
