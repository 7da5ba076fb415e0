import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { until } from '../support/until.js';
import { RESTARTS } from './attacks/restarts.js';
import { copyKeys } from './support/copy-keys.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';
import { judgeBook } from './support/run-attacks.js';

/** Attacks between two runs of the worker: Redis flushed and put back as it was, journals that began new files, clocks. */

const LIFETIME_MS = 20_000;

let world: ForgingWorld;

async function rotate(account: ForgedAccount, times: number): Promise<void> {
  const path = join(world.journalDir, `${account.platformId}.journal`);
  for (let number = 1; number <= times; number += 1) {
    await rename(path, `${path}.${number}`);
    await (await FileSendJournal.open({ dir: world.journalDir, platformId: account.platformId })).close();
  }
}

const SET_BACK = RESTARTS.findIndex(({ clock }) => clock === 'expired, then set back');

beforeAll(async () => {
  world = await ForgingWorld.open(RESTARTS.length);
  const startedAt = Date.now();
  for (const [index, account] of world.accounts.entries()) {
    const payout = { payoutId: 'P', paymentId: 6, amount: '12.5', addressTo: `wallet-${account.platformId}` };
    await account.enqueue(payout, RESTARTS[index]?.clock === undefined ? {} : { lifetimeMs: LIFETIME_MS });
  }
  const old = await Promise.all(world.accounts.map(copyKeys));
  const first = await world.startWorker();
  await until('all are paid', async () => {
    const states = await Promise.all(world.accounts.map(async (account) => (await account.payout('P')).state));
    return states.every((state) => state === 'completed');
  });
  await first.stop();
  const paid = await Promise.all(world.accounts.map(copyKeys));
  await world.attacker.flushall();
  for (const [index, row] of RESTARTS.entries()) {
    const account = world.account(index);
    await rotate(account, row.rotations ?? 0);
    await row.attack(account, old[index] ?? new Map(), paid[index] ?? new Map());
    if (row.expect === 'stopped') await account.ring('P');
  }
  await delay(Math.max(0, startedAt + LIFETIME_MS + 3_000 - Date.now()));
  const second = await world.startWorker();
  await until('the expired are held', async () => {
    const expired = world.accounts.filter((_, index) => RESTARTS[index]?.clock !== undefined);
    const states = await Promise.all(expired.map(async (account) => (await account.payout('P')).state));
    return states.every((state) => state === 'held');
  });
  await delay(4_000);
  await second.stop();
  await setClockBack(world.account(SET_BACK));
}, 120_000);

/** What had expired counts again by this clock, but was sent. */
async function setClockBack(account: ForgedAccount): Promise<void> {
  expect((await account.payout('P')).held?.reason).toBe('expired');
  await account.revive('P');
  await world.startWorker({ clock: { ...systemClock, wallNow: () => Date.now() - 60_000 } }, {}, [account]);
  await until('it is held again', async () => (await account.payout('P')).state === 'held');
}

afterAll(async () => {
  await world.close();
});

it.each(RESTARTS.map(({ name, expect: expected }, index) => ({ name, expected, index })))(
  '$name',
  async ({ index, expected }) => {
    const account = world.account(index);
    judgeBook(world, account);
    expect(world.sandbox.payments(account.platformId)).toHaveLength(1);
    const payout = await account.payout('P');
    expect([payout.state, payout.held?.reason]).toEqual(
      expected === 'stopped' ? ['queued', undefined] : ['held', expected.held],
    );
    const isTold = (await account.tamperings()).some(({ payoutId }) => payoutId === 'P');
    expect(isTold).toBe(expected !== 'stopped' && expected.isTampering);
  },
);
