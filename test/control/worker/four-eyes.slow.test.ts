import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { systemClock } from '../../../src/base/clock.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { launchChromium } from '../../dashboard/support/launch-chromium.js';
import { openDashboard, type RunningDashboard } from '../../dashboard/support/running-dashboard.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from '../../worker/support/payout-world.js';
import { endAllWorkers } from '../../worker/support/worker-process.js';
import { TEST_AUDIENCE } from '../support/keys.js';

/** What an operator and two approvers do, each with the tool that they have: commands, ssh keys, a browser. */

jest.setTimeout(180_000);

const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const WINDOW_MS = 20_000;

let world: PayoutWorld;
let keys: TestKeys;
let producer: PayoutProducer;
let dashboard: RunningDashboard;
let browser: Browser;
let page: Page;
let env: Readonly<Record<string, string>>;
const files: Record<string, string> = {};

beforeAll(async () => {
  world = await openWorld();
  keys = await openTestKeys();
  const shop = await keys.makeKey('shop');
  const [ann, bob] = [await keys.makeSshKey('ann'), await keys.makeSshKey('bob')];
  const keyring = await keys.writeKeyring(
    { name: 'shop', role: 'producer', person: 'Sam', public: shop.public },
    { name: 'ann', role: 'approver', person: 'Ann', public: ann.public },
    { name: 'bob', role: 'approver', person: 'Bob', public: bob.public },
  );
  Object.assign(files, { ann: ann.file, bob: bob.file });
  const policyFile = join(world.dir, 'policy.yaml');
  await writeFile(
    policyFile,
    `version: 1
platformId: "${world.platformId}"
default: send
groups: { finance: [Ann, Bob] }
rules:
  - { name: four-eyes, when: { paymentId: ["6"] }, cap: { amount: "100" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: small, when: { paymentId: ["7"] }, cap: { amount: "10", within: 20s }, over: wait }
`,
    { mode: 0o600 },
  );
  env = {
    ...{ REDIS_URL: world.redisUrl, GATEWAY_PLATFORM_ID: String(world.platformId), PAYOUT_KEYS_FILE: keyring },
  };
  const worker = world.startWorker({ environment: { PAYOUT_KEYS_FILE: keyring, PAYOUT_POLICY_FILE: policyFile } });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
  const { redisUrl, platformId } = world;
  producer = new PayoutProducer({
    redisUrl,
    platformId,
    audience: TEST_AUDIENCE,
    signingKey: { name: 'shop', privateKey: shop.privateKey },
  });
  const options = { redisUrl, keysFile: keyring, policyFiles: new Map([[platformId, policyFile]]) };
  dashboard = await openDashboard({ platformId, clock: { ...systemClock, advance: () => undefined } }, options);
  browser = await launchChromium();
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  page.setDefaultTimeout(60_000);
});

afterAll(async () => {
  await browser.close();
  await dashboard.close();
  await producer.close();
  await endAllWorkers();
  await world.close();
  await keys.close();
});

const payouts = async (...args: readonly string[]): Promise<CliResult> => runCli(args, { env });

async function enqueue(payoutId: string, amount: string, paymentId = 6): Promise<void> {
  await producer.enqueue({
    payoutId,
    paymentId,
    amount,
    addressTo: paymentId === 6 ? ADDRESS : `0x${Buffer.from(payoutId).toString('hex').padEnd(40, '0')}`,
  });
}

const approve = async (payoutId: string, by: 'ann' | 'bob'): Promise<CliResult> =>
  payouts('approve', payoutId, '--ssh-key', files[by] ?? '', '--yes', '--reason', 'invoice checked');

it('a payout over the threshold is held, seen, approved by two people with ssh keys, and sent', async () => {
  await enqueue('large', '2500');
  expect(await producer.waitFor('large', { timeoutMs: 30_000 })).toMatchObject({
    state: 'held',
    held: { kind: 'policy', rule: 'four-eyes', reason: 'approve', needs: { by: 'finance', persons: 2 } },
  });
  await page.goto(`${dashboard.url}payouts/large`);
  await page.getByText('2 more people of the group finance must approve it').first().waitFor();
  await page.getByText('payouts approve').first().waitFor();
  expect((await payouts('approvals')).stdout).toContain(ADDRESS);

  const ann = await approve('large', 'ann');
  expect(ann).toMatchObject({ code: 0 });
  expect(ann.stderr).toContain(ADDRESS);
  expect(ann.stderr).toContain('2500');
  await page.getByText('1 more person of the group finance must approve it').first().waitFor();
  expect(await approve('large', 'bob')).toMatchObject({ code: 0 });
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  expect(
    world.sandbox
      .payments()
      .filter((each) => each.addressTo === ADDRESS)
      .map(({ amount, addressTo }) => ({ amount, addressTo })),
  ).toEqual([{ amount: '2500', addressTo: ADDRESS }]);
  const { stdout } = await payouts('get', 'large');
  expect(stdout).toMatch(/ann/);
  expect(stdout).toMatch(/bob/);
});

/** Signs on a machine without a network what was printed for it, and has the dashboard keep it. */
async function post(payoutId: string, by: 'ann' | 'bob'): Promise<Record<string, unknown>> {
  const printed = await payouts('approve', payoutId, '--offline', '--key-name', by, '--reason', 'seen on paper');
  const { text, ...approval } = JSON.parse(printed.stdout) as { readonly text: string };
  const sign = ['-q', '-Y', 'sign', '-f', files[by]?.replace(/\.pub$/, '') ?? '', '-n', 'approval.payout-queue'];
  const { stdout: signature } = spawnSync('ssh-keygen', sign, { input: text, encoding: 'utf8' });
  const body = JSON.stringify({ ...approval, signature });
  const response = await dashboard.ask('approvals', {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

it('two people approve one through the dashboard, with what they signed elsewhere', async () => {
  await enqueue('posted', '3100');
  await until('it is held', async () => (await producer.get('posted'))?.state === 'held');
  await page.goto(`${dashboard.url}held`);
  const item = page.locator('[data-key="posted"]');
  await item.getByText('2 more people of finance to approve it').waitFor();
  expect(await item.innerHTML()).toContain(ADDRESS);
  expect(await post('posted', 'ann')).toMatchObject({ approvedBy: ['ann'], missing: { by: 'finance', persons: 1 } });
  await until('the worker has seen it', async () => (await producer.get('posted'))?.held?.needs?.persons === 1);
  await page.reload();
  await item.getByText('1 more person of finance to approve it').waitFor();
  expect(await item.innerText()).toContain('ann');
  await page.goto(`${dashboard.url}payouts/posted`);
  await page.getByText('Reason, not signed: seen on paper').waitFor();
  await page.locator('tr.holding', { hasText: 'needs 1 more approval by finance' }).waitFor();

  expect(await post('posted', 'bob')).toMatchObject({ approvedBy: ['ann', 'bob'], missing: null });
  await page.locator('.badge', { hasText: 'completed' }).first().waitFor();
  await page.goto(`${dashboard.url}audit`);
  const row = page.locator('tbody tr').first();
  expect(await row.innerText()).toMatch(/posted[^]*3,100[^]*sam \(shop\)[^]*ann, bob[^]*completed/);
  const paid = world.sandbox.payments().filter(({ amount }) => amount === '3100');
  expect(paid.map(({ addressTo }) => addressTo)).toEqual([ADDRESS]);
});

it('one that someone rejects is not sent, also where another approves it', async () => {
  await enqueue('refused', '900');
  await until('it is held', async () => (await producer.get('refused'))?.state === 'held');
  expect(
    await payouts('reject', 'refused', '--ssh-key', files['bob'] ?? '', '--reason', 'no such invoice'),
  ).toMatchObject({
    code: 0,
  });
  expect(await approve('refused', 'ann')).toMatchObject({ code: 0 });
  await until('the rejection counts', async () => (await producer.get('refused'))?.held?.reason === 'refuse');
  expect((await producer.get('refused'))?.held?.message).toContain('bob rejected it');
  expect(world.sandbox.payments().filter(({ amount }) => amount === '900')).toEqual([]);
});

it("a cap's window frees what waits at the right second, and the page shows how full it is", async () => {
  for (const payoutId of ['one', 'two', 'three']) await enqueue(payoutId, '5', 7);
  await until('the third is held', async () => (await producer.get('three'))?.state === 'held');
  const held = (await producer.get('three'))?.held;
  await page.goto(`${dashboard.url}policy`);
  await page.getByLabel('small: 100 % used').waitFor();
  expect((await payouts('policy', 'usage')).stdout).toMatch(/small +█{20} +100 % +10 of 10 in 20 s/);
  expect(await producer.waitFor('three', { timeoutMs: 60_000 })).toMatchObject({ state: 'completed' });
  const [first, , third] = world.sandbox
    .arrivals()
    .filter(({ addressTo }) => addressTo?.startsWith('0x'))
    .map(({ atMs }) => atMs);
  const waitedMs = (third ?? NaN) - (first ?? NaN);
  expect(waitedMs).toBeGreaterThanOrEqual(WINDOW_MS);
  // Its answer, a check a second, a slot of a second; and a busy machine.
  expect(waitedMs).toBeLessThan(WINDOW_MS + 10_000);
  // Released by the worker itself, in the second that the record named.
  const movedAt = (to: string): number => Date.parse(history.findLast((each) => each.to === to)?.at ?? '');
  const { history = [] } = (await producer.get('three')) ?? {};
  expect(Math.abs(movedAt('queued') - Date.parse(held?.until ?? ''))).toBeLessThan(8_000);
  expect(movedAt('sending') - movedAt('queued')).toBeLessThan(8_000);
  await expectPromisesKept(world);
});
