import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.js';
import { systemClock } from '../../src/base/clock.js';
import { basicAuth, openDashboard } from '../dashboard/support/running-dashboard.js';
import { approve, APPROVALS, putApproval, REJECTIONS } from './attacks/approvals.js';
import { POSTED, type Posted } from './attacks/posted.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';
import { judgeBook } from './support/run-attacks.js';
import type { Target } from './support/attack.js';
import { findCurrency } from '../../src/sandbox/currency.js';

/** Attacks on what a policy holds, by who can write to Redis. */

let world: ForgingWorld;

beforeAll(async () => {
  world = await ForgingWorld.open(7);
}, 120_000);

afterAll(async () => {
  await world.close();
});

async function writePolicy(
  { platformId }: ForgedAccount,
  ...rules: readonly string[]
): Promise<{ policyFile: string }> {
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [ann, bob] }\nrules:\n`;
  const policyFile = join(world.dir, `policy-${platformId}.yaml`);
  await writeFile(policyFile, head + rules.map((rule) => `  - ${rule}\n`).join(''), { mode: 0o600 });
  return { policyFile };
}

async function untilState(account: ForgedAccount, payoutIds: readonly string[], ...states: string[]): Promise<void> {
  await until(
    () => `all are ${states.join(' or ')}`,
    async () =>
      (await Promise.all(payoutIds.map(async (id) => account.payout(id)))).every(({ state }) => states.includes(state)),
    60_000,
  );
}

const targetOf = (account: ForgedAccount, payoutId: string, input: Partial<Target['input']> = {}): Target => ({
  ...{ account, other: account, payoutId },
  input: { payoutId, paymentId: 6, amount: '12.5', addressTo: `wallet-p${payoutId}`, ...input },
});

const FOUR_EYES =
  '{ name: four-eyes, when: { paymentId: ["6"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }';

describe('approvals', () => {
  const targets: Target[] = [];
  let control: Target;

  beforeAll(async () => {
    const account = world.account(0);
    for (const [index, { input }] of APPROVALS.entries()) targets.push(targetOf(account, `A-${index}`, input));
    control = targetOf(account, 'A-approved');
    for (const { payoutId, input } of [...targets, control]) {
      await account.enqueue(input, input.requestedBy === undefined ? {} : { requestedBy: input.requestedBy });
      await putApproval(targetOf(account, payoutId), await approve(targetOf(account, payoutId), 'ann'));
    }
    await world.startWorker({}, await writePolicy(account, FOUR_EYES), [account]);
    const ids = [...targets, control].map(({ payoutId }) => payoutId);
    await untilState(account, ids, 'held');
    for (const [index, each] of APPROVALS.entries()) await each.attack(targets[index] ?? control);
    // After the attacks: by then the worker has looked at each of them.
    await putApproval(control, await approve(control, 'bob'));
    await untilState(account, ['A-approved'], 'completed');
    await untilState(
      account,
      targets.map(({ payoutId }) => payoutId),
      'held',
      'completed',
    );
  }, 180_000);

  it('of two people let a payout pass, beside all the attacks', () => {
    expect(world.sandbox.payments(world.account(0).platformId).map(({ addressTo }) => addressTo)).toEqual([
      control.input.addressTo,
    ]);
    judgeBook(world, world.account(0));
  });

  it.each(
    APPROVALS.map(({ name, held = 'until another person has approved it' }, index) => [name, held, index] as const),
  )('%s: held %s', async (_, why, index) => {
    const { account, payoutId, input } = targets[index] ?? control;
    const { state, held } = await account.payout(payoutId);
    const expected = why.startsWith('until')
      ? { reason: 'approve', needs: { by: 'finance', persons: 1 } }
      : { reason: 'refuse', message: expect.stringContaining('no key of the keyring is of the person in requestedBy') };
    expect({ state, held }).toMatchObject({
      state: 'held',
      held: { kind: 'policy', rule: 'four-eyes', ...expected },
    });
    const paid = world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo === input.addressTo);
    expect(paid).toEqual([]);
  });
});

describe('rejections', () => {
  const targets: Target[] = [];
  let [first, second]: Target[] = [];

  beforeAll(async () => {
    const account = world.account(5);
    const policy = await writePolicy(account, FOUR_EYES);
    for (const index of REJECTIONS.keys()) targets.push(targetOf(account, `R-${index}`));
    [first, second] = [targetOf(account, 'R-first'), targetOf(account, 'R-second')];
    for (const target of [...targets, first, second]) {
      await account.enqueue(target.input);
      await putApproval(target, await approve(target, 'ann'));
    }
    for (const target of targets) {
      await putApproval(target, await approve(target, 'bob'));
      await putApproval(target, await approve(target, 'ann-2', { decision: 'reject' }));
    }
    const worker = await world.startWorker({}, policy, [account]);
    const isRejected = async ({ payoutId }: Target): Promise<boolean> =>
      (await account.payout(payoutId)).held?.message.includes('ann rejected it') === true;
    await until('all are rejected', async () => (await Promise.all(targets.map(isRejected))).every(Boolean), 60_000);
    for (const [index, { attack }] of REJECTIONS.entries()) await attack(targets[index] ?? first);
    // After the attacks: by then the worker has looked at each of them.
    await putApproval(first, await approve(first, 'bob'));
    await untilState(account, ['R-first'], 'completed');
    await worker.stop();
    await world.startWorker({}, policy, [account]);
    await putApproval(second, await approve(second, 'bob'));
    await untilState(account, ['R-second'], 'completed');
  }, 180_000);

  it('that a worker saw keep payouts from being paid, before and after a restart', () => {
    const account = world.account(5);
    const paid = world.sandbox.payments(account.platformId).map(({ addressTo }) => addressTo);
    expect(paid).toEqual([first?.input.addressTo, second?.input.addressTo]);
    judgeBook(world, account);
  });

  it.each(REJECTIONS.map(({ name }, index) => [name, index] as const))('%s: held', async (_, index) => {
    const { state, held } = await world.account(5).payout(targets[index]?.payoutId ?? '');
    expect({ state, held }).toMatchObject({
      ...{ state: 'held', held: { rule: 'four-eyes', message: expect.stringContaining('ann rejected it') } },
    });
  });
});

describe('approvals that are brought to the dashboard', () => {
  const PASSWORD = 'the stolen password';
  const targets: Target[] = [];
  const statuses: number[] = [];
  let control: Target;

  beforeAll(async () => {
    const account = world.account(4);
    for (const [index, { input }] of POSTED.entries()) targets.push(targetOf(account, `D-${index}`, input));
    control = targetOf(account, 'D-approved');
    for (const { input } of [...targets, control]) {
      await account.enqueue(input, input.requestedBy === undefined ? {} : { requestedBy: input.requestedBy });
    }
    await world.startWorker({}, await writePolicy(account, FOUR_EYES), [account]);
    const ids = [...targets, control].map(({ payoutId }) => payoutId);
    await untilState(account, ids, 'held');
    const { platformId } = account;
    const options = { redisUrl: world.redis.url, keysFile: join(world.dir, 'keys.json'), password: PASSWORD };
    const clock = { ...systemClock, advance: () => undefined };
    const dashboard = await openDashboard({ platformId, clock }, options);
    const post = async ({ path = '/approvals', method = 'POST', headers = {}, body }: Posted): Promise<number> => {
      const authorization = basicAuth('payouts', PASSWORD);
      const init = { method, headers: { authorization, ...headers }, ...(body !== undefined && { body }) };
      return (await dashboard.ask(path, init)).status;
    };
    const json = { 'content-type': 'application/json' };
    for (const target of [...targets, control]) {
      expect(await post({ headers: json, body: JSON.stringify(await approve(target, 'ann')) })).toBe(200);
    }
    for (const [index, each] of POSTED.entries())
      statuses.push(await post(await each.request(targets[index] ?? control)));
    expect(await post({ headers: json, body: JSON.stringify(await approve(control, 'bob')) })).toBe(200);
    await untilState(account, ['D-approved'], 'completed');
    await dashboard.close();
  }, 180_000);

  it('of two people let a payout pass, beside all the attacks', () => {
    const account = world.account(4);
    expect(world.sandbox.payments(account.platformId).map(({ addressTo }) => addressTo)).toEqual([
      control.input.addressTo,
    ]);
    judgeBook(world, account);
  });

  it.each(POSTED.map(({ name, status }, index) => [name, status, index] as const))(
    '%s: %j, and held for one more person',
    async (_, status, index) => {
      expect(status).toContain(statuses[index]);
      const { account, payoutId } = targets[index] ?? control;
      const { state, held } = await account.payout(payoutId);
      expect({ state, held }).toMatchObject({ state: 'held', held: { needs: { by: 'finance', persons: 1 } } });
    },
  );
});

describe('what was spent', () => {
  const HOUR = '{ name: hour, when: { paymentId: ["6"] }, cap: { amount: "20", within: 1h }, over: wait }';

  /** Pays 15 of 20, and holds another 12.5. */
  async function use(account: ForgedAccount): Promise<void> {
    await account.enqueue(targetOf(account, 'first', { amount: '15' }).input);
    await untilState(account, ['first'], 'completed');
    await account.enqueue(targetOf(account, 'second').input);
    await untilState(account, ['second'], 'held');
  }

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
      const account = world.account(index);
      const policy = await writePolicy(account, HOUR);
      const worker = await world.startWorker({}, policy, [account]);
      await use(account);
      await worker.stop();
      await attack(account);
      await account.revive('second');
      await world.startWorker({}, policy, [account]);
      // It is paid beside: the worker has judged what was there before.
      await account.enqueue({ payoutId: 'small', paymentId: 7, amount: '1', addressTo: 'wallet-small' });
      await untilState(account, ['small'], 'completed');
      await untilState(account, ['second'], 'held');
      expect((await account.payout('second')).held).toMatchObject({ kind: 'policy', rule: 'hour' });
      judgeBook(world, account);
    },
    120_000,
  );

  it('invented in Redis, and rates and windows forged: what fits waits, and nothing else is paid', async () => {
    const account = world.account(3);
    const { redis, keys } = account;
    const spend = { id: 'x 1 t', payoutId: 'x', attempt: 1, paymentId: 6, amount: '9'.repeat(30), addressTo: 'w' };
    await redis.xadd(keys.spent, '*', 'token', 't', 'kind', 'begun', 'at', Date.now(), 'spend', JSON.stringify(spend));
    await redis.hset(keys.gateway, {
      facts: JSON.stringify({ currencies: [{ paymentId: 7, name: 'x', usdRate: '0.0000001' }] }),
    });
    await redis.set(keys.policy, JSON.stringify({ hash: '', at: 0, rules: [], held: [], ratesAt: null }));
    const dollars = '{ name: dollars, when: { paymentId: ["7"] }, cap: { usd: "0.000001" }, over: refuse }';
    await world.startWorker({}, await writePolicy(account, HOUR, dollars), [account]);
    await account.enqueue(targetOf(account, 'fits').input);
    await account.enqueue(targetOf(account, 'dear', { paymentId: 7 }).input);
    await untilState(account, ['fits', 'dear'], 'held');
    expect((await account.payout('fits')).held).toMatchObject({ reason: 'wait', rule: 'hour' });
    expect((await account.payout('dear')).held).toMatchObject({ rule: 'dollars' });
    expect(world.sandbox.payments(account.platformId)).toEqual([]);
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
    const account = world.account(6);
    const policy = await writePolicy(account, DOLLARS);
    const worker = await world.startWorker({}, policy, [account]);
    await account.enqueue(targetOf(account, 'small', { paymentId: 7, amount: '1' }).input);
    await untilState(account, ['small'], 'completed');
    await worker.stop();
    currency.usdRate = '0.000001';
    await account.enqueue(targetOf(account, 'large', { paymentId: 7, amount: '1000' }).input);
    await world.startWorker({}, policy, [account]);
    await account.enqueue(targetOf(account, 'beside').input);
    await untilState(account, ['beside'], 'completed');
    // Longer than until the gateway is asked again about a rate that counts once it is named twice.
    await new Promise((resolve) => setTimeout(resolve, 15_000));
    const { state, held } = await account.payout('large');
    expect({ state, rule: held?.rule }).toEqual({ state: 'held', rule: 'dollars' });
    expect(held?.message).toMatch(/0\.000001, is more than 25% from/);
    judgeBook(world, account);
  }, 120_000);
});
