import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { PolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { keyEntry, testKey } from '../../control/support/keys.js';
import { textWith, useCli } from '../support/cli-rig.js';

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

async function write(rules: string, pinned = '{ "6": "1" }'): Promise<void> {
  const head = `version: 1\nplatformId: "${cli.platformId}"\ndefault: hold\nusd: { pinned: ${pinned} }`;
  await cli.file('policy.yaml', `${head}\ngroups: { finance: [alice, bob] }\nrules:${rules}`);
}

async function writeKeys(): Promise<void> {
  const keys = [keyEntry(testKey(1)), keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' })];
  cli.env['PAYOUT_KEYS_FILE'] = await cli.file('keys.json', JSON.stringify({ version: 1, keys }));
}

describe('payouts policy check', () => {
  it('says what each rule means, and the hash, as text or as JSON', async () => {
    const stdout = await cli.ok('policy', 'check');
    expect(stdout).toContain(`${file}  policy of account ${cli.platformId}\n`);
    for (const line of [
      /hash +[0-9a-f]{64}\n/,
      /default +hold: a payout that no cap covers is held\n/,
      /dollars +a rate counts for 15 min; .* 1 of currency 6 is 1 USD\n/,
      /group finance +alice, bob\n/,
      / {2}day +every payout: at most 5000\.00 USD in any 24 h, else it waits until there is room\n/,
    ]) {
      expect(stdout).toMatch(line);
    }
    expect(await cli.json('policy', 'check')).toMatchObject({
      ...{ file, hash: HASH, platformId: cli.platformId, default: 'hold', groups: { finance: ['alice', 'bob'] } },
      rules: [{ name: 'huge', over: 'refuse', meaning: textWith('50.00 USD') }, {}, { name: 'btc' }],
      warnings: [],
    });
  });

  it('exits with 2 and names every problem, also of the account and the keyring', async () => {
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
    await write(RULES, '{}');
    await expectSaid(/its worth in dollars is not known: [^]*Not known on this host: what it is worth in dollars/);
    await write(RULES + APPROVALS);
    await writeKeys();
    await expectSaid(
      'the payout needs 1 more approval by finance: it is 12.50 USD, more than 5.00 USD\n',
      'Its signature does not count, so it is held whatever the policy says. It is not signed',
    );
  });

  it('says which rule is against it, also as JSON', async () => {
    await write(RULES.replace('"50"', '"12.499999"'));
    const reason = 'it is 12.50 USD, more than 12.499999 USD';
    await expectSaid(`the payout is held: ${reason}\n`);
    expect(await cli.json('policy', 'explain', 'p')).toMatchObject({
      ...{ payoutId: 'p', state: 'queued', policyHash: HASH, approvals: { approvedBy: [], refused: [] } },
      decision: { rule: 'huge', kind: 'refuse', reason },
      rules: [{ rule: 'huge', kind: 'refuse' }, { rule: 'day', kind: 'send' }, { kind: 'not_about_it' }],
    });
  });

  it('shows why it is held now; decides nothing of what is paid', async () => {
    await cli.force('p', 'held');
    const needs = { until: '2030-01-31T09:00:00.000Z', needs: { by: 'finance', persons: 1 } };
    const held = { kind: 'policy', reason: 'approve', rule: 'four-eyes', message: 'it is too much', ...needs };
    await cli.alter('p', { held: JSON.stringify(held) });
    await expectSaid(
      /Held now: policy \(approve, rule four-eyes\): it is too much; until 2030.*; approvals .* finance: 1\n/,
    );
    await cli.force('p', 'completed');
    await expectSaid('The policy does not decide about it any more.');
    await cli.refused(3, 'none', 'policy', 'explain', 'none');
    await cli.alter('p', { amount: '1e9' });
    await cli.refused(
      5,
      /^payouts: A field of payout p was altered: amount \(got "1e9"\)\n$/,
      'policy',
      'explain',
      'p',
    );
  });
});

describe('payouts policy usage', () => {
  const day = { rule: 'day', unit: 'usd', limit: '5000.00', withinMs: 86_400_000, per: null, unknown: null } as const;
  async function tell(at: number): Promise<void> {
    const buckets = [{ bucket: '', spent: '2500.00', wanted: '120.00', ratio: 0.5 }];
    const report: PolicyReport = {
      ...{ hash: 'e'.repeat(64), at, ratesAt: at - 60_000, ratesMissingSince: null },
      ...{ held: [{ rule: 'day', reason: 'wait', count: 2 }], rules: [{ ...day, buckets }] },
    };
    await cli.redis.set(`${cli.keys.prefix}:policy`, JSON.stringify(report));
  }

  it('shows each window and what is held', async () => {
    await cli.refused(3, 'No worker with a policy has published anything', 'policy', 'usage');
    await tell(Date.now());
    const stdout = await cli.ok('policy', 'usage');
    expect(stdout).toMatch(/day +█{10}░{10} +50 % +2500.00 of 5000.00 USD in 24 h +120.00 wanted/);
    expect(stdout).toContain('2 payouts by day (wait)');
    expect(stdout).not.toContain('sends now');
    const at = Date.now() - 600_000;
    await tell(at);
    expect(await cli.ok('policy', 'usage')).toContain('no worker with a policy sends now');
    const published = { at: new Date(at).toISOString(), rules: [{ rule: 'day' }] };
    expect(await cli.json('policy', 'usage')).toMatchObject(published);
  });
});
