import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { expectPromisesKept, openWorld, type PayoutWorld, untilSent } from '../worker/support/payout-world.js';
import { endAllWorkers } from '../worker/support/worker-process.js';
import { openTestKeys } from './support/key-files.js';
import { TEST_AUDIENCE } from './support/keys.js';

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

const policyFile = (): string => join(world.dir, 'policy.yaml');

async function startWorker(rule: string, journal = 'journal', more: Record<string, string> = {}) {
  const head = `version: 1\nplatformId: "${world.platformId}"\ndefault: send\ngroups: { finance: [ann, bob] }\n`;
  await writeFile(policyFile(), `${head}rules:\n  - ${rule}\n`, { mode: 0o600 });
  const environment = { PAYOUT_POLICY_FILE: policyFile(), ...more };
  const worker = world.startWorker({ journalDir: join(world.dir, journal), environment });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  return worker;
}

/** That the third arrived once the window since the first had passed, and soon after that. */
function expectThirdInTime(lateMs = Infinity): void {
  const [first = 0, , third = Infinity] = world.sandbox.arrivals().map(({ atMs }) => atMs);
  expect(third - first).toBeGreaterThanOrEqual(WINDOW_MS);
  expect(third - first).toBeLessThan(WINDOW_MS + lateMs);
}

it('a payout over the cap of a window is held, and sent by itself as soon as the window lets it', async () => {
  await startWorker(CAP);
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
  const first = await startWorker(CAP);
  await world.enqueue(2);
  await untilSent(world, 2);
  await until('both are known', async () => (await world.producer.stats()).completed === 2);
  first.kill('SIGKILL');
  await first.ended;
  await startWorker(CAP, 'another journal');
  await world.enqueue(1, 'Q');
  expect(await world.producer.waitFor('Q-1', WAIT)).toMatchObject({ state: 'completed' });
  expectThirdInTime();
  await expectPromisesKept(world);
}, 90_000);

const RULE =
  '{ name: four-eyes, cap: { amount: "100" }, when: { paymentId: ["6"] }, over: { approve: { by: finance, quorum: 2 } } }';

it('a payout over the threshold is held, approved by two people with ssh keys, and sent', async () => {
  const keys = closeAfterTest(await openTestKeys());
  const { redisUrl, platformId } = world;
  const [shop, ann, bob] = [await keys.makeKey('shop'), await keys.makeSshKey('ann'), await keys.makeSshKey('bob')];
  const keysFile = await keys.writeKeyring(
    { name: 'shop', role: 'producer', person: 'shop', public: shop.public },
    { name: 'ann', role: 'approver', person: 'ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'bob', public: bob.public },
  );
  await startWorker(RULE, 'journal', { PAYOUT_KEYS_FILE: keysFile });
  const signingKey = { name: 'shop', privateKey: shop.privateKey };
  const producer = closeAfterTest(new PayoutProducer({ redisUrl, platformId, audience: TEST_AUDIENCE, signingKey }));
  await producer.enqueue({ payoutId: 'large', paymentId: 6, amount: '2500', addressTo: 'wallet' });
  const held = { kind: 'policy', rule: 'four-eyes', needs: { by: 'finance', persons: 2 } };
  expect(await producer.waitFor('large', { timeoutMs: 30_000 })).toMatchObject({ state: 'held', held });
  const env = { REDIS_URL: redisUrl, GATEWAY_PLATFORM_ID: String(platformId), PAYOUT_KEYS_FILE: keysFile };
  for (const { file } of [ann, bob])
    expect(await runCli(['approve', 'large', '--ssh-key', file, '--yes'], { env })).toMatchObject({ code: 0 });
  await until('it is paid', async () => (await producer.get('large'))?.state === 'completed');
  expect(world.sandbox.payments()).toMatchObject([{ amount: '2500', addressTo: 'wallet' }]);
  await expectPromisesKept(world);
}, 180_000);
