import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { KeyRole } from '../../../src/control/keys/keyring.js';
import { openDashboard, type RunningDashboard } from '../../dashboard/support/running-dashboard.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from '../../worker/support/payout-world.js';
import { endAllWorkers } from '../../worker/support/worker-process.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { TEST_AUDIENCE } from '../support/keys.js';

/** What an operator and two approvers do, each with the tool that they have: commands, ssh keys, the dashboard. */

jest.setTimeout(180_000);

const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const FOUR_EYES = 'cap: { amount: "100" }, over: { approve: { by: finance, quorum: 2 } }';

let world: PayoutWorld;
let keys: TestKeys;
let producer: PayoutProducer;
let dashboard: RunningDashboard;
let env: Readonly<Record<string, string>>;
const files: Record<string, string> = {};

beforeAll(async () => {
  world = await openWorld();
  keys = await openTestKeys();
  const { redisUrl, platformId } = world;
  const entry = (name: string, role: KeyRole, key: { public: string }) => ({
    name,
    role,
    person: name,
    public: key.public,
  });
  const shop = await keys.makeKey('shop');
  const [ann, bob] = [await keys.makeSshKey('ann'), await keys.makeSshKey('bob')];
  const entries = [entry('shop', 'producer', shop), entry('ann', 'approver', ann), entry('bob', 'approver', bob)];
  const keysFile = await keys.writeKeyring(...entries);
  Object.assign(files, { ann: ann.file, bob: bob.file });
  const policyFile = join(world.dir, 'policy.yaml');
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [ann, bob] }\nrules:\n`;
  const rule = `  - { name: four-eyes, when: { paymentId: ["6"] }, ${FOUR_EYES} }\n`;
  await writeFile(policyFile, head + rule, { mode: 0o600 });
  env = { REDIS_URL: redisUrl, GATEWAY_PLATFORM_ID: String(platformId), PAYOUT_KEYS_FILE: keysFile };
  const worker = world.startWorker({ environment: { PAYOUT_KEYS_FILE: keysFile, PAYOUT_POLICY_FILE: policyFile } });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  const signingKey = { name: 'shop', privateKey: shop.privateKey };
  producer = new PayoutProducer({ redisUrl, platformId, audience: TEST_AUDIENCE, signingKey });
  const options = { redisUrl, keysFile, policyFiles: new Map([[platformId, policyFile]]) };
  dashboard = await openDashboard({ platformId, clock: { ...systemClock, advance: () => undefined } }, options);
});

afterAll(async () => {
  await dashboard.close();
  await producer.close();
  await endAllWorkers();
  await world.close();
  await keys.close();
});

const payouts = async (...args: readonly string[]): Promise<CliResult> => runCli(args, { env });
const page = async (path: string): Promise<string> => (await dashboard.ask(path)).text();
const paid = (amount: string) => world.sandbox.payments().filter((payment) => payment.amount === amount);

async function hold(payoutId: string, amount: string): Promise<void> {
  await producer.enqueue({ payoutId, paymentId: 6, amount, addressTo: ADDRESS });
  expect(await producer.waitFor(payoutId, { timeoutMs: 30_000 })).toMatchObject({
    ...{ state: 'held', held: { kind: 'policy', rule: 'four-eyes', needs: { by: 'finance', persons: 2 } } },
  });
}

const decide = async (command: 'approve' | 'reject', payoutId: string, by: string): Promise<CliResult> => {
  const yes = command === 'approve' ? ['--yes'] : [];
  const done = await payouts(command, payoutId, '--ssh-key', files[by] ?? '', ...yes, '--reason', 'invoice checked');
  expect(done).toMatchObject({ code: 0 });
  return done;
};

it('a payout over the threshold is held, seen, approved by two people with ssh keys, and sent', async () => {
  await hold('large', '2500');
  expect(await page('payouts/large')).toContain('2 more people of the group finance must approve it');
  expect((await payouts('approvals')).stdout).toContain(ADDRESS);
  const { stderr } = await decide('approve', 'large', 'ann');
  for (const shown of [ADDRESS, '2500']) expect(stderr).toContain(shown);
  await decide('approve', 'large', 'bob');
  await until('it is paid', async () => (await producer.get('large'))?.state === 'completed');
  expect(paid('2500').map(({ addressTo }) => addressTo)).toEqual([ADDRESS]);
  expect((await payouts('get', 'large')).stdout).toMatch(/ann[^]*bob/);
});

/** Signs on a machine without a network what was printed for it, and has the dashboard keep it. */
async function post(payoutId: string, by: string): Promise<unknown> {
  const printed = await payouts('approve', payoutId, '--offline', '--key-name', by, '--reason', 'seen on paper');
  const { text, ...approval } = JSON.parse(printed.stdout) as { readonly text: string };
  const sign = ['-q', '-Y', 'sign', '-f', files[by]?.replace(/\.pub$/, '') ?? '', '-n', 'approval.payout-queue'];
  const { stdout: signature } = spawnSync('ssh-keygen', sign, { input: text, encoding: 'utf8' });
  const body = JSON.stringify({ ...approval, signature });
  const headers = { 'content-type': 'application/json' };
  const response = await dashboard.ask('approvals', { method: 'POST', headers, body });
  expect(response.status).toBe(200);
  return response.json();
}

it('two people approve one through the dashboard, with what they signed elsewhere', async () => {
  await hold('posted', '3100');
  expect(await page('held')).toContain('2 more people of finance to approve it');
  expect(await post('posted', 'ann')).toMatchObject({ approvedBy: ['ann'], missing: { by: 'finance', persons: 1 } });
  await until('the worker has seen it', async () => (await producer.get('posted'))?.held?.needs?.persons === 1);
  expect(await page('payouts/posted')).toContain('seen on paper');
  expect(await post('posted', 'bob')).toMatchObject({ approvedBy: ['ann', 'bob'], missing: null });
  await until('it is paid', async () => (await producer.get('posted'))?.state === 'completed');
  expect(paid('3100').map(({ addressTo }) => addressTo)).toEqual([ADDRESS]);
  expect(await page('audit')).toMatch(/posted[^]*3,100[^]*shop[^]*ann, bob[^]*completed/);
});

it('one that someone rejects is not sent, also where another approves it', async () => {
  await hold('refused', '900');
  await decide('reject', 'refused', 'bob');
  await decide('approve', 'refused', 'ann');
  await until('the rejection counts', async () => (await producer.get('refused'))?.held?.reason === 'refuse');
  expect((await producer.get('refused'))?.held?.message).toContain('bob rejected it');
  expect(paid('900')).toEqual([]);
  await expectPromisesKept(world);
});
