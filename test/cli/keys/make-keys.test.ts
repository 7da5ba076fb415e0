import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { type CliResult, runCli, startCli } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { type AccountCli, openAccountCli } from '../support/account-cli.js';
import { runInProcess } from '../support/in-process.js';

const FILES = ['keys.yaml', 'operator.pem', 'policy.yaml', 'producer.pem', 'worker.pem'];

let account: AccountCli;
let platformId: number;
let base: string;
let dir: string;
let journalDir: string;
let env: Record<string, string>;

beforeEach(async () => {
  account = openAccountCli();
  ({ platformId } = account.ledger.connection);
  base = await mkdtemp(join(tmpdir(), 'payouts-init-'));
  [dir, journalDir] = [join(base, 'keys'), join(base, 'journal')];
  env = { ...account.env, SEND_JOURNAL_DIR: journalDir };
});

afterEach(async () => {
  await account.close();
  await rm(base, { recursive: true });
});

const init = async (...args: string[]): Promise<CliResult> => runInProcess(['keys', 'init', dir, ...args], env);

interface Made {
  readonly keysFile: string;
  readonly policyFile: string;
  readonly environment: { readonly producer: object; readonly worker: object; readonly operator: object };
  readonly journal: { readonly adopted: boolean; readonly reason?: string; readonly command?: string };
}

async function initJson(...args: string[]): Promise<Made> {
  const { code, stdout, stderr } = await init('--json', ...args);
  expect({ code, stderr: stderr.replace(/^payouts: Redis unavailable, reconnecting.*\n/gm, '') }).toEqual({
    code: 0,
    stderr: '',
  });
  return JSON.parse(stdout) as Made;
}

/** What a shell reads from the printed lines. */
function readBySh(text: string): Record<string, string> {
  const { stdout } = spawnSync(
    'sh',
    ['-c', `set -a\n${text}\nexec "$0" -p 'JSON.stringify(process.env)'`, process.execPath],
    {
      env: {},
      encoding: 'utf8',
    },
  );
  const read = Object.entries(JSON.parse(stdout) as Record<string, string>);
  return Object.fromEntries(read.filter(([name]) => name.startsWith('PAYOUT_')));
}

async function bornAt(): Promise<number> {
  const journal = await FileSendJournal.open({ dir: journalDir, platformId });
  await journal.close();
  return journal.bornAt;
}

describe('payouts keys init', () => {
  it('leads from nothing to a completed and verified payout in five commands', async () => {
    // In place of the first command, `payouts sandbox`.
    const sandbox = await startSandbox({
      accounts: [{ platformId, secretKey: 'k-init-0123456789' }],
      settleAfterMs: 300,
    });
    const before = { ...env, GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: 'k-init-0123456789' };
    const quick = { HEALTH_PORT: '0', LEASE_MS: '1500', TAKEOVER_QUARANTINE_MS: '1000', STATUS_POLL_MIN_MS: '200' };
    const made = await runCli(['keys', 'init', dir], { env: before });
    expect(made).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/counts as complete: account \d+ is new\.\n$/),
    });
    const all = { ...before, ...readBySh(made.stdout) };
    const payout = ['--payout-id', 'first-1', '--payment-id', '6', '--amount', '12.5', '--address-to', 'TXYZ9'];
    expect(await runCli(['enqueue', ...payout], { env: all })).toMatchObject({ code: 0, stderr: '' });
    const worker = startCli(['worker'], { env: { ...all, ...quick } });
    // Held until the worker has read the gateway's rates twice.
    await until('it is completed', async () => (await account.ledger.require('first-1')).state === 'completed', 90_000);
    const shown = await runCli(['get', 'first-1'], { env: all });
    worker.kill('SIGTERM');
    expect(await worker.result).toMatchObject({ code: 0 });
    await sandbox.close();
    expect(shown.stdout).toMatch(
      /^first-1 +completed: [^]*receipt +verified by worker worker-1\n[^]*signed by +shop\n/,
    );
    expect(await runCli(['audit', 'verify'], { env: all })).toMatchObject({ code: 0 });
  });

  it('makes files that only their owner reads, a keyring and a policy that can be used at once', async () => {
    const { keysFile, policyFile, environment } = await initJson('--operator', 'Ann Lee');
    const audience = { PAYOUT_AUDIENCE: env['PAYOUT_AUDIENCE'] };
    expect(environment).toMatchObject({ producer: audience, worker: audience, operator: audience });
    expect((await readdir(dir)).sort()).toEqual(FILES);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    for (const name of FILES.filter((file) => file.endsWith('.pem')))
      expect((await stat(join(dir, name))).mode & 0o777).toBe(0o600);
    const { keys } = readKeyringFile(keysFile);
    expect(keys.map(({ name, role, person }) => [name, role, person])).toEqual([
      ['shop', 'producer', 'shop'],
      ['ann-lee', 'operator', 'ann-lee'],
      ['worker-1', 'worker', 'worker-1'],
    ]);
    expect(await runInProcess(['policy', 'check', policyFile], { ...env, PAYOUT_KEYS_FILE: keysFile })).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(environment.worker).not.toHaveProperty('PAYOUT_SIGNING_KEY_FILE');
    expect(JSON.stringify(environment.worker)).not.toMatch(/producer\.pem|operator\.pem/);
    const act = ['retry', 'p-1', '--reason', 'none', '--key', join(dir, 'operator.pem')];
    expect(await runInProcess(act, { ...env, PAYOUT_KEYS_FILE: keysFile })).toMatchObject({ code: 3 });
  });

  it('writes a keyring that is refused if a crash cut it short', async () => {
    const { keysFile } = await initJson();
    const text = await readFile(keysFile, 'utf8');
    const cut = join(dir, 'cut.yaml');
    for (let length = 0; length < text.trimEnd().length; length += 1) {
      await writeFile(cut, text.slice(0, length));
      expect(() => readKeyringFile(cut)).toThrow();
    }
  });

  it('prints lines that a shell reads, for any folder, and without an audience how to find it', async () => {
    dir = join(base, `it's a "$HOME" folder`);
    env = { ...env, PAYOUT_AUDIENCE: '' };
    const { stdout, stderr } = await init();
    expect(readBySh(stdout)).toEqual({
      PAYOUT_SIGNING_KEY_FILE: join(dir, 'producer.pem'),
      PAYOUT_SIGNING_KEY_NAME: 'shop',
      PAYOUT_KEYS_FILE: join(dir, 'keys.yaml'),
      PAYOUT_POLICY_FILE: join(dir, 'policy.yaml'),
      PAYOUT_WORKER_KEY_FILE: join(dir, 'worker.pem'),
      PAYOUT_WORKER_KEY_NAME: 'worker-1',
    });
    dir = join(base, 'other');
    env = { ...env, GATEWAY_BASE_URL: 'https://gateway.example' };
    const audience = `https://gateway.example#${platformId}`;
    const { producer, worker, operator } = (await initJson()).environment;
    expect([producer, operator]).toMatchObject([{ PAYOUT_AUDIENCE: audience }, { PAYOUT_AUDIENCE: audience }]);
    expect(worker).not.toHaveProperty('PAYOUT_AUDIENCE');
    expect(stdout).toMatch(/^# PAYOUT_AUDIENCE is missing here: `payouts doctor`/m);
    expect(stdout).toMatch(/^# In production, keep producer\.pem and operator\.pem off the worker's host/m);
    expect(stderr).toMatch(/^The send journal in .* counts as complete/);
  });

  it('never overwrites: a second run names what is there, and changes nothing', async () => {
    await initJson();
    const read = async (): Promise<string[]> =>
      Promise.all(FILES.map(async (name) => readFile(join(dir, name), 'utf8')));
    const before = await read();
    const { code, stdout, stderr } = await init();
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^payouts: dir: has producer\.pem, .*keys\.yaml already, and nothing is overwritten/);
    await rm(join(dir, 'keys.yaml'));
    expect(await init()).toMatchObject({ code: 2 });
    expect(existsSync(join(dir, 'keys.yaml'))).toBe(false);
    await writeFile(join(dir, 'keys.yaml'), before[0] ?? '');
    expect(await read()).toEqual(before);
  });

  it('leaves nothing when the disk is full halfway, and works after that', async () => {
    // The keys have fewer than 512 bytes, the policy more.
    const limited = (): ReturnType<typeof spawnSync> =>
      spawnSync(
        'dash',
        ['-c', 'ulimit -f 1; exec "$@"', '-', process.execPath, findBuiltProgram(), 'keys', 'init', dir],
        {
          env: { ...process.env, ...env },
          encoding: 'utf8',
        },
      );
    const { status, stderr } = limited();
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringMatching(/^payouts: dir: cannot be written: EFBIG.*policy\.yaml"\)\n$/),
    });
    expect(await readdir(dir)).toEqual([]);
    expect(existsSync(journalDir)).toBe(false);
    await initJson();
  });

  it.each([
    ['the account is missing', [], { GATEWAY_PLATFORM_ID: '' }, /^payouts: GATEWAY_PLATFORM_ID: is required/],
    ['the account is no number', [], { GATEWAY_PLATFORM_ID: '42x' }, /^payouts: GATEWAY_PLATFORM_ID: must be/],
    [
      '--account names another',
      ['--account', '7'],
      {},
      /^payouts: --account: is not the account of GATEWAY_PLATFORM_ID/,
    ],
    ['the audience is invalid', [], { PAYOUT_AUDIENCE: 'a b' }, /^payouts: PAYOUT_AUDIENCE: /],
    [
      'the operator looks like the producer',
      ['--operator', 'sh0p'],
      {},
      /^payouts: --operator: looks like the key shop/,
    ],
    ['the operator is no id', ['--operator', '\u0430nn'], {}, /^payouts: --operator: must be an id .*U\+0430/],
  ])('makes nothing if %s', async (_, args, changes, words) => {
    env = { ...env, ...changes };
    expect(await init(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(words) });
    expect(await readdir(base)).toEqual([]);
  });

  it('puts no key into a folder that others can write, or under one', async () => {
    const open = join(base, 'open');
    await mkdir(open);
    await chmod(open, 0o777);
    for (const each of [open, join(open, 'a', 'b')]) {
      dir = each;
      const { code, stderr } = await init();
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringMatching(/^payouts: dir: is not trusted: others than its owner can write .*chmod go-w/),
      });
    }
    expect(await readdir(open)).toEqual([]);
    dir = join(base, 'file');
    await writeFile(dir, 'x');
    expect(await init()).toMatchObject({ code: 2, stderr: expect.stringMatching(/^payouts: dir: /) });
    expect(await readFile(dir, 'utf8')).toBe('x');
  });
});

describe('the adoption by payouts keys init', () => {
  it('is of a new account, also with payouts that wait', async () => {
    await account.enqueue('p-1');
    expect((await initJson()).journal).toEqual({ dir: journalDir, adopted: true });
    expect(await bornAt()).toBe(0);
  });

  it.each([
    [
      'a process had the right to send',
      async () => account.ledger.connection.redis.hset(account.ledger.connection.keys.sender, 'epoch', 1),
      /right to send/,
    ],
    [
      'a journal is known',
      async () => account.ledger.connection.redis.hset(account.ledger.connection.keys.journals, 'j', '{}'),
      /knows a send journal/,
    ],
    [
      'a payout was sent',
      async () => account.enqueue('p-1').then(async () => account.force('p-1', 'in_progress')),
      /is in_progress/,
    ],
    [
      'nobody knows what became of a payout',
      async () => account.enqueue('p-1').then(async () => account.force('p-1', 'unknown')),
      /is unknown/,
    ],
  ])('is refused if %s, with the command', async (_, prepare, reason) => {
    await prepare();
    const { journal } = await initJson();
    expect(journal).toEqual({
      dir: journalDir,
      adopted: false,
      reason: expect.stringMatching(reason),
      command: `payouts audit adopt-journal --account ${platformId} --reason 'first start with keys'`,
    });
    expect(existsSync(journalDir)).toBe(false);
    expect((await readdir(dir)).sort()).toEqual(FILES);
  });

  it('is refused if this host has a journal of the account, whatever Redis says', async () => {
    const before = await bornAt();
    expect(before).toBeGreaterThan(0);
    expect((await initJson()).journal).toMatchObject({ adopted: false, reason: expect.stringContaining('already') });
    expect(await bornAt()).toBe(before);
  });

  it('is refused beside an earlier keyring, whose signatures may be of payouts that were sent', async () => {
    const earlier = join(base, 'keys.yaml');
    await writeFile(earlier, 'version: 1\nkeys: []\n');
    env = { ...env, PAYOUT_KEYS_FILE: earlier };
    expect((await initJson()).journal).toMatchObject({
      adopted: false,
      reason: expect.stringContaining('PAYOUT_KEYS_FILE'),
    });
    expect(existsSync(journalDir)).toBe(false);
  });

  it('is not refused by a variable that named the new keyring before it was made', async () => {
    env = { ...env, PAYOUT_KEYS_FILE: join(dir, 'keys.yaml') };
    expect((await initJson()).journal).toMatchObject({ adopted: true });
  });

  it('is left out with --no-adopt, and the command is printed', async () => {
    const { code, stderr } = await init('--no-adopt');
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^Warning: .* is not adopted: you gave --no-adopt\.\n[^]*\n {2}payouts audit adopt-journal /,
    );
    expect(existsSync(journalDir)).toBe(false);
  });

  it('is left out while Redis cannot be reached; the files are made', async () => {
    env = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    const { journal } = await initJson();
    expect(journal).toMatchObject({ adopted: false, reason: expect.stringContaining('Redis unavailable') });
    expect(existsSync(journalDir)).toBe(false);
    expect((await readdir(dir)).sort()).toEqual(FILES);
  });

  (process.getuid?.() === 0 ? it : it.skip)('leaves root out of a journal folder that is a worker\u2019s', async () => {
    await mkdir(journalDir);
    await chown(journalDir, 65534, 65534);
    expect((await initJson()).journal).toMatchObject({
      adopted: false,
      reason: expect.stringContaining('you are root'),
    });
    expect(await readdir(journalDir)).toEqual([]);
  });
});
