import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { findCurrency } from '../../src/sandbox/currency.js';
import { basicAuth, openDashboard } from '../dashboard/support/running-dashboard.js';
import { until } from '../support/until.js';
import {
  APPROVALS,
  approve,
  JSON_TYPE,
  POSTED,
  putApproval,
  REJECTIONS,
  type Posted,
  type PostedAttack,
} from './attacks/approvals.js';
import type { Target } from './support/attack.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';
import { judgeBook, timesPaid } from './support/run-attacks.js';

/** Attacks on what a policy holds, by who can write to Redis. */

const used = ForgingWorld.use(7);

/** Starts a worker with a policy of these rules. */
async function startWorker(account: ForgedAccount, ...rules: readonly string[]) {
  const { platformId } = account;
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [ann, bob] }\nrules:\n`;
  const policyFile = join(used.world.dir, `policy-${platformId}.yaml`);
  await writeFile(policyFile, head + rules.map((rule) => `  - ${rule}\n`).join(''), { mode: 0o600 });
  return used.world.startWorker({}, { policyFile }, [account]);
}

const untilIn = async (state: 'held' | 'completed', account: ForgedAccount, ...ids: readonly string[]): Promise<void> =>
  until(`all are ${state}`, async () => account.isIn(state, ...ids), 60_000);

const targetOf = (account: ForgedAccount, payoutId: string, input: Partial<Target['input']> = {}): Target => ({
  ...{ account, other: account, payoutId },
  input: { payoutId, paymentId: 6, amount: '12.5', addressTo: `wallet-p${payoutId}`, ...input },
});

/** Enqueues payouts for 12.5, each as its producer was asked for it. */
async function enqueue(
  account: ForgedAccount,
  prefix: string,
  rows: readonly Pick<PostedAttack, 'input'>[],
): Promise<Target[]> {
  const targets = rows.map(({ input }, index) => targetOf(account, `${prefix}-${index}`, input));
  for (const { input } of targets) {
    await account.enqueue(input, input.requestedBy === undefined ? {} : { requestedBy: input.requestedBy });
  }
  return targets;
}

/** That these alone were paid, as they were signed. */
function expectPaid(account: ForgedAccount, ...targets: readonly (Target | undefined)[]): void {
  const paid = used.world.sandbox.payments(account.platformId).map(({ addressTo }) => addressTo);
  expect(paid).toEqual(targets.map((target) => target?.input.addressTo));
  judgeBook(used.world, account);
}

const FOUR_EYES =
  '{ name: four-eyes, when: { paymentId: ["6"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }';
const ONE_MORE = { reason: 'approve', needs: { by: 'finance', persons: 1 } };

describe('approvals', () => {
  let targets: Target[] = [];
  /** The last is the control: it is approved by two people. */
  const control = (): Target => targets.at(-1) as Target;

  beforeAll(async () => {
    const account = used.world.account(0);
    targets = await enqueue(account, 'A', [...APPROVALS, {}]);
    for (const target of targets) await putApproval(target, await approve(target, 'ann'));
    await startWorker(account, FOUR_EYES);
    await untilIn('held', account, ...targets.map(({ payoutId }) => payoutId));
    for (const [index, each] of APPROVALS.entries()) await each.attack(targets[index] ?? control());
    // After the attacks: by then the worker has looked at each of them.
    await putApproval(control(), await approve(control(), 'bob'));
    await untilIn('completed', account, control().payoutId);
    const isDecided = async ({ payoutId }: Target): Promise<boolean> =>
      (await account.isIn('held', payoutId)) || account.isIn('completed', payoutId);
    await until('all are decided', async () => (await Promise.all(targets.map(isDecided))).every(Boolean), 60_000);
  }, 180_000);

  it('of two people let a payout pass, beside all the attacks', () => {
    expectPaid(used.world.account(0), control());
  });

  it.each(
    APPROVALS.map(({ name, held = 'until another person has approved it' }, index) => [name, held, index] as const),
  )('%s: held %s', async (_, why, index) => {
    const target = targets[index] ?? control();
    const { state, held } = await target.account.payout(target.payoutId);
    const message = expect.stringContaining('no key of the keyring is of the person in requestedBy');
    const expected = why.startsWith('until') ? ONE_MORE : { reason: 'refuse', message };
    expect({ state, held }).toMatchObject({ state: 'held', held: { kind: 'policy', rule: 'four-eyes', ...expected } });
    expect(timesPaid(used.world, target)).toBe(0);
  });
});

describe('rejections', () => {
  let targets: Target[] = [];
  let [first, second]: Target[] = [];

  beforeAll(async () => {
    const account = used.world.account(5);
    const all = await enqueue(account, 'R', [...REJECTIONS.map(() => ({})), {}, {}]);
    targets = all.slice(0, -2);
    const controls = all.slice(-2) as [Target, Target];
    [first, second] = controls;
    for (const target of all) await putApproval(target, await approve(target, 'ann'));
    for (const target of targets) {
      await putApproval(target, await approve(target, 'bob'));
      await putApproval(target, await approve(target, 'ann-2', { decision: 'reject' }));
    }
    let worker = await startWorker(account, FOUR_EYES);
    const isRejected = async ({ payoutId }: Target): Promise<boolean> =>
      (await account.payout(payoutId)).held?.message.includes('ann rejected it') === true;
    await until('all are rejected', async () => (await Promise.all(targets.map(isRejected))).every(Boolean), 60_000);
    for (const [index, each] of REJECTIONS.entries()) await each.attack(targets[index] ?? controls[0]);
    for (const control of controls) {
      // After the attacks: by then the worker has looked at each of them.
      await putApproval(control, await approve(control, 'bob'));
      await untilIn('completed', account, control.payoutId);
      await worker.stop();
      worker = await startWorker(account, FOUR_EYES);
    }
  }, 180_000);

  it('that a worker saw keep payouts from being paid, before and after a restart', () => {
    expectPaid(used.world.account(5), first, second);
  });

  it.each(REJECTIONS.map(({ name }, index) => [name, index] as const))('%s: held', async (_, index) => {
    const { state, held } = await used.world.account(5).payout(targets[index]?.payoutId ?? '');
    const expected = { rule: 'four-eyes', message: expect.stringContaining('ann rejected it') };
    expect({ state, held }).toMatchObject({ state: 'held', held: expected });
  });
});

describe('approvals that are brought to the dashboard', () => {
  const PASSWORD = 'the stolen password';
  let targets: Target[] = [];
  const statuses: number[] = [];
  const control = (): Target => targets.at(-1) as Target;

  beforeAll(async () => {
    const { world } = used;
    const account = world.account(4);
    targets = await enqueue(account, 'D', [...POSTED, {}]);
    await startWorker(account, FOUR_EYES);
    await untilIn('held', account, ...targets.map(({ payoutId }) => payoutId));
    const options = { redisUrl: world.redis.url, keysFile: world.keysFile, password: PASSWORD };
    const clock = { ...systemClock, advance: () => undefined };
    const dashboard = await openDashboard({ platformId: account.platformId, clock }, options);
    const post = async ({ path = '/approvals', method = 'POST', headers = {}, body }: Posted): Promise<number> => {
      const authorization = basicAuth('payouts', PASSWORD);
      const init = { method, headers: { authorization, ...headers }, ...(body !== undefined && { body }) };
      return (await dashboard.ask(path, init)).status;
    };
    const approveAs = async (target: Target, key: 'ann' | 'bob'): Promise<void> => {
      expect(await post({ headers: JSON_TYPE, body: JSON.stringify(await approve(target, key)) })).toBe(200);
    };
    for (const target of targets) await approveAs(target, 'ann');
    for (const [index, each] of POSTED.entries()) {
      statuses.push(await post(await each.request(targets[index] ?? control())));
    }
    await approveAs(control(), 'bob');
    await untilIn('completed', account, control().payoutId);
    await dashboard.close();
  }, 180_000);

  it('of two people let a payout pass, beside all the attacks', () => {
    expectPaid(used.world.account(4), control());
  });

  it.each(POSTED.map(({ name, status }, index) => [name, status, index] as const))(
    '%s: %j, and held for one more person',
    async (_, status, index) => {
      expect(status).toContain(statuses[index]);
      const { account, payoutId } = targets[index] ?? control();
      const { state, held } = await account.payout(payoutId);
      expect({ state, held }).toMatchObject({ state: 'held', held: { needs: ONE_MORE.needs } });
    },
  );
});

describe('what was spent', () => {
  const HOUR = '{ name: hour, when: { paymentId: ["6"] }, cap: { amount: "20", within: 1h }, over: wait }';

  it.each([
    ['removed', 1, async ({ redis, keys }: ForgedAccount) => redis.del(keys.spent)],
    [
      'said not to be paid',
      2,
      async ({ redis, keys }: ForgedAccount) => {
        const [[, fields] = ['', []]] = await redis.xrange(keys.spent, '-', '+', 'COUNT', 1);
        await redis.xadd(keys.spent, '*', 'token', fields[1] ?? '', 'kind', 'unpaid', 'at', Date.now(), 'spend', '');
      },
    ],
  ] as const)(
    '%s in Redis: the journal counts it all the same',
    async (_, index, attack) => {
      const account = used.world.account(index);
      const worker = await startWorker(account, HOUR);
      await account.order('first', '15');
      await untilIn('completed', account, 'first');
      await account.order('second', '12.5');
      await untilIn('held', account, 'second');
      await worker.stop();
      await attack(account);
      await account.revive('second');
      await startWorker(account, HOUR);
      // It is paid beside: the worker has judged what was there before.
      await account.enqueue({ payoutId: 'small', paymentId: 7, amount: '1', addressTo: 'wallet-small' });
      await untilIn('completed', account, 'small');
      await untilIn('held', account, 'second');
      expect((await account.payout('second')).held).toMatchObject({ kind: 'policy', rule: 'hour' });
      judgeBook(used.world, account);
    },
    120_000,
  );

  it('invented in Redis, and rates and windows forged: what fits waits, and nothing else is paid', async () => {
    const account = used.world.account(3);
    const { redis, keys } = account;
    const spend = { id: 'x 1 t', payoutId: 'x', attempt: 1, paymentId: 6, amount: '9'.repeat(30), addressTo: 'w' };
    await redis.xadd(keys.spent, '*', 'token', 't', 'kind', 'begun', 'at', Date.now(), 'spend', JSON.stringify(spend));
    const facts = { currencies: [{ paymentId: 7, name: 'x', usdRate: '0.0000001' }] };
    await redis.hset(keys.gateway, { facts: JSON.stringify(facts) });
    await redis.set(keys.policy, JSON.stringify({ hash: '', at: 0, rules: [], held: [], ratesAt: null }));
    await startWorker(
      account,
      HOUR,
      '{ name: dollars, when: { paymentId: ["7"] }, cap: { usd: "0.000001" }, over: refuse }',
    );
    for (const [payoutId, paymentId] of [
      ['fits', 6],
      ['dear', 7],
    ] as const) {
      await account.enqueue(targetOf(account, payoutId, { paymentId }).input);
    }
    await untilIn('held', account, 'fits', 'dear');
    expect((await account.payout('fits')).held).toMatchObject({ reason: 'wait', rule: 'hour' });
    expect((await account.payout('dear')).held).toMatchObject({ rule: 'dollars' });
    expect(used.world.sandbox.payments(account.platformId)).toEqual([]);
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
    const account = used.world.account(6);
    const worker = await startWorker(account, DOLLARS);
    await account.enqueue(targetOf(account, 'small', { paymentId: 7, amount: '1' }).input);
    await untilIn('completed', account, 'small');
    await worker.stop();
    currency.usdRate = '0.000001';
    await account.enqueue(targetOf(account, 'large', { paymentId: 7, amount: '1000' }).input);
    await startWorker(account, DOLLARS);
    await account.enqueue(targetOf(account, 'beside').input);
    await untilIn('completed', account, 'beside');
    // Longer than until the gateway is asked again about a rate that counts once it is named twice.
    await delay(15_000);
    const { state, held } = await account.payout('large');
    expect({ state, rule: held?.rule }).toEqual({ state: 'held', rule: 'dollars' });
    expect(held?.message).toMatch(/0\.000001, is more than 25% from/);
    judgeBook(used.world, account);
  }, 120_000);
});
