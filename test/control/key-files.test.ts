import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { chmodSync, chownSync, symlinkSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { NotVerifiedError, SignerError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { audienceOf } from '../../src/base/audience.js';
import { readTrustedFile } from '../../src/base/trusted-file.js';
import { checkAudience } from '../../src/control/keys/audience.js';
import { checkReceiptSigner } from '../../src/control/keys/check-receipt-signer.js';
import { findSigningKey } from '../../src/control/keys/find-signing-key.js';
import { parsePublicKey, readKeyringFile } from '../../src/control/keys/keyring.js';
import { openSigner, type SignerOptions } from '../../src/control/keys/open-signer.js';
import { formatPublicKey, readSigningKey } from '../../src/control/keys/signing-key.js';
import { recordingLogger } from '../gateway/support/test-client.js';
import { messageOf, useFolder } from './support/folder.js';
import { openTestKeys, type TestKeys } from './support/key-files.js';
import { keyEntry, type KeyEntry, keyringOf, testKey, testSigner } from './support/keys.js';
import { entryOf, iso, NOW } from './support/signed.js';

/** What a process trusts: a file that nobody else can write, a keyring, one environment. */

const folder = useFolder();
const FILE = 'keys.yaml';

describe('readKeyringFile', () => {
  const keyring = { version: 1, keys: [keyEntry(testKey(1))] };
  const [yaml, json] = [stringify(keyring), JSON.stringify(keyring)];
  const read = (text: string) => {
    folder.write(FILE, text);
    return readKeyringFile(folder.at(FILE), 'PAYOUT_KEYS_FILE').keys.map((key) => key.name);
  };

  it('reads YAML and JSON, and refuses what is no keyring, with setting and file', () => {
    for (const text of [yaml.replaceAll('\n', '\r\n'), `\uFEFF${json}`]) expect(read(text)).toEqual(['shop']);
    for (const [content, message] of [
      ['', /keyring must be "version: 1"/],
      [`${yaml}---\n${yaml}`, /is no YAML: /],
      [`version: 1\n${yaml}`, /is no YAML: Map keys must be unique/],
      [json.replace('producer', 'x'), /keys\.0\.role must be one of/],
    ] as const) {
      expect(() => read(content)).toThrow(message);
      expect(() => read(content)).toThrow(`PAYOUT_KEYS_FILE: ${folder.at(FILE)}`);
    }
  });

  it('shows nothing of a private key, or of another secret, that was named in its place', () => {
    const pem = testKey(1).export({ format: 'pem', type: 'pkcs8' }).toString();
    const secret = pem.split('\n')[1] ?? '';
    for (const content of [pem, `keys: "${pem}"`, secret]) {
      const message = messageOf(() => read(content));
      expect(message).toMatch(/holds a private key\. A keyring holds public keys only|keyring must be/);
      expect(message).not.toContain(secret.slice(0, 20));
    }
  });
});

describe('readTrustedFile', () => {
  const file = (name = FILE) => {
    folder.write(name, 'x');
    return folder.at(name);
  };

  it('accepts what only the owner can write, and refuses what the group or everyone can, also a folder above', () => {
    folder.make('a/b');
    const [path, below] = [file(), file('a/b/keys.yaml')];
    for (const mode of [0o600, 0o755, 0o620, 0o602]) {
      chmodSync(path, mode);
      const found = `can write ${path} (mode 0${mode.toString(8)}). Run \`chmod go-w ${path}\``;
      if ((mode & 0o022) === 0) expect(readTrustedFile(path)).toBe('x');
      else expect(() => readTrustedFile(path)).toThrow(`is not trusted: others than its owner ${found}`);
    }
    chmodSync(path, 0o600);
    // In a folder with the sticky bit only the owner can replace it.
    chmodSync(folder.at(), 0o1777);
    expect([path, below].map(readTrustedFile)).toEqual(['x', 'x']);
    for (const mode of [0o720, 0o702]) {
      chmodSync(folder.at(), mode);
      for (const each of [path, below]) expect(() => readTrustedFile(each)).toThrow(`can write ${folder.at()} `);
    }
  });

  it('follows a link only between folders that nobody else can write', () => {
    const [here, there] = [folder.make('here'), folder.make('there')];
    const link = folder.at('here', FILE);
    symlinkSync(file(`there/${FILE}`), link);
    expect(readTrustedFile(link)).toBe('x');
    for (const path of [here, there]) {
      chmodSync(path, 0o777);
      expect(() => readTrustedFile(link)).toThrow(`can write ${path} `);
      chmodSync(path, 0o755);
    }
  });

  it('checks each link of a chain: a folder in the middle may be writable too', () => {
    const [here, middle] = [folder.make('here'), folder.make('middle')];
    folder.make('there');
    const link = folder.at('here', FILE);
    symlinkSync(file(`there/${FILE}`), folder.at('middle', 'second'));
    symlinkSync(folder.at('middle', 'second'), link);
    expect(readTrustedFile(link)).toBe('x');
    chmodSync(middle, 0o777);
    expect(() => readTrustedFile(link)).toThrow(`can write ${middle} `);
    chmodSync(middle, 0o755);
    // A folder that is a link, to a name beside it.
    symlinkSync('here', folder.at('folder'));
    expect(readTrustedFile(folder.at('folder', FILE))).toBe('x');
    chmodSync(here, 0o777);
    expect(() => readTrustedFile(folder.at('folder', FILE))).toThrow(`can write ${here} `);
  });

  (process.getuid?.() === 0 ? it : it.skip)('refuses what belongs to someone else: a file, and a folder', () => {
    const [path, user] = [file(), 12345];
    chownSync(path, user, user);
    const advice = `is not trusted: ${path} belongs to user ${user}. Run \`chown root ${path}\``;
    expect(() => readTrustedFile(path)).toThrow(advice);
    chownSync(path, 0, 0);
    chownSync(folder.at(), user, user);
    for (const mode of [0o700, 0o1777]) {
      chmodSync(folder.at(), mode);
      expect(() => readTrustedFile(path)).toThrow(`${folder.at()} belongs to user ${user}`);
    }
  });
});

it('an audience is what the setting says, or that of the URL, however that is spelt', () => {
  const GATEWAY = 'https://gateway.example';
  const of = (given: { audience?: string; baseUrl?: string }) => audienceOf({ platformId: 4242, ...given });
  expect(of({ baseUrl: GATEWAY, audience: 'production' })).toBe('production');
  expect(of({ baseUrl: 'HTTPS://GATEWAY.Example:443//' })).toBe(`${GATEWAY}#4242`);
  for (const baseUrl of ['https://staging.gateway.example', `${GATEWAY}:8443`, `${GATEWAY}/v2`])
    expect(of({ baseUrl })).not.toBe(`${GATEWAY}#4242`);
  expect(() => of({})).toThrow(/^PAYOUT_AUDIENCE: is required, or GATEWAY_BASE_URL/);
  expect(() => of({ audience: 'x'.repeat(201) })).toThrow(/must be 1 to 200 printable characters/);
});

it('checkAudience takes this environment only', () => {
  const production = { audience: 'production' };
  expect(checkAudience('production', production)).toBeUndefined();
  const message = expect.stringContaining('it is signed for "staging", and this is "production"');
  expect(checkAudience('staging', production)).toEqual({ fault: 'wrong_audience', message });
  for (const other of ['Production', '', '\u001b[2Jproduction'])
    expect(checkAudience(other, production)?.message).toMatch(/^it is signed for ("Production"|another audience), and/);
});

const KEY = testKey(1);
const PEM = KEY.export({ format: 'pem', type: 'pkcs8' }).toString();
const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;

describe('readSigningKey', () => {
  const read = (content: string, mayBeOpen = false) => {
    folder.write('key.pem', content, 0o600);
    return formatPublicKey(readSigningKey(folder.at('key.pem'), mayBeOpen));
  };

  it('reads a PEM that not every user can read, unless that is allowed', () => {
    for (const text of [PEM.trim(), `# the shop's key\n${PEM.replaceAll('\n', '\r\n')}`])
      expect(read(text)).toBe(formatPublicKey(KEY));
    expect(() => readSigningKey(folder.at('none'), false)).toThrow(/cannot be read: ENOENT/);
    chmodSync(folder.at('key.pem'), 0o604);
    expect(() => read(PEM)).toThrow(/is open to every user of this machine/);
    expect(read(PEM, true)).toBe(formatPublicKey(KEY));
  });

  it('refuses another kind of key, an encrypted one and a public one, and shows nothing of it', () => {
    const encrypted = { format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'a passphrase' } as const;
    for (const [content, message] of [
      [rsa.export({ format: 'pem', type: 'pkcs1' }), 'holds a key of type rsa, not ed25519'],
      [KEY.export(encrypted), 'holds no private key'],
      [createPublicKey(KEY).export({ format: 'pem', type: 'spki' }), 'holds no private key'],
    ] as const) {
      let shown = '';
      try {
        read(content.toString());
      } catch (error) {
        shown = inspect(error);
      }
      expect(shown).toContain(message);
      expect(shown).not.toContain(content.toString().split('\n')[1]?.slice(0, 20));
    }
  });
});

describe('the signer of a worker', () => {
  const clock = { wallNow: () => NOW };
  const check = async (change: Partial<KeyEntry>, logger = silentLogger, signer = testSigner('worker-1', 1)) =>
    checkReceiptSigner(signer, keyringOf(entryOf(1, 'worker-1', 'worker', change)), clock, logger);

  it('is accepted where the keyring has its key as a worker, or there is no keyring', async () => {
    await check({});
    await checkReceiptSigner(testSigner('any', 1), undefined, clock, silentLogger);
  });

  it('is refused where the keyring has its key otherwise, or it has no name', async () => {
    for (const [change, message] of [
      [{ role: 'producer' }, 'must be a key with the role worker, not producer (got "worker-1")'],
      [{ revoked: true }, 'must not be revoked in the keyring'],
      [{ name: 'host-1' }, 'must be a key of the keyring (PAYOUT_KEYS_FILE), which has none of that name'],
      [{ public: formatPublicKey(testKey(2)) }, 'has another public key under it'],
    ] as const)
      await expect(check(change)).rejects.toThrow(message);
    await expect(check({}, silentLogger, testSigner('w !', 1))).rejects.toThrow(/receiptSigner\.name: must be/);
  });

  it('is only warned of outside its time, or if it does not sign now, because payments go on', async () => {
    const away = { ...testSigner('worker-1', 1), sign: async () => Promise.reject(new SignerError('it is away')) };
    for (const [change, warning, signer] of [
      [{ notAfter: iso(NOW - 1) }, /outside its time/],
      [{ notBefore: iso(NOW + 1) }, /outside its time/],
      [{ notBefore: iso(NOW), notAfter: iso(NOW) }, undefined],
      [{}, /cannot be signed now/, away],
    ] as const) {
      const logger = recordingLogger();
      await check(change, logger, signer);
      const told = logger.lines
        .map(({ message }) => message)
        .filter((message) => message !== 'final states are signed');
      expect(told).toEqual(warning === undefined ? [] : [expect.stringMatching(warning)]);
    }
  });
});

const OLGA = entryOf(1, 'olga', 'operator');
const find = (entry: Partial<KeyEntry>, name?: string) =>
  findSigningKey(keyringOf({ ...OLGA, ...entry }), parsePublicKey(OLGA.public), { role: 'operator', name, now: NOW });

it('the key with which an operator is about to sign is found by itself, in the first and the last ms of its time, and refused where it would not count', () => {
  expect(find({ notBefore: iso(NOW), notAfter: iso(NOW) })).toMatchObject({ name: 'olga', person: 'olga' });
  for (const [entry, message] of [
    [{ public: entryOf(2, 'x', 'operator').public }, /has no such key.*role operator \(olga\)/],
    [{ role: 'approver' }, /"olga" has the role approver.*role operator \(the keyring has none\)/],
    [{ revoked: true }, /"olga" is revoked/],
    [{ notBefore: iso(NOW + 1) }, /before 2026-11-21 20:00:00 UTC/],
    [{ notAfter: iso(NOW - 1) }, /after 2026-11-21 19:59:59 UTC/],
    [{ name: 'bob' }, /names this key "bob", not "olga"/],
  ] as const) {
    expect(() => find(entry, 'olga')).toThrow(NotVerifiedError);
    expect(() => find(entry, 'olga')).toThrow(message);
  }
});

describe('the key of an operator', () => {
  const { PATH = '' } = process.env;
  let keys: TestKeys;
  let sshKeyFile: string;
  let entry: KeyEntry;

  beforeEach(async () => {
    keys = await openTestKeys();
    const key = await keys.makeSshKey('ann key; $(touch x)');
    sshKeyFile = key.file;
    entry = { name: 'ann-ssh', role: 'operator', person: 'Ann', public: key.public };
  });
  afterEach(async () => keys.close());

  const openSsh = (path = PATH, role: SignerOptions['role'] = 'operator') =>
    openSigner(`ssh:${sshKeyFile}`, { environment: { PATH: path }, keyring: keyringOf(entry), role });

  // That OpenSSH signs, or has not the private key: test/cli/commands/signed-decisions.test.ts.
  it('of OpenSSH needs ssh-keygen, and does not take for a signature what another program prints', async () => {
    expect(openSsh()).toMatchObject({ name: 'ann-ssh', person: 'ann', isInteractive: true });
    expect(() => openSsh(PATH, 'producer')).toThrow(/^signer: is ssh:, .* operators and approvers only/);
    const noProgram = / needs ssh-keygen of OpenSSH .* not in PATH/;
    await expect(openSsh(keys.dir).sign('text')).rejects.toThrow(noProgram);
    await writeFile(join(keys.dir, 'ssh-keygen'), '#!/bin/sh\necho signed\n', { mode: 0o700 });
    const signing = openSsh(`${keys.dir}:${PATH}`).sign('text');
    await expect(signing).rejects.toThrow(/is no signature of the key "ann-ssh"/);
  });

  it('has a name, and only its owner reads it', async () => {
    const { file } = await keys.makeKey('ann');
    const name = 'ann';
    for (const [from, options, message] of [
      [file, {}, /^name: is missing/],
      ['', { name }, /^signer: must be a path/],
      [`ssh:${file}`, { name, role: 'operator' }, /holds no public key of OpenSSH/],
    ] as const)
      expect(() => openSigner(from, options)).toThrow(message);
    await chmod(file, 0o644);
    expect(() => openSigner(file, { name })).toThrow(/is open to every user of this machine/);
    const opened = openSigner(`file:${file}`, { name, allowReadableSecrets: true });
    expect(opened).toMatchObject({ name: 'ann', isInteractive: false });
  });
});
