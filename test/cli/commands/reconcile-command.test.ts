import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { checkReconciliation } from '../../../src/cli/doctor/check-account.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { saveReconciliation, type ReconciledBalance } from '../../../src/ledger/reads/reconciliation.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

const AT = Date.parse('2030-01-31T09:00:00Z');

const FINE: ReconciledBalance = {
  ...{ paymentId: undefined, symbol: 'USD', amount: '900' },
  baseline: { amount: '1000', at: AT },
  places: 2,
  settled: { count: 2, high: '62.5' },
  recent: { count: 1, high: '40.5' },
  open: { count: 1, high: undefined },
  unexplained: '0',
  doubt: undefined,
  isSuspected: false,
  reported: '0',
  drop: undefined,
};

const DROPPED: ReconciledBalance = { ...FINE, drop: { amount: '77.25', since: AT, at: AT + 60_000 } };

async function store(...balances: readonly ReconciledBalance[]): Promise<void> {
  const found = { comparedAt: AT, followedSince: AT, followedTo: '1-0', fees: {}, rates: {}, balances };
  await saveReconciliation(account.ledger.connection, found);
}

it('says that nothing was compared yet, and exits with 3', async () => {
  expect(await account.run('reconcile')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('not compared yet'),
  });
  expect(await checkReconciliation(account.ledger.connection)).toMatchObject({ status: 'ok' });
});

it('shows baseline, the most that was sent, and what is not explained', async () => {
  await store(FINE);
  const { code, stdout } = await account.runProcess('reconcile');
  expect(code).toBe(0);
  expect(stdout).toMatch(/USD +balance +900/);
  expect(stdout).toMatch(/baseline +1,000 \(2030-01-31 09:00:00 UTC\)/);
  expect(stdout).toMatch(/sent since +up to 103 \(3\)/);
  expect(stdout).toMatch(/not ended +more than can be said \(1\)/);
  expect(stdout).toMatch(/unexplained +0\n/);
  const json = JSON.parse((await account.run('reconcile', '--json')).stdout) as object;
  expect(json).toMatchObject({
    ok: true,
    comparedAt: '2030-01-31T09:00:00.000Z',
    lastDropAt: null,
    balances: [
      {
        currency: 'USD',
        baseline: { amount: '1000', at: '2030-01-31T09:00:00.000Z' },
        sent: { count: 3, high: '103' },
        unexplained: '0',
        drop: null,
      },
    ],
  });
  expect(await checkReconciliation(account.ledger.connection)).toMatchObject({
    status: 'ok',
    detail: expect.stringContaining('nothing is missing'),
  });
});

it('says why a balance cannot be compared', async () => {
  await store({ ...FINE, unexplained: undefined, doubt: 'this reading is the first to compare with' });
  const { code, stdout } = await account.run('reconcile');
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/cannot be compared: this reading is the first/),
  });
  expect(await checkReconciliation(account.ledger.connection)).toMatchObject({
    status: 'ok',
    detail: expect.stringContaining('1 of 1 balances cannot be compared'),
  });
});

it('exits with 4 while a drop is not explained, until an operator accepts it', async () => {
  await store(DROPPED);
  const shown = await account.run('reconcile');
  expect(shown).toMatchObject({ code: 4, stdout: expect.stringMatching(/REPORTED +77\.25 missing, since 2030-01-31/) });
  expect(await account.run('reconcile', '--json')).toMatchObject({
    code: 4,
    stdout: expect.stringContaining('"lastDropAt":"2030-01-31T09:01:00.000Z"'),
  });
  expect(await checkReconciliation(account.ledger.connection)).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('fell by 77.25 USD more than the payouts explain'),
  });
  const accepted = await account.run('reconcile', '--accept', '--reason', 'cold wallet', '--by', 'ann');
  expect(accepted).toMatchObject({ code: 0, stdout: expect.not.stringContaining('REPORTED') });
  const { activities } = await readActivity(account.ledger.connection, 5);
  expect(activities).toMatchObject([{ what: 'drop_accepted', by: 'ann', reason: 'cold wallet' }]);
  expect((await account.run('reconcile')).code).toBe(0);
  await store({ ...DROPPED, drop: { amount: '80', since: AT, at: AT + 120_000 } });
  expect((await account.run('reconcile')).code).toBe(4);
});

it('accepts only with a reason, and takes a reason only to accept', async () => {
  await store(DROPPED);
  expect(await account.run('reconcile', '--accept')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--reason'),
  });
  expect(await account.run('reconcile', '--reason', 'cold wallet')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('goes with --accept'),
  });
  expect((await account.run('reconcile')).code).toBe(4);
});
