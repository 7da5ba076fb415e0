import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorld, type PayoutWorld, untilSent } from '../worker/support/payout-world.js';
import { endAllWorkers } from '../worker/support/worker-process.js';

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

const CAP = '{ name: quarter-minute, when: { paymentId: ["1"] }, cap: { amount: "0.02", within: 15s }, over: wait }';

async function startWorker(journal = 'journal') {
  const policyFile = join(world.dir, 'policy.yaml');
  const head = `version: 1\nplatformId: "${world.platformId}"\ndefault: send\n`;
  await writeFile(policyFile, `${head}rules:\n  - ${CAP}\n`, { mode: 0o600 });
  const environment = { PAYOUT_POLICY_FILE: policyFile };
  const worker = world.startWorker({ journalDir: join(world.dir, journal), environment });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  return worker;
}

/** That the third arrived once the window since the first had passed, and soon after that. */
function expectThirdInTime(lateMs = Infinity) {
  const [first = 0, , third = Infinity] = world.sandbox.arrivals().map(({ atMs }) => atMs);
  expect(third - first).toBeGreaterThanOrEqual(WINDOW_MS);
  expect(third - first).toBeLessThan(WINDOW_MS + lateMs);
}

it('a payout over the cap of a window is held, and sent by itself as soon as the window lets it', async () => {
  await startWorker();
  await world.enqueue(4);
  await untilSent(world, 2);
  await until('the third is held', async () => (await world.producer.get('P-3'))?.state === 'held');
  const held = { kind: 'policy', reason: 'wait', rule: 'quarter-minute' };
  expect(await world.producer.get('P-3')).toMatchObject({ held });
  for (const id of ['P-3', 'P-4']) expect(await world.producer.waitFor(id, WAIT)).toMatchObject({ state: 'completed' });
  // The answer to the first, a check a second, and a slot.
  expectThirdInTime(8_000);
  await expectPromisesKept(world);
}, 90_000);

// With the same journal and without what Redis knows: test/forging/policy.slow.test.ts.
it('a worker with another journal knows from Redis what was spent', async () => {
  const first = await startWorker();
  await world.enqueue(2);
  await untilSent(world, 2);
  await until('both are known', async () => (await world.producer.stats()).completed === 2);
  first.kill('SIGKILL');
  await first.ended;
  await startWorker('another journal');
  await world.enqueue(1, 'Q');
  expect(await world.producer.waitFor('Q-1', WAIT)).toMatchObject({ state: 'completed' });
  expectThirdInTime();
  await expectPromisesKept(world);
}, 90_000);
