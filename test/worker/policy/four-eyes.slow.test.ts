import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { systemClock } from '../../../src/clock.js';
import { PayoutProducer } from '../../../src/producer/payout-producer.js';
import { openTestKeys, type TestKeys } from '../../control/support/key-files.js';
import { launchChromium } from '../../dashboard/support/launch-chromium.js';
import { openDashboard, type RunningDashboard } from '../../dashboard/support/running-dashboard.js';
import { runCli, type CliResult } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { expectPromisesKept, openWorld, type PayoutWorld } from '../support/payout-world.js';
import { endAllWorkers } from '../support/worker-process.js';

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
  producer = new PayoutProducer({ redisUrl, platformId, signingKey: { name: 'shop', privateKey: shop.privateKey } });
  dashboard = await openDashboard({ platformId, clock: { ...systemClock, advance: () => undefined } }, { redisUrl });
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
    addressTo: paymentId === 6 ? ADDRESS : `0x${payoutId.padEnd(40, '0')}`,
  });
}

const approve = async (payoutId: string, by: 'ann' | 'bob'): Promise<CliResult> =>
  payouts('approve', payoutId, '--ssh-key', files[by] ?? '', '--yes', '--reason', 'invoice checked');

it('a payout over the threshold is held, seen, approved by two persons with ssh keys, and sent', async () => {
  await enqueue('large', '2500');
  expect(await producer.waitFor('large', { timeoutMs: 30_000 })).toMatchObject({
    state: 'held',
    held: { kind: 'policy', rule: 'four-eyes', reason: 'approve', needs: { by: 'finance', persons: 2 } },
  });
  await page.goto(`${dashboard.url}payouts/large`);
  await page.getByText('2 more persons of the group finance must approve it').first().waitFor();
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
  expect(stdout).toMatch(/Ann/);
  expect(stdout).toMatch(/Bob/);
});

it('one that somebody rejects is not sent, also where another approves it', async () => {
  await enqueue('refused', '900');
  await until('it is held', async () => (await producer.get('refused'))?.state === 'held');
  expect(
    await payouts('reject', 'refused', '--ssh-key', files['bob'] ?? '', '--reason', 'no such invoice'),
  ).toMatchObject({
    code: 0,
  });
  expect(await approve('refused', 'ann')).toMatchObject({ code: 0 });
  await until('the rejection counts', async () => (await producer.get('refused'))?.held?.reason === 'refuse');
  expect((await producer.get('refused'))?.held?.message).toContain('Bob rejected it');
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
  expect(waitedMs).toBeLessThan(WINDOW_MS + 6_000);
  // Released by the worker itself, in the second that the record named.
  const movedAt = (to: string): number => Date.parse(history.findLast((each) => each.to === to)?.at ?? '');
  const { history = [] } = (await producer.get('three')) ?? {};
  expect(Math.abs(movedAt('queued') - Date.parse(held?.until ?? ''))).toBeLessThan(3_000);
  expect(movedAt('sending') - movedAt('queued')).toBeLessThan(3_000);
  await expectPromisesKept(world);
});
