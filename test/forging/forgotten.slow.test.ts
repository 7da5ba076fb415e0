import { rename, readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { until } from '../support/until.js';
import { FORGOTTEN } from './attacks/forgotten.js';
import { ForgingWorld } from './support/forging-world.js';
import { judgeBook } from './support/run-attacks.js';
import { DAY_MS } from './support/signers.js';

/** After retention: the file with the send is gone, and the wall clock is set back to when the intent still counted. */

let world: ForgingWorld;
const realNow = Date.now.bind(Date);
let offsetMs = 0;

function travel(days: number): void {
  offsetMs = days * DAY_MS;
}

async function payAndSetAside(payoutId: string, file: number): Promise<void> {
  const account = world.account(0);
  await account.enqueue({ payoutId, paymentId: 6, amount: '12.5', addressTo: `wallet-${payoutId}` });
  const worker = await world.startWorker({ journalDays: 1 });
  await until('it is paid', async () => (await account.payout(payoutId)).state === 'completed');
  await worker.stop();
  const path = join(world.journalDir, `${account.platformId}.journal`);
  await rename(path, `${path}.${file}`);
  const at = new Date(Date.now());
  await utimes(`${path}.${file}`, at, at);
}

beforeAll(async () => {
  jest.spyOn(Date, 'now').mockImplementation(() => realNow() + offsetMs);
  travel(-9);
  world = await ForgingWorld.open(1);
  await payAndSetAside('old', 1);
  await payAndSetAside('newer', 2);
}, 120_000);

afterAll(async () => {
  jest.restoreAllMocks();
  await world.close();
});

it(`${FORGOTTEN.name}: held`, async () => {
  const account = world.account(0);
  travel(0);
  const worker = await world.startWorker({ journalDays: 1 });
  await until(
    'the oldest file is gone',
    async () => !(await readdir(world.journalDir)).some((name) => name.endsWith('.1')),
  );
  await worker.stop();

  // The intent of `old` counts for another hour.
  travel(-8 - 1 / 24);
  await account.revive('old');
  await world.startWorker({ journalDays: 1 });
  await until('it is held', async () => (await account.payout('old')).state === 'held');
  expect((await account.payout('old')).held?.reason).toBe(FORGOTTEN.expect.held);
  expect(await account.tamperings()).toEqual([]);
  judgeBook(world, account);
  expect(world.sandbox.payments(account.platformId)).toHaveLength(2);
});
