import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { chmod, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { NotVerifiedError } from '../../../src/base/errors.js';
import { silentLogger } from '../../../src/base/logger.js';
import { findSigningKey } from '../../../src/control/approvals/act-signer.js';
import { parsePublicKey } from '../../../src/control/keys/keyring.js';
import { openActSigner, type ActSignerOptions } from '../../../src/control/keys/open-act-signer.js';
import { openReceiptKey } from '../../../src/control/keys/receipt-key.js';
import { formatPublicKey, readSigningKey } from '../../../src/control/keys/signing-key.js';
import { recordingLogger } from '../../gateway/support/test-client.js';
import { useFolder } from '../support/folder.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { keyringOf, testKey, TEST_AUDIENCE, type KeyEntry } from '../support/keys.js';
import { entryOf, iso, NOW } from '../support/signed.js';

const KEY = testKey(1);
const PEM = KEY.export({ format: 'pem', type: 'pkcs8' }).toString();
const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;

describe('readSigningKey', () => {
  const folder = useFolder();
  const read = (content: string, mayBeOpen = false): string => {
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

describe('the key of a worker', () => {
  const clock = { wallNow: () => NOW };
  const openFree = (key: Parameters<typeof openReceiptKey>[0]): string | undefined =>
    openReceiptKey(key, undefined, clock, silentLogger)?.name;
  function open(change: Partial<KeyEntry>, logger = silentLogger): string | undefined {
    const keyring = keyringOf(entryOf(1, 'worker-1', 'worker', change));
    return openReceiptKey({ name: 'worker-1', privateKey: PEM }, keyring, clock, logger)?.name;
  }

  it('is opened where the keyring has it as a worker, or there is no keyring', () => {
    const opened = [open({}), openFree({ name: 'any', privateKey: KEY }), openFree(undefined)];
    expect(opened).toEqual(['worker-1', 'any', undefined]);
  });

  it('is refused where the keyring has it otherwise, or where it is none', () => {
    for (const [change, message] of [
      [{ role: 'producer' }, 'must be a key with the role worker, not producer (got "worker-1")'],
      [{ revoked: true }, 'must not be revoked in the keyring'],
      [{ name: 'host-1' }, 'must be a key of the keyring (PAYOUT_KEYS_FILE), which has none of that name'],
      [{ public: formatPublicKey(testKey(2)) }, 'has another public key under it'],
    ] as const)
      expect(() => open(change)).toThrow(message);
    // What is no key at all: test/producer/signed-payouts.test.ts.
    expect(() => openFree({ name: 'w !', privateKey: PEM })).toThrow(/receiptKey\.name: must be/);
    expect(() => openFree({ name: 'w', privateKey: createPublicKey(KEY) })).toThrow(/a public key, not a private one/);
  });

  it('outside its time is a warning, because payments go on', () => {
    for (const [change, warnings] of [
      [{ notAfter: iso(NOW - 1) }, 1],
      [{ notBefore: iso(NOW + 1) }, 1],
      [{ notBefore: iso(NOW), notAfter: iso(NOW) }, 0],
    ] as const) {
      const logger = recordingLogger();
      expect(open(change, logger)).toBe('worker-1');
      expect(logger.lines.filter(({ message }) => message.includes('outside its time'))).toHaveLength(warnings);
    }
  });
});

describe('the key with which an operator or an approver is about to sign', () => {
  const OLGA = entryOf(1, 'olga', 'operator');
  const find = (entry: Partial<KeyEntry>, name?: string) =>
    findSigningKey(keyringOf({ ...OLGA, ...entry }), parsePublicKey(OLGA.public), { role: 'operator', name, now: NOW });

  it('is found by itself, in the first and the last ms of its time, and refused where it would not count', () => {
    expect(find({ notBefore: iso(NOW), notAfter: iso(NOW) })).toMatchObject({ name: 'olga', person: 'olga' });
    for (const [entry, message] of [
      [{ public: entryOf(2, 'x', 'operator').public }, /has no such key.*role operator \(olga\)/],
      [{ role: 'approver' }, /"olga" has the role approver.*role operator \(the keyring has none\)/],
      [{ revoked: true }, /"olga" is revoked/],
      [{ notBefore: iso(NOW + 1) }, /before 2026-11-21T20:00:00\.001Z/],
      [{ notAfter: iso(NOW - 1) }, /after 2026-11-21T19:59:59\.999Z/],
      [{ name: 'bob' }, /names this key "bob", not "olga"/],
    ] as const) {
      expect(() => find(entry, 'olga')).toThrow(NotVerifiedError);
      expect(() => find(entry, 'olga')).toThrow(message);
    }
  });
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

  const open = (options: Omit<ActSignerOptions, 'audience'>) => openActSigner({ audience: TEST_AUDIENCE, ...options });
  const openSsh = (path = PATH, onMessage?: (text: string) => void) =>
    open({ sshKeyFile, environment: { PATH: path }, keyring: keyringOf(entry), onMessage });

  it('of OpenSSH signs with the private key beside the public one, and says what is missing', async () => {
    expect(openSsh()).toMatchObject({ name: 'ann-ssh', person: 'ann', isInteractive: true });
    expect(await openSsh().sign('text')).toContain('BEGIN SSH SIGNATURE');
    await rename(sshKeyFile.replace(/\.pub$/, ''), join(keys.dir, 'hidden'));
    const told: string[] = [];
    const message = /^sshKeyFile: was not used by ssh-keygen: No private key found.*ssh-add -l/;
    await expect(openSsh(PATH, (text) => void told.push(text)).sign('text')).rejects.toThrow(message);
    expect(told.join('')).toContain('No private key found');
    const noProgram = /^sshKeyFile: needs ssh-keygen of OpenSSH .* not in PATH/;
    await expect(openSsh(keys.dir).sign('text')).rejects.toThrow(noProgram);
  });

  it('of OpenSSH does not take for a signature what another program prints', async () => {
    await writeFile(join(keys.dir, 'ssh-keygen'), '#!/bin/sh\necho signed\n', { mode: 0o700 });
    const signing = openSsh(`${keys.dir}:${PATH}`).sign('text');
    await expect(signing).rejects.toThrow(/a signature that does not count for the key "ann-ssh"/);
  });

  it('is one of both, has a name, and only its owner reads it', async () => {
    const { file: keyFile } = await keys.makeKey('ann');
    const keyName = 'ann';
    expect(() => open({ keyFile })).toThrow(/^keyName: is missing/);
    expect(() => open({ keyFile, keyName: 'no spaces' })).toThrow(/^keyName: must be 1 to 32/);
    expect(open({ keyFile, keyName })).toMatchObject({ name: 'ann', isInteractive: false });
    expect(() => open({ keyName })).toThrow(/^keyFile: is missing \(or give sshKeyFile\)/);
    expect(() => open({ keyFile, sshKeyFile, keyName })).toThrow(/^sshKeyFile: is given, and/);
    expect(() => open({ sshKeyFile: keyFile, keyName })).toThrow(/holds no public key of OpenSSH/);
    expect(() => open({ sshKeyFile: join(keys.dir, 'none.pub') })).toThrow(/cannot be read: ENOENT/);
    await chmod(keyFile, 0o644);
    expect(() => open({ keyFile, keyName })).toThrow(/is open to every user of this machine/);
    expect(open({ keyFile, keyName, allowReadableSecrets: true })).toMatchObject({ name: 'ann' });
  });
});
