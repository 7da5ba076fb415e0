import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { readKeyringFile } from '../../../src/control/keys/keyring.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { textWith, useCli } from '../support/cli-rig.js';

const cli = useCli();
const REDIS_OFF = 'redis://127.0.0.1:1';
const SIGNING = ['PAYOUT_SIGNER', 'PAYOUT_SIGNER_NAME'] as const;
const PAYOUT = ['--payout-id', 'p-1', '--payment-id', '6', '--amount', '12.50', '--address-to', 'TXYZ9'];
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000 + 300_000).toISOString();

let keyFile: string;
let keysFile: string;
/** Of `payouts keys init`. */
let dir: string;
let journalDir: string;
beforeEach(() => {
  const inDir = (name: string) => join(cli.dir, name);
  [keyFile, keysFile, dir, journalDir] = [inDir('shop.pem'), inDir('keys.yaml'), inDir('keys'), inDir('journal')];
  cli.env['SEND_JOURNAL_DIR'] = journalDir;
});

const generate = (name = 'shop', role = 'producer', person = 'Shop: "A" #1') => [
  ...['keys', 'generate', name, '--role', role, '--person', person, '--out', keyFile],
];

/** A key, and the keyring that has it, as who signs and verifies has them in the environment. */
async function makeKeys() {
  await cli.file('keys.yaml', `version: 1\nkeys:\n${await cli.ok(...generate())}`);
  const signing = { PAYOUT_SIGNER: keyFile, PAYOUT_SIGNER_NAME: 'shop' };
  Object.assign(cli.env, { ...signing, PAYOUT_KEYS_FILE: keysFile });
}

/** A line of the private key itself. */
const secret = async () => (await readFile(keyFile, 'utf8')).split('\n')[1] ?? '';

it('payouts keys generate writes a private key that only its owner reads, prints its entry', async () => {
  const stdout = await cli.ok(...generate());
  expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
  expect(stdout).toMatch(/^ {2}- \{ name: "shop", role: "producer", person: "shop-a-1", public: "ed25519:/);
  const before = await secret();
  expect(before).toMatch(/^[A-Za-z0-9+/=]{60,}$/);
  expect(stdout).not.toContain(before);
  await cli.file('keys.yaml', `version: 1\nkeys:\n${stdout}`);
  const entry = { name: 'shop', role: 'producer', person: 'shop-a-1', status: 'valid' };
  expect(await cli.json('keys', 'check', keysFile)).toEqual(entry);
  await cli.refused(2, /^payouts: --out: exists already, and a key is never overwritten/, ...generate(), '--json');
  expect(await secret()).toBe(before);
  keyFile += '-2';
  const wrong = /^payouts: name: must be 1 to 32 of .*"-"\)\npayouts: --person: must not begin or end with spaces/;
  await cli.refused(2, wrong, ...generate('-', 'producer', ' a'));
  expect(existsSync(keyFile)).toBe(false);
});

it('payouts keys check says of each key whether it counts now', async () => {
  const entry = async (name: string, more: object): Promise<object> => {
    keyFile = join(cli.dir, `${name}.pem`);
    return { ...(await cli.json<object>(...generate(name, 'operator', name))), ...more };
  };
  const keys = [
    await entry('ok', { notBefore: inDays(-3), notAfter: inDays(15) }),
    await entry('soon', { notAfter: inDays(13) }),
    await entry('old', { notAfter: inDays(-1) }),
    await entry('new', { notBefore: inDays(1) }),
    await entry('stolen', { revoked: true, notAfter: inDays(3) }),
  ];
  await cli.file('keys.yaml', JSON.stringify({ version: 1, keys, people: { ok: 'Ok Lee' } }));
  const statuses = (await cli.lines('keys', 'check', keysFile)).map(({ status }) => status);
  expect(statuses).toEqual(['valid', 'expires soon', 'expired', 'not valid yet', 'revoked']);
  expect(await cli.run('keys', 'check', keysFile)).toMatchObject({
    ...{ code: 0, stdout: textWith(/^ok +operator +ok \(Ok Lee\) [^]*^stolen +operator +stolen .* revoked$/m) },
    stderr: textWith(/^Warning: the key "soon" expires in 13 days, at \S+Z\. Add a new key[^\n]*\n$/),
  });
});

describe('signing', () => {
  beforeEach(makeKeys);

  it('of `payouts enqueue` is verified by `keys verify`, shown by `get`', async () => {
    await cli.ok('enqueue', ...PAYOUT, '--requested-by', 'Ann');
    expect(await cli.ok('keys', 'verify', 'p-1')).toMatch(
      /^Payout p-1 is verified: signed by key "shop" of shop-a-1, requested by Ann, until /,
    );
    const shown = await cli.json('get', 'p-1');
    expect(shown).toMatchObject({ signedBy: 'shop', requestedBy: 'Ann', issuedAt: textWith(/Z$/) });
    expect(shown).not.toHaveProperty('signed');
    expect(await cli.ok('get', 'p-1')).toMatch(/signed by +shop\n/);
    await cli.alter('p-1', { amount: '13' });
    const { code, stdout, stderr } = await cli.run('keys', 'verify', 'p-1', '--json');
    expect([code, stderr]).toEqual([
      5,
      textWith(/^payouts: Payout p-1 is not verified\. The signature of key "shop" is/),
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ payoutId: 'p-1', verified: false, fault: 'bad_signature' });
    await cli.alter('p-1', { metadata: '{' });
    await cli.refused(5, 'p-1', 'keys', 'verify', 'p-1');
    await cli.refused(3, 'p-9', 'keys', 'verify', 'p-9');
    cli.unset(...SIGNING);
    await cli.enqueue('p-2');
    await cli.refused(5, 'It is not signed', 'keys', 'verify', 'p-2');
  });

  it('of `payouts keys sign` needs no Redis, and is imported without the key', async () => {
    const line = { payoutId: 'p-1', paymentId: 6, amount: '12.50', addressTo: 'TXYZ9', metadata: { b: 1, 1: 2 } };
    const later = { ...line, payoutId: 'p-2', reference: ' x ', notBefore: inDays(1), requestedBy: 'Ann' };
    const input = `${JSON.stringify(line)}\n${JSON.stringify(later)}\n`;
    const env = { ...cli.env, REDIS_URL: REDIS_OFF };
    const { code, stdout } = await cli.start(['keys', 'sign'], { input, env }).result;
    const signed = textWith(/^.*"amount":"12\.5".*"metadata":\{"1":2,"b":1\},"key":"shop","signature":"/);
    expect([code, stdout]).toEqual([0, signed]);
    const file = await cli.file('signed.jsonl', ...stdout.trim().split('\n'));
    expect(await cli.ok('keys', 'sign', file)).not.toBe(stdout);
    cli.unset(...SIGNING);
    await cli.ok('import', file, '--yes');
    for (const payoutId of ['p-1', 'p-2']) await cli.ok('keys', 'verify', payoutId);
  });

  it('needs file and name of the key', async () => {
    const enqueue = ['enqueue', ...PAYOUT];
    for (const [one, other] of [SIGNING, SIGNING.toReversed()] as [string, string][]) {
      const { [one]: value = '' } = cli.env;
      cli.unset(one);
      await cli.refused(2, `payouts: ${one}: is required, because ${other} is set`, ...enqueue);
      cli.env[one] = value;
    }
    await chmod(keyFile, 0o644);
    await cli.refused(2, /^payouts: PAYOUT_SIGNER: .* is open to every user of this machine/, ...enqueue);
  });

  it('takes the key of the account from the accounts file', async () => {
    const own = { platformId: cli.platformId, baseUrl: 'https://gateway.example', secretKeyFile: 'x' };
    const write = async (more: object) =>
      cli.file('accounts.json', JSON.stringify([{ ...own, signer: 'shop.pem', ...more }]));
    cli.unset(...SIGNING, 'GATEWAY_PLATFORM_ID');
    cli.env['PAYOUT_ACCOUNTS_FILE'] = await write({});
    await cli.refused(2, /signerName: is required, because signer is set/, 'enqueue', ...PAYOUT);
    await write({ signerName: 'shop' });
    await cli.ok('enqueue', ...PAYOUT);
    await cli.ok('keys', 'verify', 'p-1');
  });
});

const FILES = ['keys.yaml', 'operator.pem', 'policy.yaml', 'producer.pem', 'worker.pem'];

interface Made extends Record<'keysFile' | 'policyFile', string> {
  readonly environment: Record<'producer' | 'worker' | 'operator', object>;
  readonly journal: object;
}

const init = (...args: string[]) => ['keys', 'init', dir, ...args];
const make = async (...args: string[]): Promise<Made> => cli.json<Made>(...init(...args));

it('payouts keys init makes files that only their owner reads', async () => {
  const { keysFile: made, policyFile, environment } = await make('--operator', 'Ann Lee');
  const audience = { PAYOUT_AUDIENCE: cli.env['PAYOUT_AUDIENCE'] };
  expect(environment).toMatchObject({ producer: audience, worker: audience, operator: audience });
  expect((await readdir(dir)).sort()).toEqual(FILES);
  const modes = { '': 0o700, 'operator.pem': 0o600, 'producer.pem': 0o600, 'worker.pem': 0o600 };
  for (const [name, mode] of Object.entries(modes)) expect((await stat(join(dir, name))).mode & 0o777).toBe(mode);
  const keys = readKeyringFile(made).keys.map(({ name, role, person }) => `${name} ${role} ${person}`);
  expect(keys).toEqual(['shop producer shop', 'ann-lee operator ann-lee', 'worker-1 worker worker-1']);
  expect(JSON.stringify(environment.worker)).not.toMatch(/SIGNING_KEY|producer\.pem|operator\.pem/);
  cli.env['PAYOUT_KEYS_FILE'] = made;
  await cli.ok('policy', 'check', policyFile);
  await cli.refused(3, 'p-1', 'retry', 'p-1', '--reason', 'none', '--key', join(dir, 'operator.pem'));
  const read = async () => Promise.all(FILES.map(async (name) => readFile(join(dir, name), 'utf8')));
  const before = await read();
  const there = /^payouts: dir: has producer\.pem, .*keys\.yaml already, and nothing is overwritten/;
  await cli.refused(2, there, ...init());
  expect(await read()).toEqual(before);
});

it('payouts keys init prints lines that a shell reads, for any folder', async () => {
  dir = join(cli.dir, `it's a "$HOME" folder`);
  cli.env['PAYOUT_AUDIENCE'] = '';
  const { stdout, stderr } = await cli.run(...init());
  const script = `set -a\n${stdout}\nexec "$0" -p 'JSON.stringify(process.env)'`;
  const read = spawnSync('sh', ['-c', script, process.execPath], { env: {}, encoding: 'utf8' }).stdout;
  expect(JSON.parse(read)).toMatchObject({
    ...{ PAYOUT_KEYS_FILE: join(dir, 'keys.yaml'), PAYOUT_POLICY_FILE: join(dir, 'policy.yaml') },
    ...{ PAYOUT_SIGNER: join(dir, 'producer.pem'), PAYOUT_WORKER_SIGNER: join(dir, 'worker.pem') },
  });
  expect(stdout).toMatch(/^# PAYOUT_AUDIENCE is missing here: `payouts doctor`/m);
  expect(stderr).toMatch(/^The send journal in .* counts as complete/);
  dir = join(cli.dir, 'other');
  cli.env['GATEWAY_BASE_URL'] = 'https://gateway.example';
  const audience = { PAYOUT_AUDIENCE: `https://gateway.example#${cli.platformId}` };
  const { producer, worker, operator } = (await make()).environment;
  expect([producer, operator]).toMatchObject([audience, audience]);
  expect(worker).not.toHaveProperty('PAYOUT_AUDIENCE');
});

it('payouts keys init leaves nothing when the disk is full halfway, and works after that', async () => {
  // The keys have fewer than 512 bytes, the policy more.
  const limited = ['-c', 'ulimit -f 1; exec "$@"', '-', process.execPath, findBuiltProgram(), ...init()];
  const { status, stderr } = spawnSync('dash', limited, { env: { ...process.env, ...cli.env }, encoding: 'utf8' });
  const full = textWith(/^payouts: dir: cannot be written: EFBIG.*policy\.yaml"\)\n$/);
  expect({ status, stderr }).toEqual({ status: 2, stderr: full });
  expect([await readdir(dir), existsSync(journalDir)]).toEqual([[], false]);
  await make();
});

it.each([
  ['the account is no number', [], { GATEWAY_PLATFORM_ID: '42x' }, /^payouts: GATEWAY_PLATFORM_ID: must be/],
  ['the operator looks like the producer', ['--operator', 'sh0p'], {}, /^payouts: --operator: looks like the key sh/],
  ['the operator is no id', ['--operator', '\u0430nn'], {}, /^payouts: --operator: must be an id .*U\+0430/],
])('payouts keys init makes nothing if %s', async (_, args, changes, words) => {
  Object.assign(cli.env, changes);
  await cli.refused(2, words, ...init(...args));
  expect(await readdir(cli.dir)).toEqual([]);
});

it('payouts keys init puts no key under a folder that others can write', async () => {
  await chmod(cli.dir, 0o777);
  dir = join(cli.dir, 'a', 'b');
  await cli.refused(2, /^payouts: dir: is not trusted: others than its owner can write .*chmod go-w/, ...init());
  expect(await readdir(cli.dir)).toEqual([]);
});

const bornAt = async () => {
  const journal = await FileSendJournal.open({ dir: journalDir, platformId: cli.platformId });
  await journal.close();
  return journal.bornAt;
};
const expectNotAdopted = async (reason: RegExp | string): Promise<void> => {
  const command = `payouts audit adopt-journal --account ${cli.platformId} --reason 'first start with keys'`;
  expect((await make()).journal).toEqual({ dir: journalDir, adopted: false, reason: textWith(reason), command });
  expect((await readdir(dir)).sort()).toEqual(FILES);
};

it('payouts keys init adopts the journal of a new account, also with payouts that wait', async () => {
  await cli.enqueue('p-1');
  // It named the new keyring before that was made.
  cli.env['PAYOUT_KEYS_FILE'] = join(dir, 'keys.yaml');
  expect((await make()).journal).toEqual({ dir: journalDir, adopted: true });
  expect(await bornAt()).toBe(0);
});

it.each<[string, () => Promise<unknown>, RegExp]>([
  ['a process had the right to send', async () => cli.redis.hset(cli.keys.sender, 'epoch', 1), /right to send/],
  ['a payout was sent', async () => cli.make('in_progress', 'p-1'), /is in_progress/],
  [
    'there was a keyring, whose signatures may be of payouts that were sent',
    async () => (cli.env['PAYOUT_KEYS_FILE'] = await cli.file('keys.yaml', 'version: 1', 'keys: []')),
    /PAYOUT_KEYS_FILE/,
  ],
  ['Redis is unavailable', async () => Promise.resolve((cli.env['REDIS_URL'] = REDIS_OFF)), /Redis unavailable/],
])(
  'payouts keys init adopts no journal if %s, and prints the command; the files are made',
  async (_, prepare, reason) => {
    await prepare();
    await expectNotAdopted(reason);
    expect(existsSync(journalDir)).toBe(false);
  },
);

it('payouts keys init adopts none if this host has a journal of the account, or with --no-adopt', async () => {
  const before = await bornAt();
  expect(before).toBeGreaterThan(0);
  await expectNotAdopted('already');
  expect(await bornAt()).toBe(before);
  dir = join(cli.dir, 'again');
  const said = /^Warning: .* is not adopted: you gave --no-adopt\.\n[^]*\n {2}payouts audit adopt-journal /;
  expect(await cli.run(...init('--no-adopt'))).toMatchObject({ stderr: textWith(said) });
});

(process.getuid?.() === 0 ? it : it.skip)(
  'payouts keys init leaves root out of a journal folder that is a worker’s',
  async () => {
    await mkdir(journalDir);
    await chown(journalDir, 65534, 65534);
    await expectNotAdopted('you are root');
    expect(await readdir(journalDir)).toEqual([]);
  },
);
