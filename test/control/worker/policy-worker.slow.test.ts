import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { until } from '../../support/until.js';
import { expectPromisesKept, openWorld, untilSent, type PayoutWorld } from '../../worker/support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from '../../worker/support/worker-process.js';

/** A real worker process with a policy, a real Redis and the sandbox's arrivals. */

const WINDOW_MS = 15_000;
const WAIT = { timeoutMs: 60_000 };

let world: PayoutWorld;

beforeEach(async () => {
  world = await openWorld();
});

afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

const policyFile = (): string => join(world.dir, 'policy.yaml');

async function writePolicy(...rules: readonly string[]): Promise<void> {
  const head = `version: 1\nplatformId: "${world.platformId}"\ndefault: send\nrules:\n`;
  await writeFile(policyFile(), head + rules.map((rule) => `  - ${rule}\n`).join(''), { mode: 0o600 });
}

const CAP = '{ name: quarter-minute, when: { paymentId: ["1"] }, cap: { amount: "0.02", within: 15s }, over: wait }';

async function startWorker(journalDir = join(world.dir, 'journal')): Promise<WorkerProcess> {
  const worker = world.startWorker({ journalDir, environment: { PAYOUT_POLICY_FILE: policyFile() } });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  return worker;
}

async function forgetSpends(): Promise<void> {
  const redis = connectRedis(world.redisUrl, 'commands');
  expect(await redis.del(`{payouts:${world.platformId}}:spent`)).toBe(1);
  await closeRedis(redis);
}

/** Between the first and the third arrival, ms. */
function firstToThird(): number {
  const [first, , third] = world.sandbox.arrivals().map(({ atMs }) => atMs);
  return (third ?? Infinity) - (first ?? 0);
}

it('a payout over the cap of a window is held, and sent by itself as soon as the window lets it', async () => {
  await writePolicy(CAP);
  const worker = await startWorker();
  await world.enqueue(4);
  await untilSent(world, 2);
  await until('the third is held', async () => (await world.producer.get('P-3'))?.state === 'held');
  expect((await world.producer.get('P-3'))?.held).toMatchObject({
    ...{ kind: 'policy', reason: 'wait', rule: 'quarter-minute' },
    until: expect.stringMatching(/^20/),
    message: expect.stringContaining('0.02 of 0.02 are spent, and it is 0.01'),
  });
  expect(await world.producer.waitFor('P-3', WAIT)).toMatchObject({ state: 'completed' });
  expect(await world.producer.waitFor('P-4', WAIT)).toMatchObject({ state: 'completed' });
  expect(firstToThird()).toBeGreaterThanOrEqual(WINDOW_MS);
  // It did not wait for much longer: the answer to the first, a check a second, and a slot.
  expect(firstToThird()).toBeLessThan(WINDOW_MS + 8_000);
  await expectPromisesKept(world);
  expect(worker.log()).toContain('payout released');
}, 90_000);

it.each([
  ['its journal, where Redis has forgotten it', true, 'journal'],
  ['the ledger, where the journal is another', false, 'another-journal'],
])(
  'a worker that was killed knows from %s what was spent',
  async (_name, isForgotten, dir) => {
    await writePolicy(CAP);
    const first = await startWorker();
    await world.enqueue(2);
    await untilSent(world, 2);
    await until('both are known', async () => (await world.producer.stats()).completed === 2);
    first.kill('SIGKILL');
    await first.ended;
    if (isForgotten) await forgetSpends();
    await startWorker(join(world.dir, dir));
    await world.enqueue(1, 'Q');
    expect(await world.producer.waitFor('Q-1', WAIT)).toMatchObject({ state: 'completed' });
    expect(firstToThird()).toBeGreaterThanOrEqual(WINDOW_MS);
    await expectPromisesKept(world);
  },
  90_000,
);

it('a policy that is read again releases what the one before held', async () => {
  await writePolicy('{ name: none, when: { paymentId: ["1"] }, cap: { amount: "0.001" }, over: refuse }');
  const worker = await startWorker();
  await world.enqueue(1);
  const held = await world.producer.waitFor('P-1', WAIT);
  expect(held).toMatchObject({ state: 'held', held: { reason: 'refuse', rule: 'none' } });
  await writePolicy('{ name: some, when: { paymentId: ["1"] }, cap: { amount: "1" }, over: refuse }');
  worker.kill('SIGHUP');
  await until('it is sent', async () => (await world.producer.get('P-1'))?.state === 'completed');
  await expectPromisesKept(world);
}, 90_000);
