import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { openDashboard } from '../dashboard/support/running-dashboard.js';
import { type CliResult, runCli } from '../support/cli.js';
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
  const worker = await startWorker(CAP);
  await world.enqueue(4);
  await untilSent(world, 2);
  await until('the third is held', async () => (await world.producer.get('P-3'))?.state === 'held');
  const held = (await world.producer.get('P-3'))?.held;
  expect(held).toMatchObject({ kind: 'policy', reason: 'wait', rule: 'quarter-minute' });
  for (const id of ['P-3', 'P-4']) expect(await world.producer.waitFor(id, WAIT)).toMatchObject({ state: 'completed' });
  // The answer to the first, a check a second, and a slot.
  expectThirdInTime(8_000);
  // Released by the worker itself, in the second that the record named.
  const { history = [] } = (await world.producer.get('P-3')) ?? {};
  const queuedAt = Date.parse(history.findLast(({ to }) => to === 'queued')?.at ?? '');
  expect(Math.abs(queuedAt - Date.parse(held?.until ?? ''))).toBeLessThan(8_000);
  await expectPromisesKept(world);
  expect(worker.log()).toContain('payout released');
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

/** What an operator and two approvers do, each with the tool that they have: commands, ssh keys, the dashboard. */

const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const RULE =
  '{ name: four-eyes, cap: { amount: "100" }, when: { paymentId: ["6"] }, over: { approve: { by: finance, quorum: 2 } } }';

it('a payout over the threshold is held, approved by two people with ssh keys, one offline, and sent', async () => {
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
  const clock = { ...systemClock, advance: () => undefined };
  const options = { redisUrl, keysFile, policyFiles: new Map([[platformId, policyFile()]]) };
  const dashboard = closeAfterTest(await openDashboard({ platformId, clock }, options));
  const env = { REDIS_URL: redisUrl, GATEWAY_PLATFORM_ID: String(platformId), PAYOUT_KEYS_FILE: keysFile };
  const approve = async (...args: readonly string[]): Promise<CliResult> =>
    runCli(['approve', 'large', '--reason', 'invoice checked', ...args], { env });

  await producer.enqueue({ payoutId: 'large', paymentId: 6, amount: '2500', addressTo: ADDRESS });
  const held = { kind: 'policy', rule: 'four-eyes', needs: { by: 'finance', persons: 2 } };
  expect(await producer.waitFor('large', { timeoutMs: 30_000 })).toMatchObject({ state: 'held', held });
  expect(await dashboard.read('payouts/large')).toContain('2 more people of the group finance must approve it');
  expect((await approve('--ssh-key', ann.file, '--yes')).stderr).toContain(ADDRESS);

  // The other signs on a machine without a network what was printed for it, and has the dashboard keep it.
  const { text, ...approval } = JSON.parse((await approve('--offline', '--key-name', 'bob')).stdout) as {
    text: string;
  };
  const sign = ['-q', '-Y', 'sign', '-f', bob.file.replace(/\.pub$/, ''), '-n', 'approval.payout-queue'];
  const { stdout: signature } = spawnSync('ssh-keygen', sign, { input: text, encoding: 'utf8' });
  const body = JSON.stringify({ ...approval, signature });
  const kept = await dashboard.ask('approvals', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect(await kept.json()).toMatchObject({ approvedBy: ['ann', 'bob'], missing: null });

  await until('it is paid', async () => (await producer.get('large'))?.state === 'completed');
  expect(world.sandbox.payments().map(({ amount, addressTo }) => [amount, addressTo])).toEqual([['2500', ADDRESS]]);
  expect(await dashboard.read('audit')).toMatch(/large[^]*2,500[^]*shop[^]*ann, bob[^]*completed/);
  await expectPromisesKept(world);
}, 180_000);
