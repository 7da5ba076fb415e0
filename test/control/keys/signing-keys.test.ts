import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { chmod, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { InvalidConfigError, InvalidInputError, NotVerifiedError } from '../../../src/base/errors.js';
import { silentLogger } from '../../../src/base/logger.js';
import { signAct, type ActContent, type ActSigner } from '../../../src/control/approvals/act-signer.js';
import { parseAct, verifyAct } from '../../../src/control/approvals/act.js';
import { bytesOf } from '../../../src/control/keys/ed25519.js';
import { openActSigner, type ActSignerOptions } from '../../../src/control/keys/open-act-signer.js';
import { openReceiptKey } from '../../../src/control/keys/receipt-key.js';
import { formatPublicKey, readSigningKey } from '../../../src/control/keys/signing-key.js';
import { recordingLogger } from '../../gateway/support/test-client.js';
import { useFolder } from '../support/folder.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE, type KeyEntry } from '../support/keys.js';
import { startSshAgent } from '../support/ssh-agent.js';

const KEY = testKey(1);
const PEM = KEY.export({ format: 'pem', type: 'pkcs8' }).toString();
const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;

describe('readSigningKey', () => {
  const folder = useFolder();
  const read = (content: string, mode = 0o600, mayBeOpen = false): string => {
    folder.write('key.pem', content, mode);
    return formatPublicKey(readSigningKey(folder.at('key.pem'), mayBeOpen));
  };

  it.each([
    ['as keygen writes it', PEM],
    ['without the last line break', PEM.trim()],
    ['CRLF', PEM.replaceAll('\n', '\r\n')],
    ['a comment before', `# the shop's key\n${PEM}`],
  ])('reads a PEM: %s', (_, content) => {
    expect(read(content)).toBe(`ed25519:${bytesOf(createPublicKey(KEY)).toString('base64')}`);
  });

  it.each([0o604, 0o644, 0o606])('refuses one that every user can read (%#o), where that is not allowed', (mode) => {
    expect(() => read(PEM, mode)).toThrow(/is open to every user of this machine/);
    expect(read(PEM, mode, true)).toBe(formatPublicKey(KEY));
  });

  const x25519 = generateKeyPairSync('x25519').privateKey;
  const encrypted = KEY.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'a passphrase' });
  const [NONE, RSA] = ['holds no private key', 'holds a key of type rsa, not ed25519'];
  it.each([
    ['RSA', rsa.export({ format: 'pem', type: 'pkcs8' }), RSA],
    ['RSA, PKCS#1', rsa.export({ format: 'pem', type: 'pkcs1' }), RSA],
    ['X25519', x25519.export({ format: 'pem', type: 'pkcs8' }), 'holds a key of type x25519, not ed25519'],
    ['encrypted', encrypted, NONE],
    ['a public key', createPublicKey(KEY).export({ format: 'pem', type: 'spki' }), NONE],
    ['base64 alone', PEM.split('\n')[1], NONE],
    ['cut', PEM.slice(0, 60), NONE],
    ['empty', '', NONE],
    ['two lines of a keyring', 'version: 1\nkeys: []\n', NONE],
  ])('refuses %s and shows nothing of it', (_, content, message) => {
    const text = String(content);
    let shown = '';
    try {
      read(text);
    } catch (error) {
      shown = inspect(error);
    }
    expect(shown).toContain(message);
    for (const line of text.split('\n')) if (line.length > 20) expect(shown).not.toContain(line.slice(0, 20));
  });

  it('says when there is no file', () => {
    expect(() => readSigningKey(folder.at('none'), false)).toThrow(/cannot be read: ENOENT/);
    expect(() => readSigningKey(folder.at(), true)).toThrow(/cannot be read: EISDIR/);
  });
});

describe('the key of a worker', () => {
  const clock = { wallNow: () => Date.parse('2030-01-31T09:00:00Z') };
  const openFree = (key: Parameters<typeof openReceiptKey>[0]): string | undefined =>
    openReceiptKey(key, undefined, clock, silentLogger)?.name;
  function open(change: Partial<KeyEntry>, logger = silentLogger): string | undefined {
    const keyring = keyringOf(keyEntry(KEY, { name: 'worker-1', role: 'worker', person: 'Host 1', ...change }));
    return openReceiptKey({ name: 'worker-1', privateKey: PEM }, keyring, clock, logger)?.name;
  }

  it('is opened where the keyring has it as a worker, or there is no keyring', () => {
    const opened = [open({}), openFree({ name: 'any', privateKey: KEY }), openFree(undefined)];
    expect(opened).toEqual(['worker-1', 'any', undefined]);
  });

  const NO_NAME = 'must be a key of the keyring (PAYOUT_KEYS_FILE), which has none of that name';
  it.each<[string, Partial<KeyEntry>, string]>([
    ['another role', { role: 'producer' }, 'must be a key with the role worker, not producer (got "worker-1")'],
    ['a revocation', { revoked: true }, 'must not be revoked in the keyring'],
    ['another name', { name: 'host-1' }, NO_NAME],
    ['another key', { public: formatPublicKey(testKey(2)) }, 'has another public key under it'],
  ])('is refused where the keyring has %s', (_, change, message) => {
    expect(() => open(change)).toThrow(InvalidConfigError);
    expect(() => open(change)).toThrow('PAYOUT_WORKER_KEY_NAME');
    expect(() => open(change)).toThrow(message);
  });

  it('is refused where it is no key, without showing it', () => {
    const SHOWN = new RegExp(PEM.split('\n')[1]?.slice(10) ?? '');
    const broken = { name: 'w', privateKey: PEM.replace('MC4C', 'AAAA') };
    expect(() => openFree(broken)).toThrow(InvalidConfigError);
    expect(() => openFree(broken)).toThrow(/receiptKey\.privateKey: holds no private key/);
    expect(() => openFree(broken)).not.toThrow(SHOWN);
    expect(() => openFree({ name: 'w', privateKey: rsa })).toThrow(/type rsa, not ed25519/);
    expect(() => openFree({ name: 'w !', privateKey: PEM })).toThrow(/receiptKey\.name: must be/);
  });

  it.each([
    [{ notAfter: '2030-01-30T00:00:00Z' }, 1],
    [{ notBefore: '2030-02-01T00:00:00Z' }, 1],
    [{ notBefore: '2030-01-01T00:00:00Z', notAfter: '2030-02-01T00:00:00Z' }, 0],
  ])('outside its time is a warning, because payments go on: %o', (change, warnings) => {
    const logger = recordingLogger();
    expect(open(change, logger)).toBe('worker-1');
    expect(logger.lines.filter(({ message }) => message.includes('outside its time'))).toHaveLength(warnings);
  });
});

describe('the key of an operator', () => {
  const RESUME: ActContent = {
    act: 'resume',
    payoutId: '',
    intent: '',
    attempt: undefined,
    reason: 'Grüße, ticket 812',
  };
  const { PATH = '' } = process.env;
  let keys: TestKeys;
  let sshKeyFile: string;
  let entry: KeyEntry;
  let environment: Record<string, string>;

  beforeEach(async () => {
    keys = await openTestKeys();
    const key = await keys.makeSshKey('ann key; $(touch x)');
    sshKeyFile = key.file;
    entry = { name: 'ann-ssh', role: 'operator', person: 'Ann', public: key.public };
    environment = { PATH };
  });
  afterEach(async () => keys.close());

  const open = (options: Omit<ActSignerOptions, 'audience'>): ActSigner =>
    openActSigner({ audience: TEST_AUDIENCE, ...options });
  const openSsh = (options: Partial<ActSignerOptions> = {}): ActSigner =>
    open({ sshKeyFile, environment, keyring: keyringOf(entry), ...options });
  const hide = async (): Promise<void> => rename(sshKeyFile.replace(/\.pub$/, ''), join(keys.dir, 'hidden'));

  async function expectSigned(): Promise<void> {
    const [now, signer] = [Date.now(), openSsh()];
    expect(signer).toMatchObject({ name: 'ann-ssh', person: 'ann', isInteractive: true });
    const act = parseAct(await signAct(signer, 4242, RESUME, now));
    if (act === undefined) throw new Error('the act cannot be read');
    expect(verifyAct(4242, act, RESUME, keyringOf(entry), now)).toMatchObject({ kind: 'verified', person: 'ann' });
  }

  it('of OpenSSH signs with the private key beside the public one', expectSigned);

  it('of OpenSSH signs through ssh-agent, where the private key is nowhere else', async () => {
    const agent = await startSshAgent(keys.dir);
    try {
      agent.add(sshKeyFile.replace(/\.pub$/, ''));
      await hide();
      environment['SSH_AUTH_SOCK'] = agent.socket;
      await expectSigned();
    } finally {
      await agent.stop();
    }
  });

  it('of OpenSSH says what is missing: the private key, or ssh-keygen', async () => {
    await hide();
    const told: string[] = [];
    const signing = openSsh({ onMessage: (text) => void told.push(text) }).sign('text');
    await expect(signing).rejects.toThrow(InvalidInputError);
    await expect(signing).rejects.toThrow(/^sshKeyFile: was not used by ssh-keygen: No private key found.*ssh-add -l/);
    expect(told.join('')).toContain('No private key found');
    const without = openSsh({ environment: { PATH: keys.dir } });
    await expect(without.sign('text')).rejects.toThrow(/^sshKeyFile: needs ssh-keygen of OpenSSH .* not in PATH/);
  });

  it('of OpenSSH does not take for a signature what another program prints', async () => {
    await writeFile(join(keys.dir, 'ssh-keygen'), '#!/bin/sh\necho signed\n', { mode: 0o700 });
    environment['PATH'] = `${keys.dir}:${PATH}`;
    await expect(openSsh().sign('text')).rejects.toThrow(/a signature that does not count for the key "ann-ssh"/);
  });

  it('of OpenSSH is named by its public file', () => {
    const privateFile = sshKeyFile.replace(/\.pub$/, '');
    expect(() => open({ sshKeyFile: privateFile, keyName: 'ann' })).toThrow(/holds no public key of OpenSSH/);
    expect(() => open({ sshKeyFile: join(keys.dir, 'none.pub') })).toThrow(/cannot be read: ENOENT/);
  });

  it('in a file is one, has a name, and only its owner reads it', async () => {
    const { file: keyFile } = await keys.makeKey('ann');
    const keyName = 'ann';
    expect(() => open({ keyFile })).toThrow(/^keyName: is missing/);
    expect(() => open({ keyFile, keyName: 'no spaces' })).toThrow(/^keyName: must be 1 to 32/);
    expect(open({ keyFile, keyName })).toMatchObject({ name: 'ann', isInteractive: false });
    expect(() => open({ keyName })).toThrow(/^keyFile: is missing \(or give sshKeyFile\)/);
    expect(() => open({ keyFile, sshKeyFile, keyName })).toThrow(/^sshKeyFile: is given, and/);
    await chmod(keyFile, 0o644);
    expect(() => open({ keyFile, keyName })).toThrow(/is open to every user of this machine/);
    expect(open({ keyFile, keyName, allowReadableSecrets: true })).toMatchObject({ name: 'ann' });
  });

  it('is refused where the keyring gives it another role, or does not have it', async () => {
    const { file: keyFile, public: publicKey } = await keys.makeKey('shop');
    const keyring = keyringOf({ name: 'shop', role: 'producer', person: 'Shop', public: publicKey }, entry);
    expect(() => open({ keyFile, keyring })).toThrow(NotVerifiedError);
    expect(() => open({ keyFile, keyring })).toThrow(
      /^The key "shop" has the role producer\. An act is signed by a key with the role operator \(ann-ssh\)/,
    );
    expect(() => open({ keyFile, keyring: keyringOf(entry) })).toThrow(/has no such key/);
  });
});
