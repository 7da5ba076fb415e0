import { expect, it } from '@jest/globals';
import { checkReconciliation } from '../../../src/cli/doctor/check-account.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { saveReconciliation, type ReconciledBalance } from '../../../src/ledger/reads/reconciliation.js';
import { textWith, useCli } from '../support/cli-rig.js';

const cli = useCli();
const AT = Date.parse('2030-01-31T09:00:00Z');
const FINE: ReconciledBalance = {
  ...{ paymentId: undefined, symbol: 'USD', amount: '900', baseline: { amount: '1000', at: AT }, places: 2 },
  ...{ settled: { count: 2, high: '62.5' }, recent: { count: 1, high: '40.5' }, open: { count: 1, high: undefined } },
  ...{ unexplained: '0', doubt: undefined, isSuspected: false, reported: '0', drop: undefined },
};

async function store(balance: ReconciledBalance): Promise<void> {
  const found = { comparedAt: AT, followedSince: AT, followedTo: '1-0', fees: {}, rates: {}, balances: [balance] };
  await saveReconciliation(cli.ledger.connection, found);
}

async function expectCheck(status: string, detail: string): Promise<void> {
  expect(await checkReconciliation(cli.ledger.connection)).toMatchObject({ status, detail: textWith(detail) });
}

it('shows baseline, the most that was sent, and what is not explained', async () => {
  await cli.refused(3, 'not compared yet', 'reconcile');
  await expectCheck('ok', '');
  await store(FINE);
  const stdout = await cli.ok('reconcile');
  for (const line of [
    ...[/USD +balance +900/, /baseline +1,000 \(2030-01-31 09:00:00 UTC\)/, /sent since +up to 103 \(3\)/],
    ...[/not ended +more than can be said \(1\)/, /unexplained +0\n/],
  ]) {
    expect(stdout).toMatch(line);
  }
  const time = '2030-01-31T09:00:00.000Z';
  const balance = { currency: 'USD', baseline: { amount: '1000', at: time }, sent: { count: 3, high: '103' } };
  expect(await cli.json('reconcile')).toMatchObject({
    ...{ ok: true, comparedAt: time, lastDropAt: null },
    balances: [{ ...balance, unexplained: '0', drop: null }],
  });
  await expectCheck('ok', 'nothing is missing');
  await store({ ...FINE, unexplained: undefined, doubt: 'this reading is the first to compare with' });
  expect(await cli.ok('reconcile')).toMatch(/cannot be compared: this reading is the first/);
  await expectCheck('ok', '1 of 1 balances cannot be compared');
});

it('exits with 4 while a drop is not explained, until an operator accepts it', async () => {
  await store({ ...FINE, drop: { amount: '77.25', since: AT, at: AT + 60_000 } });
  const shown = { code: 4, stdout: textWith(/REPORTED +77\.25 missing, since 2030-01-31/) };
  expect(await cli.run('reconcile')).toMatchObject(shown);
  expect(await cli.json('reconcile')).toMatchObject({ lastDropAt: '2030-01-31T09:01:00.000Z' });
  await expectCheck('warning', 'fell by 77.25 USD more than the payouts explain');
  await cli.refused(2, '--reason', 'reconcile', '--accept');
  await cli.refused(2, 'goes with --accept', 'reconcile', '--reason', 'cold wallet');
  const accepted = await cli.ok('reconcile', '--accept', '--reason', 'cold wallet', '--by', 'ann');
  expect(accepted).not.toContain('REPORTED');
  const { activities } = await readActivity(cli.ledger.connection, 5);
  expect(activities).toMatchObject([{ what: 'drop_accepted', by: 'ann', reason: 'cold wallet' }]);
  expect((await cli.run('reconcile')).code).toBe(0);
});
