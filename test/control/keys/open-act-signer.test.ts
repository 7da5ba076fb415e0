import { chmod, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { signAct, type ActContent } from '../../../src/control/approvals/act-signer.js';
import { verifyAct } from '../../../src/control/approvals/act.js';
import { InvalidInputError, NotVerifiedError } from '../../../src/base/errors.js';
import { openActSigner } from '../../../src/control/keys/open-act-signer.js';
import { startSshAgent } from '../support/ssh-agent.js';
import { keyringOf, type KeyEntry, TEST_AUDIENCE } from '../support/keys.js';
import { openTestKeys, type TestKeys } from '../support/key-files.js';
import { requireAct } from '../../operator/support/signing-rig.js';

const RESUME: ActContent = { act: 'resume', payoutId: '', intent: '', attempt: undefined, reason: 'Grüße, ticket 812' };
const { PATH = '' } = process.env;

let keys: TestKeys;
let file: string;
let entry: KeyEntry;
let environment: Record<string, string>;

beforeEach(async () => {
  keys = await openTestKeys();
  const key = await keys.makeSshKey('ann key; $(touch x)');
  file = key.file;
  entry = { name: 'ann-ssh', role: 'operator', person: 'Ann', public: key.public };
  environment = { PATH };
});

afterEach(async () => keys.close());

async function signAndVerify() {
  const now = Date.now();
  const signer = openActSigner({ audience: TEST_AUDIENCE, sshKeyFile: file, environment, keyring: keyringOf(entry) });
  expect(signer).toMatchObject({ name: 'ann-ssh', person: 'ann', isInteractive: true });
  return verifyAct(4242, requireAct(await signAct(signer, 4242, RESUME, now)), RESUME, keyringOf(entry), now);
}

describe('a key of OpenSSH', () => {
  it('signs with the private key beside the public one', async () => {
    expect(await signAndVerify()).toMatchObject({ kind: 'verified', person: 'ann' });
  });

  it('signs through ssh-agent, where the private key is nowhere else', async () => {
    const agent = await startSshAgent(keys.dir);
    try {
      const privateFile = file.replace(/\.pub$/, '');
      agent.add(privateFile);
      await rename(privateFile, join(keys.dir, 'hidden'));
      environment['SSH_AUTH_SOCK'] = agent.socket;
      expect(await signAndVerify()).toMatchObject({ kind: 'verified', person: 'ann' });
    } finally {
      await agent.stop();
    }
  });

  it('says what is missing where neither an agent nor a file has the private key', async () => {
    await rename(file.replace(/\.pub$/, ''), join(keys.dir, 'hidden'));
    const told: string[] = [];
    const onMessage = (text: string): void => void told.push(text);
    const signer = openActSigner({
      audience: TEST_AUDIENCE,
      sshKeyFile: file,
      environment,
      keyring: keyringOf(entry),
      onMessage,
    });
    const signing = signer.sign('text');
    await expect(signing).rejects.toThrow(InvalidInputError);
    await expect(signing).rejects.toThrow(/^sshKeyFile: was not used by ssh-keygen: No private key found.*ssh-add -l/);
    expect(told.join('')).toContain('No private key found');
  });

  it('says that ssh-keygen is missing', async () => {
    const signer = openActSigner({
      audience: TEST_AUDIENCE,
      sshKeyFile: file,
      keyName: 'ann-ssh',
      environment: { PATH: keys.dir },
    });
    await expect(signer.sign('text')).rejects.toThrow(/^sshKeyFile: needs ssh-keygen of OpenSSH .* not in PATH/);
  });

  it('does not take for a signature what another program prints', async () => {
    const program = join(keys.dir, 'ssh-keygen');
    await writeFile(program, '#!/bin/sh\necho signed\n');
    await chmod(program, 0o700);
    environment['PATH'] = `${keys.dir}:${PATH}`;
    const signer = openActSigner({ audience: TEST_AUDIENCE, sshKeyFile: file, environment, keyring: keyringOf(entry) });
    await expect(signer.sign('text')).rejects.toThrow(/a signature that does not count for the key "ann-ssh"/);
  });

  it('is named by its public file', async () => {
    const privateFile = file.replace(/\.pub$/, '');
    expect(() => openActSigner({ audience: TEST_AUDIENCE, sshKeyFile: privateFile, keyName: 'ann' })).toThrow(
      /holds no public key of OpenSSH/,
    );
    expect(() => openActSigner({ audience: TEST_AUDIENCE, sshKeyFile: join(keys.dir, 'none.pub') })).toThrow(
      /cannot be read: ENOENT/,
    );
    return Promise.resolve();
  });
});

describe('an operator’s key', () => {
  it('needs a keyring, or its name', async () => {
    const { file: keyFile } = await keys.makeKey('ann');
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile })).toThrow(/^keyName: is missing/);
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile, keyName: 'no spaces' })).toThrow(
      /^keyName: must be 1 to 32/,
    );
    expect(openActSigner({ audience: TEST_AUDIENCE, keyFile, keyName: 'ann' })).toMatchObject({
      name: 'ann',
      isInteractive: false,
    });
  });

  it('is one, and in a file that only its owner reads', async () => {
    const { file: keyFile } = await keys.makeKey('ann');
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyName: 'ann' })).toThrow(
      /^keyFile: is missing \(or give sshKeyFile\)/,
    );
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile, sshKeyFile: file, keyName: 'ann' })).toThrow(
      /^sshKeyFile: is given, and/,
    );
    await chmod(keyFile, 0o644);
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile, keyName: 'ann' })).toThrow(
      /is open to every user of this machine/,
    );
    expect(
      openActSigner({ audience: TEST_AUDIENCE, keyFile, keyName: 'ann', allowReadableSecrets: true }),
    ).toMatchObject({ name: 'ann' });
  });

  it('is refused where the keyring gives it another role, or does not have it', async () => {
    const { file: keyFile, public: publicKey } = await keys.makeKey('shop');
    const shop: KeyEntry = { name: 'shop', role: 'producer', person: 'Shop', public: publicKey };
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile, keyring: keyringOf(shop, entry) })).toThrow(
      NotVerifiedError,
    );
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile, keyring: keyringOf(shop, entry) })).toThrow(
      /^The key "shop" has the role producer\. An act is signed by a key with the role operator \(ann-ssh\)/,
    );
    expect(() => openActSigner({ audience: TEST_AUDIENCE, keyFile, keyring: keyringOf(entry) })).toThrow(
      /has no such key/,
    );
  });
});
