import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runCli, type CliResult } from '../../support/cli.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;
let dir: string;
let keyFile: string;
let keysFile: string;

beforeEach(async () => {
  account = openAccountCli();
  dir = await mkdtemp(join(tmpdir(), 'payouts-keys-'));
  keyFile = join(dir, 'shop.pem');
  keysFile = join(dir, 'keys.yaml');
});

afterEach(async () => {
  await account.close();
  await rm(dir, { recursive: true });
});

/** Runs the built program, as operators do. */
async function payouts(args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<CliResult> {
  return runCli(args, { env: { ...account.env, ...env }, input });
}

async function keygen(...args: string[]): Promise<CliResult> {
  return payouts([
    'keys',
    'generate',
    'shop',
    '--role',
    'producer',
    '--person',
    'Shop: "A" #1',
    '--out',
    keyFile,
    ...args,
  ]);
}

/** A key, and the keyring that has it. @returns the environment of who signs and verifies */
async function makeKeys(): Promise<Record<string, string>> {
  const { stdout } = await keygen();
  await writeFile(keysFile, `version: 1\nkeys:\n${stdout}`, { mode: 0o644 });
  return { PAYOUT_SIGNING_KEY_FILE: keyFile, PAYOUT_SIGNING_KEY_NAME: 'shop', PAYOUT_KEYS_FILE: keysFile };
}

/** A line of the private key itself. */
async function secretOf(file = keyFile): Promise<string> {
  const [, secret = ''] = (await readFile(file, 'utf8')).split('\n');
  expect(secret).toMatch(/^[A-Za-z0-9+/=]{60,}$/);
  return secret;
}

const PAYOUT = ['--payout-id', 'p-1', '--payment-id', '6', '--amount', '12.50', '--address-to', 'TXYZ9'];
const LINE = { payoutId: 'p-1', paymentId: 6, amount: '12.50', addressTo: 'TXYZ9', metadata: { b: 1, 1: 2 } };

describe('payouts keys generate', () => {
  it('writes a private key that only its owner reads, and prints the entry of the keyring', async () => {
    const { code, stdout, stderr } = await keygen();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    expect(stdout).toMatch(/^ {2}- \{ name: "shop", role: "producer", person: "shop-a-1", public: "ed25519:/);
    expect(stdout).not.toContain(await secretOf());
    await writeFile(keysFile, `version: 1\nkeys:\n${stdout}`, { mode: 0o600 });
    const check = await payouts(['keys', 'check', keysFile, '--json']);
    expect(JSON.parse(check.stdout)).toEqual({
      name: 'shop',
      role: 'producer',
      person: 'shop-a-1',
      status: 'valid',
    });
  });

  it('never overwrites a file', async () => {
    await keygen();
    const before = await readFile(keyFile, 'utf8');
    const { code, stdout, stderr } = await keygen('--json');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^payouts: --out: exists already, and a key is never overwritten/);
    expect(await readFile(keyFile, 'utf8')).toBe(before);
  });

  it('names what is wrong, and writes nothing', async () => {
    const args = ['keys', 'generate', '-', '--role', 'producer', '--person', ' a', '--out', keyFile];
    const { code, stderr } = await account.run(...args);
    expect({ code, lines: stderr.split('\n') }).toEqual({
      code: 2,
      lines: [
        expect.stringMatching(/^payouts: name: must be 1 to 32 of .*\(got "-"\)$/),
        expect.stringMatching(/^payouts: --person: must not begin or end with spaces/),
        '',
      ],
    });
    expect((await account.run('keys', 'generate', 'a', '--role', 'boss', '--person', 'a', '--out', keyFile)).code).toBe(
      2,
    );
    await expect(stat(keyFile)).rejects.toThrow('ENOENT');
  });
});

describe('payouts keys check', () => {
  async function check(keys: readonly object[], ...args: string[]): Promise<CliResult> {
    await writeFile(keysFile, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
    return account.run('keys', 'check', keysFile, ...args);
  }

  async function entry(name: string, more: object): Promise<object> {
    const out = join(dir, `${name}.pem`);
    const args = ['keys', 'generate', name, '--role', 'operator', '--person', name, '--out', out, '--json'];
    return { ...(JSON.parse((await account.run(...args)).stdout) as object), ...more };
  }

  const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000 + 60_000).toISOString();

  it('says of each key whether it counts now, and warns of those that end soon', async () => {
    const keys = await Promise.all([
      entry('ok', { notBefore: inDays(-3), notAfter: inDays(15) }),
      entry('soon', { notAfter: inDays(13) }),
      entry('old', { notAfter: inDays(-1) }),
      entry('new', { notBefore: inDays(1) }),
      entry('stolen', { revoked: true, notAfter: inDays(3) }),
    ]);
    const { code, stdout, stderr } = await check(keys, '--json');
    const statuses = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { status: string }).status);
    expect({ code, statuses }).toEqual({
      code: 0,
      statuses: ['valid', 'expires soon', 'expired', 'not valid yet', 'revoked'],
    });
    expect(stderr).toMatch(/^Warning: the key "soon" expires in 13 days, at \S+Z\. Add a new key[^\n]*\n$/);
    expect((await check(keys)).stdout).toMatch(/^stolen +operator +stolen .* revoked$/m);
  });

  it('names every problem of a bad keyring, with exit code 2', async () => {
    const result = await check([await entry('a', { role: 'boss' }), await entry('b', { public: 'ed25519:x' })]);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toMatch(/keys\.0\.role must be one of producer/);
    expect(result.stderr).toMatch(/keys\.1\.public .*must be "ed25519:"/);
    expect((await account.run('keys', 'check')).stderr).toMatch(/^payouts: PAYOUT_KEYS_FILE: is required/);
  });

  it.each([
    ['that differ by a dot', 'ann.lee', 'annlee', /keys\.1\.person looks like the person of keys\.0/],
    ['of which one has a letter of another alphabet', 'ann', '\u0430nn', /keys\.1\.person .*U\+0430/],
    ['in NFC and NFD', 'andr\u00e9', 'andre\u0301', /keys\.0\.person .*U\+00E9[^]*keys\.1\.person .*U\+0301/],
    ['of which one ends with a zero-width space', 'ann', 'ann\u200b', /keys\.1\.person .*U\+200B/],
  ])('refuses two people %s', async (_, person, other, problem) => {
    const result = await check([await entry('a', { person }), await entry('b', { person: other })]);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(problem) });
  });

  it('shows one person for two spellings of an id, and display names apart', async () => {
    const keys = [await entry('a', { person: 'Ann' }), await entry('b', { person: 'ann' })];
    await writeFile(keysFile, JSON.stringify({ version: 1, keys, people: { ann: 'Ann Lee' } }), { mode: 0o600 });
    const { stdout } = await account.run('keys', 'check', keysFile);
    expect(stdout).toMatch(/^a +operator +ann \(Ann Lee\) [^]*^b +operator +ann \(Ann Lee\) /m);
  });

  it('refuses a keyring that others can write', async () => {
    await check([]);
    await chmod(keysFile, 0o666);
    const { code, stderr } = await payouts(['keys', 'check'], { PAYOUT_KEYS_FILE: keysFile });
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^payouts: PAYOUT_KEYS_FILE: .* is not trusted: others than its owner can write .*chmod go-w/,
    );
  });
});

describe('signing', () => {
  it('of `payouts enqueue` is verified by `payouts keys verify`, and shown by `payouts get`', async () => {
    const env = await makeKeys();
    expect(await payouts(['enqueue', ...PAYOUT, '--requested-by', 'Ann'], env)).toMatchObject({ code: 0, stderr: '' });
    const verified = await payouts(['keys', 'verify', 'p-1'], env);
    expect(verified).toMatchObject({ code: 0, stderr: '' });
    expect(verified.stdout).toMatch(
      /^Payout p-1 is verified: signed by key "shop" of shop-a-1, requested by Ann, until /,
    );
    const shown = JSON.parse((await account.run('get', 'p-1', '--json')).stdout) as object;
    expect(shown).toMatchObject({ signedBy: 'shop', requestedBy: 'Ann', issuedAt: expect.stringMatching(/Z$/) });
    expect(shown).not.toHaveProperty('signed');
    const listed = JSON.parse((await account.run('list', '--state', 'queued', '--json')).stdout) as object;
    expect(listed).toEqual(shown);
    expect((await account.run('get', 'p-1')).stdout).toMatch(/signed by +shop\n/);
  });

  it('is found out where a field was altered: exit code 5', async () => {
    const env = await makeKeys();
    await payouts(['enqueue', ...PAYOUT], env);
    await account.ledger.connection.redis.hset(account.ledger.connection.keys.payout('p-1'), 'amount', '13');
    const { code, stdout, stderr } = await payouts(['keys', 'verify', 'p-1', '--json'], env);
    expect(code).toBe(5);
    expect(JSON.parse(stdout)).toMatchObject({ payoutId: 'p-1', verified: false, fault: 'bad_signature' });
    expect(stderr).toMatch(
      /^payouts: Payout p-1 is not verified\. The signature of key "shop" is not over this payout/,
    );
    await account.ledger.connection.redis.hset(account.ledger.connection.keys.payout('p-1'), 'metadata', '{');
    expect(await payouts(['keys', 'verify', 'p-1'], env)).toMatchObject({ code: 5, stdout: '' });
    expect(await payouts(['keys', 'verify', 'p-9'], env)).toMatchObject({ code: 3 });
    await account.enqueue('p-2');
    expect(await payouts(['keys', 'verify', 'p-2'], env)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('It is not signed'),
    });
  });

  it('of `payouts keys sign` needs no Redis, and is imported without the key', async () => {
    const env = await makeKeys();
    const later = { ...LINE, payoutId: 'p-2', reference: ' x ', notBefore: inHours(3), requestedBy: 'Ann' };
    const input = `${JSON.stringify(LINE)}\n${JSON.stringify(later)}\n`;
    const signed = await payouts(['keys', 'sign'], { ...env, REDIS_URL: 'redis://127.0.0.1:1' }, input);
    expect(signed).toMatchObject({ code: 0, stderr: '' });
    const file = join(dir, 'signed.jsonl');
    await writeFile(file, signed.stdout);
    expect(await payouts(['import', file, '--yes'])).toMatchObject({ code: 0 });
    expect(await payouts(['keys', 'verify', 'p-1'], env)).toMatchObject({ code: 0 });
    expect(await payouts(['keys', 'verify', 'p-2'], env)).toMatchObject({ code: 0 });
    expect(signed.stdout.split('\n')[0]).toMatch(
      /"amount":"12\.5".*"metadata":\{"1":2,"b":1\},"key":"shop","signature":"/,
    );
    const again = await payouts(['keys', 'sign', file], env);
    expect(again.code).toBe(0);
    expect(again.stdout).not.toBe(signed.stdout);
  });

  it('of `payouts keys sign` names every row with an error, and then writes nothing', async () => {
    const env = await makeKeys();
    const rows = [
      LINE,
      { ...LINE, amount: '13' },
      { ...LINE, payoutId: 'p-3', notBefore: inHours(200) },
      { ...LINE, key: 'shop' },
    ];
    const input = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const { code, stdout, stderr } = await payouts(['keys', 'sign'], env, input);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^line 2: payoutId: already used in line 1 with a different amount/m);
    expect(stderr).toMatch(/^line 3: notBefore: must be less than 7 days from now/m);
    expect(stderr).toMatch(/^line 4: signature: is missing/m);
    expect(stderr).toMatch(/^payouts: stdin: 3 of 4 rows have errors, nothing was signed; fix them$/m);
  });

  it('of `payouts import` takes a column requested_by', async () => {
    const env = await makeKeys();
    const file = join(dir, 'payouts.csv');
    await writeFile(file, 'payout_id,payment_id,amount,address_to,requested_by\np-1,6,12.50,TXYZ9,Ann\n');
    expect(await payouts(['import', file, '--yes'], env)).toMatchObject({ code: 0 });
    expect(await payouts(['keys', 'verify', 'p-1', '--json'], env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"requestedBy":"Ann"'),
    });
    await writeFile(file, `payout_id,payment_id,amount,address_to,not_before\np-2,6,1,TXYZ9,${inHours(200)}\n`);
    const late = await payouts(['import', file, '--dry-run'], env);
    expect(late).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^line 2: not_before: must be less than 7 days/),
    });
  });

  it('needs file and name of the key, and a file that only its owner reads', async () => {
    const { PAYOUT_SIGNING_KEY_FILE: file = '', PAYOUT_SIGNING_KEY_NAME: name = '' } = await makeKeys();
    const enqueue = async (env: Record<string, string>): Promise<string> => {
      const { code, stderr, stdout } = await payouts(['enqueue', ...PAYOUT], env);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      return stderr;
    };
    expect(await enqueue({ PAYOUT_SIGNING_KEY_FILE: file })).toMatch(
      /^payouts: PAYOUT_SIGNING_KEY_NAME: is required, because PAYOUT_SIGNING_KEY_FILE is set/,
    );
    expect(await enqueue({ PAYOUT_SIGNING_KEY_NAME: name })).toMatch(
      /^payouts: PAYOUT_SIGNING_KEY_FILE: is required, because PAYOUT_SIGNING_KEY_NAME is set/,
    );
    await chmod(file, 0o644);
    const open = await enqueue({ PAYOUT_SIGNING_KEY_FILE: file, PAYOUT_SIGNING_KEY_NAME: name });
    expect(open).toMatch(/^payouts: PAYOUT_SIGNING_KEY_FILE: .* is open to every user of this machine/);
    await chmod(file, 0o600);
    const secret = await secretOf();
    await writeFile(file, secret);
    const bad = await enqueue({ PAYOUT_SIGNING_KEY_FILE: file, PAYOUT_SIGNING_KEY_NAME: name });
    expect(bad).toMatch(/^payouts: PAYOUT_SIGNING_KEY_FILE: .* holds no private key/);
    expect(bad).not.toContain(secret.slice(0, 20));
  });

  it('takes the key of the account from the accounts file', async () => {
    const { PAYOUT_KEYS_FILE = '' } = await makeKeys();
    const accounts = join(dir, 'accounts.json');
    const own = {
      platformId: Number(account.env['GATEWAY_PLATFORM_ID']),
      baseUrl: 'https://gateway.example',
      secretKeyFile: 'x',
    };
    const env = { PAYOUT_ACCOUNTS_FILE: accounts, PAYOUT_KEYS_FILE };
    await writeFile(accounts, JSON.stringify([{ ...own, signingKeyFile: 'shop.pem' }]));
    const half = await payouts(['enqueue', ...PAYOUT], env);
    expect(half).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/signingKeyName: is required, because signingKeyFile is set/),
    });
    await writeFile(accounts, JSON.stringify([{ ...own, signingKeyFile: 'shop.pem', signingKeyName: 'shop' }]));
    expect(await payouts(['enqueue', ...PAYOUT], env)).toMatchObject({ code: 0 });
    expect(await payouts(['keys', 'verify', 'p-1'], env)).toMatchObject({ code: 0 });
  });
});

function inHours(hours: number): string {
  return new Date(Date.now() + hours * 3_600_000).toISOString();
}
