import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { PolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { connectRedis, closeRedis } from '../../../src/base/redis.js';
import { testRedisUrl } from '../../support/account.js';
import type { CliResult } from '../../support/cli.js';
import { keyEntry, testKey } from '../../control/support/keys.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';
import { runInProcess } from '../support/in-process.js';

let account: AccountCli;
let folder: string;
let file: string;
let platformId: string;

beforeAll(() => {
  account = openAccountCli();
  platformId = account.env['GATEWAY_PLATFORM_ID'] ?? '';
  folder = mkdtempSync(join(tmpdir(), 'policy-command-'));
  file = join(folder, 'policy.yaml');
});

beforeEach(() => {
  write(RULES);
});

afterAll(async () => {
  await account.close();
  rmSync(folder, { recursive: true });
});

const RULES = `
  - { name: huge, cap: { usd: "50" }, over: refuse }
  - { name: day, cap: { usd: "5000", within: 24h }, over: wait }
  - { name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }
`;
const APPROVALS = `
  - { name: four-eyes, cap: { usd: "5" }, over: { approve: { by: finance, quorum: 1 } } }
`;

function write(rules: string, pinned = '{ "6": "1" }', id = platformId): void {
  const usd = `usd: { pinned: ${pinned} }`;
  const text = `version: 1\nplatformId: "${id}"\ndefault: hold\n${usd}\ngroups: { finance: [alice, bob] }\nrules:${rules}`;
  // A file that is there keeps its mode.
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600 });
}

function writeKeys(): string {
  const keys = [keyEntry(testKey(1)), keyEntry(testKey(2), { name: 'alice', role: 'approver', person: 'alice' })];
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  return join(folder, 'keys.json');
}

const policy = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CliResult> =>
  runInProcess(['policy', ...args], { ...account.env, PAYOUT_POLICY_FILE: file, ...env });

describe('payouts policy check', () => {
  it('says what each rule means, and the hash', async () => {
    const { code, stdout, stderr } = await policy(['check']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`${file}  policy of account ${platformId}\n`);
    expect(stdout).toMatch(/hash +[0-9a-f]{64}\n/);
    expect(stdout).toMatch(/default +hold: a payout that no cap covers is held\n/);
    expect(stdout).toMatch(/dollars +a rate counts for 15 min; .* 1 of currency 6 is 1 USD\n/);
    expect(stdout).toMatch(/group finance +alice, bob\n/);
    expect(stdout).toMatch(
      / {2}day +every payout: at most 5000\.00 USD in any 24 h, else it waits until there is room\n/,
    );
  });

  it('prints the same as JSON', async () => {
    const { stdout } = await policy(['check', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ file, hash: expect.stringMatching(/^[0-9a-f]{64}$/), platformId: Number(platformId), default: 'hold' },
      groups: { finance: ['alice', 'bob'] },
      rules: [{ name: 'huge', over: 'refuse', meaning: expect.stringContaining('50.00 USD') }, {}, { name: 'btc' }],
      warnings: [],
    });
  });

  it('exits with 2 and names every problem, without a line on stdout', async () => {
    write(RULES.replace('"50"', '50k').replace('"5000"', '5e3'));
    for (const args of [['check'], ['check', file], ['check', '--json']]) {
      const { code, stdout, stderr } = await policy(args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr.split('\n').filter(Boolean)).toEqual([
        expect.stringMatching(/^payouts: (PAYOUT_POLICY_FILE|file): .*rules\.0\.cap\.usd must be .*\(got "50k"\)$/),
        expect.stringMatching(/rules\.1\.cap\.usd must be .*\(got "5e3"\)$/),
      ]);
    }
  });

  it('refuses a file that others can write', async () => {
    chmodSync(file, 0o666);
    expect(await policy(['check'])).toMatchObject({ code: 2, stderr: expect.stringMatching(/is not trusted/) });
  });

  it('compares the account, where one is known', async () => {
    write(RULES, undefined, '7');
    expect((await policy(['check', file])).stderr).toMatch(/platformId must be \d+, .*\(got "7"\)/);
    expect(await runInProcess(['policy', 'check', file], {})).toMatchObject({ code: 0 });
    expect(await runInProcess(['policy', 'check', file, '--account', '8'], {})).toMatchObject({ code: 2 });
  });

  it('asks for the keyring where approvals are wanted, and warns of who has no key', async () => {
    write(RULES + APPROVALS);
    expect((await policy(['check'])).stderr).toMatch(/rules\.3\.over\.approve needs the keyring/);
    expect(await policy(['check'], { PAYOUT_KEYS_FILE: writeKeys() })).toMatchObject({
      code: 0,
      stderr: 'Warning: of the group finance these have no valid key of an approver: bob.\n',
    });
  });

  it('needs a file', async () => {
    expect(await runInProcess(['policy', 'check'], account.env)).toMatchObject({
      code: 2,
      stderr: 'payouts: PAYOUT_POLICY_FILE: is required: the policy of the account\n',
    });
  });

  it('takes the policy of each account of an accounts file, beside that', async () => {
    const accounts = [platformId, '7'].map((id) => ({
      ...{ platformId: Number(id), baseUrl: 'https://gateway.example', secretKeyFile: 'none' },
      policyFile: id === '7' ? 'seven.yaml' : 'policy.yaml',
    }));
    const path = join(folder, 'accounts.json');
    writeFileSync(path, JSON.stringify(accounts));
    const env = { PAYOUT_ACCOUNTS_FILE: path };
    expect(await runInProcess(['policy', 'check', '--account', platformId], env)).toMatchObject({ code: 0 });
    expect((await runInProcess(['policy', 'check', '--account', '7'], env)).stderr).toContain(
      `${join(folder, 'seven.yaml')} cannot be read`,
    );
    expect((await runInProcess(['policy', 'check'], env)).stderr).toContain('--account: is required');
  });
});

describe('payouts policy explain', () => {
  it('asks every rule with what is known here, and names the rest', async () => {
    await account.enqueue('p-1');
    const { code, stdout } = await policy(['explain', 'p-1']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^p-1 {2}queued: /);
    expect(stdout).toContain('With what this host knows, the payout passes\n');
    expect(stdout).toMatch(/ {2}huge +passes\n/);
    expect(stdout).toMatch(/ {2}btc +is not about it\n/);
    expect(stdout).toContain('Not known on this host: what was spent: every window counts as empty here.\n');
    expect(stdout).not.toContain('in dollars let it wait');
    expect(stdout).not.toContain('Held now');
  });

  it('says that only the worker knows a rate', async () => {
    await account.enqueue('p-2');
    write(RULES, '{}');
    const { stdout } = await policy(['explain', 'p-2']);
    expect(stdout).toContain(
      'the payout waits: its worth in dollars is not known: only the worker knows rates that are not pinned\n',
    );
    expect(stdout).toContain('Not known on this host: what it is worth in dollars');
  });

  it('says which rule is against it, and as JSON', async () => {
    await account.enqueue('p-3');
    write(RULES.replace('"50"', '"12.499999"'));
    expect((await policy(['explain', 'p-3'])).stdout).toContain(
      'the payout is held: it is 12.50 USD, more than 12.499999 USD\n',
    );
    const explained = JSON.parse((await policy(['explain', 'p-3', '--json'])).stdout) as object;
    expect(explained).toMatchObject({
      ...{ payoutId: 'p-3', state: 'queued', policyHash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      decision: { rule: 'huge', kind: 'refuse', reason: 'it is 12.50 USD, more than 12.499999 USD' },
      rules: [
        { rule: 'huge', kind: 'refuse' },
        { rule: 'day', kind: 'send', text: 'passes' },
        { rule: 'btc', kind: 'not_about_it' },
      ],
      approvals: { approvedBy: [], refused: [] },
    });
  });

  it('shows what no cap covers', async () => {
    await account.enqueue('p-4');
    write('\n  - { name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }\n');
    expect((await policy(['explain', 'p-4'])).stdout).toMatch(/ {2}default +is held: no rule with a cap covers it/);
  });

  it('does not say that a payout waits which is paid', async () => {
    await account.enqueue('p-paid');
    await account.force('p-paid', 'completed');
    const { stdout } = await policy(['explain', 'p-paid']);
    expect(stdout).toContain('The policy does not decide about it any more.');
    expect(stdout).not.toContain('the payout ');
  });

  it('shows why it is held now, until when, and what it needs', async () => {
    await account.enqueue('p-5');
    await account.force('p-5', 'held');
    const { keys } = account.ledger.connection;
    const redis = connectRedis(testRedisUrl(), 'commands');
    const held = {
      ...{ kind: 'policy', reason: 'approve', rule: 'four-eyes', message: 'it is too much' },
      ...{ until: '2030-01-31T09:00:00.000Z', needs: { by: 'finance', persons: 1 } },
    };
    await redis.hset(keys.payout('p-5'), 'held', JSON.stringify(held));
    await closeRedis(redis);
    expect((await policy(['explain', 'p-5'])).stdout).toContain(
      'Held now: policy (approve, rule four-eyes): it is too much; until 2030-01-31T09:00:00.000Z; approvals that are missing, by finance: 1\n',
    );
  });

  it('says with a keyring that an unsigned payout is held all the same', async () => {
    await account.enqueue('p-6');
    write(RULES + APPROVALS);
    const { stdout } = await policy(['explain', 'p-6'], { PAYOUT_KEYS_FILE: writeKeys() });
    expect(stdout).toContain('the payout needs 1 more approval by finance: it is 12.50 USD, more than 5.00 USD\n');
    expect(stdout).toMatch(/Its signature does not count, so it is held whatever the policy says\. It is not signed/);
  });

  it('exits with 3 where there is no such payout, and with 5 where its record was altered', async () => {
    expect(await policy(['explain', 'none'])).toMatchObject({ code: 3, stdout: '' });
    await account.enqueue('p-7');
    const redis = connectRedis(testRedisUrl(), 'commands');
    await redis.hset(account.ledger.connection.keys.payout('p-7'), 'amount', '1e9');
    await closeRedis(redis);
    expect(await policy(['explain', 'p-7'])).toMatchObject({
      code: 5,
      stderr: 'payouts: A field of payout p-7 was altered: amount (got "1e9")\n',
    });
  });
});

describe('payouts policy usage', () => {
  const NOW = Date.now();

  async function tell(at: number): Promise<void> {
    const redis = connectRedis(testRedisUrl(), 'commands');
    const report: PolicyReport = {
      ...{
        hash: 'e'.repeat(64),
        at,
        ratesAt: at - 60_000,
        ratesMissingSince: null,
        held: [{ rule: 'day', reason: 'wait', count: 2 }],
      },
      rules: [
        {
          ...{ rule: 'day', unit: 'usd', limit: '5000.00', withinMs: 86_400_000, per: null, unknown: null },
          buckets: [{ bucket: '', spent: '2500.00', wanted: '120.00', ratio: 0.5 }],
        },
      ],
    };
    await redis.set(`{payouts:${platformId}}:policy`, JSON.stringify(report));
    await closeRedis(redis);
  }

  it('says so if no worker has published anything', async () => {
    const { code, stderr } = await policy(['usage']);
    expect(code).toBe(3);
    expect(stderr).toContain('No worker with a policy has published anything');
  });

  it('shows each window, and what is held', async () => {
    await tell(NOW);
    const { code, stdout } = await policy(['usage']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/day +█{10}░{10} +50 % +2500.00 of 5000.00 USD in 24 h +120.00 wanted/);
    expect(stdout).toContain('2 payouts by day (wait)');
    expect(stdout).not.toContain('sends now');
  });

  it('says that the worker stopped, and prints JSON', async () => {
    await tell(NOW - 600_000);
    expect((await policy(['usage'])).stdout).toContain('no worker with a policy sends now');
    const { stdout } = await policy(['usage', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ at: new Date(NOW - 600_000).toISOString(), rules: [{ rule: 'day' }] });
  });
});
