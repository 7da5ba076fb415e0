import { join } from 'node:path';
import { readdir } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { PolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { keyEntry, testKey } from '../../control/support/keys.js';
import { textWith, useCli } from '../support/cli-rig.js';
import { checkReconciliation } from '../../../src/cli/doctor/check-account.js';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import { type ReconciledBalance, saveReconciliation } from '../../../src/ledger/reads/reconciliation.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { toFileText } from '../../journal/support/journal-folder.js';

const cli = useCli();
const HASH = textWith(/^[0-9a-f]{64}$/);
const RULES = `
  - { name: huge, cap: { usd: "50" }, over: refuse }
  - { name: day, cap: { usd: "5000", within: 24h }, over: wait }
  - { name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }
`;
const APPROVALS = `  - { name: four-eyes, cap: { usd: "5" }, over: { approve: { by: finance, quorum: 1 } } }\n`;

let file: string;
beforeEach(async () => {
  file = join(cli.dir, 'policy.yaml');
  cli.env['PAYOUT_POLICY_FILE'] = file;
  await write(RULES);
});

async function write(rules: string, pinned = '{ "6": "1" }') {
  const head = `version: 1\nplatformId: "${cli.platformId}"\ndefault: hold\nusd: { pinned: ${pinned} }`;
  await cli.file('policy.yaml', `${head}\ngroups: { finance: [alice, bob] }\nrules:${rules}`);
}

async function writeKeys() {
  const keys = [keyEntry(testKey(1)), keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' })];
  cli.env['PAYOUT_KEYS_FILE'] = await cli.file('keys.json', JSON.stringify({ version: 1, keys }));
}

it('payouts policy check says what each rule means, and the hash, as text or as JSON', async () => {
  const stdout = await cli.ok('policy', 'check');
  expect(stdout).toContain(`${file}  policy of account ${cli.platformId}\n`);
  for (const line of [
    /hash +[0-9a-f]{64}\n/,
    /dollars +a rate counts for 15 min; .* 1 of currency 6 is 1 USD\n/,
    / {2}day +every payout: at most 5,000\.00 USD in any 24 h, else it waits until there is room\n/,
  ]) {
    expect(stdout).toMatch(line);
  }
  expect(await cli.json('policy', 'check')).toMatchObject({
    ...{ file, hash: HASH, platformId: cli.platformId, default: 'hold', groups: { finance: ['alice', 'bob'] } },
    rules: [{ name: 'huge', over: 'refuse', meaning: textWith('50.00 USD') }, {}, { name: 'btc' }],
    warnings: [],
  });
});

it('payouts policy check exits with 2 and names every problem, also of the account and the keyring', async () => {
  await write(RULES.replace('"50"', '50k').replace('"5000"', '5e3'));
  const problems =
    /^payouts: (PAYOUT_POLICY_FILE|file): .*rules\.0\.cap\.usd must be .*\(got "50k"\)\n.*rules\.1\.cap\.usd must be .*\(got "5e3"\)\n$/;
  for (const args of [[], [file, '--json']]) await cli.refused(2, problems, 'policy', 'check', ...args);
  await write(RULES + APPROVALS);
  await cli.refused(2, /rules\.3\.over\.approve needs the keyring/, 'policy', 'check');
  await writeKeys();
  expect(await cli.run('policy', 'check')).toMatchObject({
    ...{ code: 0, stderr: 'Warning: of the group finance these have no valid key of an approver: bob.\n' },
  });
  delete cli.env['PAYOUT_POLICY_FILE'];
  const required = /^payouts: PAYOUT_POLICY_FILE: is required: the policy of the account\n$/;
  await cli.refused(2, required, 'policy', 'check');
});

describe('payouts policy explain', () => {
  beforeEach(async () => cli.enqueue('p'));
  const expectSaid = async (...said: (string | RegExp)[]): Promise<void> => {
    const stdout = await cli.ok('policy', 'explain', 'p');
    for (const each of said) expect(stdout).toEqual(textWith(each));
  };

  it('asks every rule with what is known here, and names the rest', async () => {
    await expectSaid(
      /^p {2}queued: [^]*With what this host knows, the payout passes\n[^]* {2}huge +passes\n[^]* {2}btc +is not about it\n/,
      'Not known on this host: what was spent: every window counts as empty here.\n',
    );
    await write(RULES + APPROVALS, '{}');
    await writeKeys();
    await expectSaid(
      /its worth in dollars is not known: [^]*Not known on this host: what it is worth in dollars/,
      'Its signature does not count, so it is held whatever the policy says. It is not signed',
    );
  });

  it('says which rule is against it, why it is held now, and decides nothing of what is paid', async () => {
    await write(RULES.replace('"50"', '"12.499999"'));
    const reason = 'it is 12.50 USD, more than 12.499999 USD';
    await expectSaid(`the payout is held: ${reason}\n`);
    expect(await cli.json('policy', 'explain', 'p')).toMatchObject({
      ...{ payoutId: 'p', state: 'queued', policyHash: HASH, approvals: { approvedBy: [], refused: [] } },
      decision: { rule: 'huge', kind: 'refuse', reason },
      rules: [{ rule: 'huge', kind: 'refuse' }, { rule: 'day', kind: 'send' }, { kind: 'not_about_it' }],
    });
    await cli.force('p', 'held');
    const needs = { until: '2030-01-31T09:00:00.000Z', needs: { by: 'finance', persons: 1 } };
    const held = { kind: 'policy', reason: 'approve', rule: 'four-eyes', message: 'it is too much', ...needs };
    await cli.alter('p', { held: JSON.stringify(held) });
    const now = /Held now: policy \(approve, rule four-eyes\): it is too much; until 2030.*; approvals .* finance: 1\n/;
    await expectSaid(now);
    await cli.force('p', 'completed');
    await expectSaid('The policy does not decide about it any more.');
    await cli.refused(3, 'none', 'policy', 'explain', 'none');
  });
});

const day = { rule: 'day', unit: 'usd', limit: '5000.00', withinMs: 86_400_000, per: null, unknown: null } as const;
async function tell(at: number) {
  const buckets = [{ bucket: '', spent: '2500.00', wanted: '120.00', ratio: 0.5 }];
  const report: PolicyReport = {
    ...{ hash: 'e'.repeat(64), at, ratesAt: at - 60_000, ratesMissingSince: null },
    ...{ held: [{ rule: 'day', reason: 'wait', count: 2 }], rules: [{ ...day, buckets }] },
  };
  await cli.redis.set(`${cli.keys.prefix}:policy`, JSON.stringify(report));
}

it('payouts policy usage shows each window and what is held', async () => {
  await cli.refused(3, 'No worker with a policy has published anything', 'policy', 'usage');
  await tell(Date.now());
  const stdout = await cli.ok('policy', 'usage');
  expect(stdout).toMatch(/day +█{10}░{10} +50 % +2,500.00 of 5,000.00 USD in 24 h +120.00 USD wanted/);
  expect(stdout).toContain('2 payouts by day (wait)');
  expect(stdout).not.toContain('sends now');
  const at = Date.now() - 600_000;
  await tell(at);
  expect(await cli.ok('policy', 'usage')).toContain('no worker with a policy sends now');
  const published = { at: new Date(at).toISOString(), rules: [{ rule: 'day' }] };
  expect(await cli.json('policy', 'usage')).toMatchObject(published);
});

const AT = Date.parse('2030-01-31T09:00:00Z');
const FINE: ReconciledBalance = {
  ...{ paymentId: undefined, symbol: 'USD', amount: '900', baseline: { amount: '1000', at: AT }, decimalsSeen: 2 },
  ...{ settled: { count: 2, high: '62.5' }, recent: { count: 1, high: '40.5' }, open: { count: 1, high: undefined } },
  ...{ unexplained: '0', incomparable: undefined, isSuspected: false, reported: '0', drop: undefined },
};

async function store(balance: ReconciledBalance) {
  const found = { comparedAt: AT, followedSince: AT, followedTo: '1-0', fees: {}, rates: {}, balances: [balance] };
  await saveReconciliation(cli.ledger.connection, found);
}

async function expectCheck(status: string, detail: string) {
  expect(await checkReconciliation(cli.ledger.connection)).toMatchObject({ status, detail: textWith(detail) });
}

it('shows baseline, the most that was sent, and what is not explained', async () => {
  await cli.refused(3, 'not compared yet', 'reconcile');
  await expectCheck('ok', '');
  await store(FINE);
  const stdout = await cli.ok('reconcile');
  for (const line of [
    ...[/USD +balance +900/, /baseline +1,000 USD \(2030-01-31 09:00:00 UTC\)/, /sent since +up to 103 USD \(3\)/],
    ...[/not ended +more than can be said \(1\)/, /unexplained +0 USD\n/],
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
});

it('exits with 4 while a drop is not explained, until an operator accepts it', async () => {
  await store({ ...FINE, drop: { amount: '77.25', since: AT, at: AT + 60_000 } });
  const shown = { code: 4, stdout: textWith(/REPORTED +77\.25 USD missing, since 2030-01-31/) };
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

it('payouts adopt-ledger asks for a journal that only the oldest file names', async () => {
  const OTHER = 'bbbbbbbbbbbb';
  let text = '';
  const writeSend = async (suffix: string, sends: number, ...peers: readonly JournalLine[]): Promise<void> => {
    const after = { sends: sends - 1, token: sends === 1 ? '' : `t-${sends - 1}` };
    const request = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' };
    const lines: readonly JournalLine[] = [
      { v: 1, journalId: 'aaaaaaaaaaaa', bornAt: 1 },
      { ledgerId: 'former', epoch: 1, ...after },
      ...peers,
      {
        payoutId: `p-${sends}`,
        attempt: 1,
        token: `t-${sends}`,
        epoch: 1,
        sends,
        after,
        at: 0,
        inFlightMs: 0,
        request,
      },
    ];
    text = toFileText(lines, text);
    await cli.file(`${cli.platformId}.journal${suffix}`, ...text.trimEnd().split('\n'));
  };
  await writeSend('.1', 1, { peers: [{ journalId: OTHER, host: 'host-b', dir: '/b' }] });
  await writeSend('', 2);
  const command = ['adopt-ledger', '--journal', cli.dir, '--yes', '--reason', 'flushed', '--by', 'ann'];
  const refused = await cli.run(...command);
  expect(refused.code).toBe(4);
  const named = `payouts adopt-ledger --account ${cli.platformId} --journal ${cli.dir} --journal /b --reason WHY`;
  expect(refused.stderr).toMatch(new RegExp(`journal ${OTHER} was not read.*\`${named}\`.*--give-up its id`));
  const asking = await cli.run(...command.filter((arg) => arg !== '--yes'), '--give-up', OTHER);
  expect(asking).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/p-1[^]*--yes: is required/) });
  expect(await cli.states('p-1')).toEqual([undefined]);
  expect(await cli.run(...command, '--give-up', OTHER)).toMatchObject({ code: 0 });
  expect(await cli.states('p-1', 'p-2')).toEqual(['unknown', 'unknown']);
});

it('payouts adopt-ledger says that it is run in the wrong place where there is no journal', async () => {
  cli.env['SEND_JOURNAL_DIR'] = cli.dir;
  await cli.refused(3, /No send journal of account \d+ in .*payouts-cli/, 'adopt-ledger', '--yes');
  expect(await readdir(cli.dir)).toEqual(['policy.yaml']);
});
