import type { KeyObject } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatPublicKey } from '../../../src/control/keys/signing-key.js';
import { makePrivateKey, type KeyEntry } from './keys.js';

/** A private key in a file of its own, as an operator has it. */
interface TestKey {
  readonly file: string;
  readonly privateKey: KeyObject;
  readonly public: string;
}

export type TestKeys = Awaited<ReturnType<typeof openTestKeys>>;

/** Writes a private key as PEM. @returns its path */
export async function writePrivateKey(file: string, privateKey: KeyObject) {
  await writeFile(file, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return file;
}

export async function writeKeyring(file: string, keys: readonly KeyEntry[]) {
  await writeFile(file, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  return file;
}

export async function openTestKeys() {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-keys-'));
  return {
    dir,
    async makeKey(name: string): Promise<TestKey> {
      const privateKey = makePrivateKey();
      const file = await writePrivateKey(join(dir, `${name}.pem`), privateKey);
      return { file, privateKey, public: formatPublicKey(privateKey) };
    },
    /** Makes a key of OpenSSH. @returns its public file; the private one stands beside it, without `.pub` */
    async makeSshKey(name: string): Promise<Pick<TestKey, 'file' | 'public'>> {
      const file = join(dir, name);
      const { status, stderr } = spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', file]);
      if (status !== 0) throw new Error(`ssh-keygen is needed for this test: ${String(stderr)}`);
      return { file: `${file}.pub`, public: (await readFile(`${file}.pub`, 'utf8')).trim() };
    },
    async writeKeyring(...keys: readonly KeyEntry[]) {
      return writeKeyring(join(dir, 'keys.json'), keys);
    },
    close: async () => rm(dir, { recursive: true, force: true }),
  };
}
