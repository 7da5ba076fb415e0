import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import type { PayoutInput } from '../../src/ledger/payout.js';
import { findCurrency } from '../../src/sandbox/currency.js';
import { openDashboard } from '../dashboard/support/running-dashboard.js';
import { until } from '../support/until.js';
import { APPROVALS, approve, POSTED, putApproval, REJECTIONS, SECOND_KEY } from './attacks/approvals.js';
import type { Target } from './support/attack.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';

/** Attacks on what a policy holds, by who can write to Redis. */

const used = ForgingWorld.use(7);

async function startWorker(account: ForgedAccount, ...rules: readonly string[]) {
  const { platformId } = account;
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [ann, bob] }\nrules:\n`;
  const policyFile = join(used.world.dir, `policy-${platformId}.yaml`);
  await writeFile(policyFile, head + rules.map((rule) => `  - ${rule}\n`).join(''), { mode: 0o600 });
  return used.world.startWorker({}, { policyFile }, [account]);
}

const untilIn: ForgingWorld['untilIn'] = async (...given) => used.world.untilIn(...given);
const heldOf = async (account: ForgedAccount, payoutId: string) => {
  const { state, held } = await account.payout(payoutId);
  return { state, ...held };
};

const inputOf = (payoutId: string, change: Partial<PayoutInput> = {}): PayoutInput => ({
  ...{ payoutId, paymentId: 6, amount: '12.5', addressTo: `wallet-p${payoutId}`, ...change },
});

/** Enqueues a payout for each row, as its producer was asked for it, and two more: the controls. */
async function enqueue(account: ForgedAccount, rows: readonly { readonly requestedBy?: string | undefined }[]) {
  const targets: Target[] = [];
  for (const { requestedBy } of [...rows, {}, {}] as typeof rows) {
    const payoutId = `A-${targets.length}`;
    const who = requestedBy === undefined ? {} : { requestedBy };
    await account.enqueue(inputOf(payoutId, who), who);
    targets.push({ account, other: account, payoutId, input: inputOf(payoutId) });
  }
  const controls = targets.splice(-2) as [Target, Target];
  return { targets, controls, ids: [...targets, ...controls].map(({ payoutId }) => payoutId) };
}

function expectPaid(account: ForgedAccount, ...payoutIds: readonly string[]) {
  expect(used.world.paidTo(account)).toEqual(payoutIds.map((payoutId) => inputOf(payoutId).addressTo));
  used.world.judge(account);
}

const FOUR_EYES =
  '{ name: four-eyes, when: { paymentId: ["6"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }';
const ONE_MORE = { reason: 'approve', needs: { by: 'finance', persons: 1 } };

describe.each([
  ['in Redis', 0, APPROVALS],
  ['brought to the dashboard', 4, POSTED],
] as const)('approvals %s', (_, number, attacked) => {
  const statuses: number[] = [];
  let [control, account]: [string, ForgedAccount] = ['', undefined as never];

  beforeAll(async () => {
    const { world } = used;
    account = world.account(number);
    const { targets, controls, ids } = await enqueue(account, attacked);
    await startWorker(account, FOUR_EYES);
    await untilIn('held', account, ...ids);
    const clock = { ...systemClock, advance: () => undefined };
    const { platformId } = account;
    const dashboard = await openDashboard(
      { platformId, clock },
      { redisUrl: world.redis.url, keysFile: world.keysFile },
    );
    const post = async (approval: unknown) => {
      const headers = { 'content-type': 'application/json' };
      return (await dashboard.ask('/approvals', { method: 'POST', headers, body: JSON.stringify(approval) })).status;
    };
    const bring = async (target: Target, key: 'ann' | 'bob'): Promise<void> => {
      const approval = await approve(target, key);
      if (attacked === POSTED) expect(await post(approval)).toBe(200);
      else await putApproval(target, approval);
    };
    for (const target of [...targets, controls[0]]) await bring(target, 'ann');
    for (const [index, target] of targets.entries()) {
      if (attacked === POSTED) statuses.push(await post(await attacked[index]?.make?.(target)));
      else await attacked[index]?.attack(target);
    }
    // After the attacks: by then the worker has looked at each of them.
    await bring(controls[0], 'bob');
    control = controls[0].payoutId;
    await untilIn('completed', account, control);
    await dashboard.close();
  }, 180_000);

  it('of two people let a payout pass, beside all the attacks', () => {
    expectPaid(account, control);
  });

  it.each(attacked.map((row, index) => ({ ...row, row, index })))('$name: held', async ({ row, index }) => {
    const message = expect.stringContaining('no key of the keyring is of the person in requestedBy');
    const expected = row.isOfStranger === true ? { reason: 'refuse', message } : ONE_MORE;
    const held = await heldOf(account, `A-${index}`);
    expect(held).toMatchObject({ state: 'held', kind: 'policy', rule: 'four-eyes', ...expected });
    if (attacked === POSTED) expect(row === SECOND_KEY ? [200] : [400, 403, 404]).toContain(statuses[index]);
  });
});

describe('rejections', () => {
  let [controls, account]: [string[], ForgedAccount] = [[], undefined as never];

  beforeAll(async () => {
    account = used.world.account(5);
    const all = await enqueue(account, REJECTIONS);
    for (const target of [...all.targets, ...all.controls]) await putApproval(target, await approve(target, 'ann'));
    for (const target of all.targets) {
      await putApproval(target, await approve(target, 'bob'));
      await putApproval(target, await approve(target, 'ann-2', { decision: 'reject' }));
    }
    let worker = await startWorker(account, FOUR_EYES);
    await until('all are rejected', async () => {
      const held = await Promise.all(all.targets.map(async ({ payoutId }) => heldOf(account, payoutId)));
      return held.every(({ message = '' }) => message.includes('ann (key ann-2) rejected it'));
    });
    for (const [index, target] of all.targets.entries()) await REJECTIONS[index]?.attack(target);
    for (const target of all.controls) {
      // After the attacks: by then the worker has looked at each of them.
      await putApproval(target, await approve(target, 'bob'));
      await untilIn('completed', account, target.payoutId);
      controls = [...controls, target.payoutId];
      await worker.stop();
      worker = await startWorker(account, FOUR_EYES);
    }
  }, 180_000);

  it('that a worker saw keep payouts from being paid, before and after a restart', () => {
    expectPaid(account, ...controls);
  });

  it.each(REJECTIONS.map(({ name }, index) => [name, index] as const))('%s: held', async (_, index) => {
    const message = expect.stringContaining('ann (key ann-2) rejected it');
    expect(await heldOf(account, `A-${index}`)).toMatchObject({ state: 'held', kind: 'rejection', message });
  });
});

describe('what was spent', () => {
  const HOUR = '{ name: hour, when: { paymentId: ["6"] }, cap: { amount: "20", within: 1h }, over: wait }';

  it('removed in Redis: the journal counts it all the same', async () => {
    const account = used.world.account(1);
    const worker = await startWorker(account, HOUR);
    await account.order('first', '15');
    await untilIn('completed', account, 'first');
    await account.order('second', '12.5');
    await untilIn('held', account, 'second');
    await worker.stop();
    await account.redis.del(account.keys.spent);
    await account.revive('second');
    await startWorker(account, HOUR);
    // It is paid beside: the worker has judged what was there before.
    await account.enqueue(inputOf('small', { paymentId: 7, amount: '1' }));
    await untilIn('completed', account, 'small');
    await untilIn('held', account, 'second');
    expect(await heldOf(account, 'second')).toMatchObject({ kind: 'policy', rule: 'hour' });
    used.world.judge(account);
  }, 120_000);

  it('invented in Redis, and rates and windows forged: what fits waits, and nothing else is paid', async () => {
    const account = used.world.account(3);
    const { redis, keys } = account;
    const spend = {
      id: 'x 1 t',
      payoutId: 'x',
      attempt: 1,
      paymentId: 6,
      amount: '9'.repeat(30),
      addressTo: 'w',
      inFlightMs: 31_000,
    };
    await redis.xadd(keys.spent, '*', 'token', 't', 'kind', 'begun', 'at', Date.now(), 'spend', JSON.stringify(spend));
    const facts = { currencies: [{ paymentId: 7, name: 'x', usdRate: '0.0000001' }] };
    await redis.hset(keys.gateway, { facts: JSON.stringify(facts) });
    await redis.set(keys.policy, JSON.stringify({ hash: '', at: 0, rules: [], held: [], ratesAt: null }));
    const dollars = '{ name: dollars, when: { paymentId: ["7"] }, cap: { usd: "0.000001" }, over: refuse }';
    await startWorker(account, HOUR, dollars);
    await account.enqueue(inputOf('fits'));
    await account.enqueue(inputOf('dear', { paymentId: 7 }));
    await untilIn('held', account, 'fits', 'dear');
    expect(await heldOf(account, 'fits')).toMatchObject({ reason: 'wait', rule: 'hour' });
    expect(await heldOf(account, 'dear')).toMatchObject({ rule: 'dollars' });
    expectPaid(account);
  }, 120_000);
});

describe('a gateway that lies about rates', () => {
  const DOLLARS = '{ name: dollars, when: { paymentId: ["7"] }, cap: { usd: "5" }, over: refuse }';
  const currency = findCurrency(7) as { usdRate: string };
  const { usdRate } = currency;
  afterAll(() => {
    currency.usdRate = usdRate;
  });

  it('from the start of the worker on: its rate is held against the one that the journal has', async () => {
    const account = used.world.account(2);
    const worker = await startWorker(account, DOLLARS);
    await account.enqueue(inputOf('small', { paymentId: 7, amount: '1' }));
    await untilIn('completed', account, 'small');
    await worker.stop();
    currency.usdRate = '0.000001';
    await account.enqueue(inputOf('large', { paymentId: 7, amount: '1000' }));
    await startWorker(account, DOLLARS);
    await account.enqueue(inputOf('beside'));
    await untilIn('completed', account, 'beside');
    // Longer than until the gateway is asked again about a rate that counts once it is named twice.
    await delay(15_000);
    const message = expect.stringMatching(/0\.000001, is more than 25% from/);
    expect(await heldOf(account, 'large')).toMatchObject({ state: 'held', rule: 'dollars', message });
    expectPaid(account, 'small', 'beside');
  }, 120_000);
});

it("a policy's file that was exchanged for one that others can write: the former counts, and no worker starts with it", async () => {
  const { world } = used;
  const account = world.account(6);
  const words = /is not trusted: others than its owner can write/;
  const worker = await startWorker(
    account,
    '{ name: small, when: { paymentId: ["6"] }, cap: { amount: "5" }, over: refuse }',
  );
  await account.enqueue(inputOf('large'));
  await untilIn('held', account, 'large');
  const policyFile = join(world.dir, `policy-${account.platformId}.yaml`);
  await writeFile(policyFile, `version: 1\nplatformId: "${account.platformId}"\ndefault: send\nrules: []\n`);
  await chmod(policyFile, 0o666);
  worker.reloadPolicies();
  expect(worker.accounts[0]?.policy?.reloadTrouble).toMatch(words);
  await account.enqueue(inputOf('later'));
  const addressTo = await account.order('honest', '1');
  await untilIn('completed', account, 'honest');
  expect(await account.isIn('held', 'large', 'later')).toBe(true);
  expect(world.paidTo(account)).toEqual([addressTo]);
  await worker.stop();
  await expect(world.startWorker({}, { policyFile }, [account])).rejects.toThrow(words);
}, 60_000);
