import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyRole } from '../../../control/keyring.js';
import { formatPublicKey } from '../../../control/signing-key-file.js';
import type { SigningKeyOption } from '../../../control/signing-key-option.js';
import { FileSendJournal } from '../../../journal/file-send-journal.js';

/** The keys of the account with keys, made when the demo starts. */
export interface ForgeKeys {
  /** The keyring, public keys only. */
  readonly keysFile: string;
  readonly shop: SigningKeyOption;
  /** What its worker is given besides. */
  readonly environment: Readonly<Record<string, string>>;
}

const ONLY_OWNER = 0o600;

/** Does what `payouts keygen` and an editor do: a key for the shop, one for the worker, and the keyring of both. */
export function makeKeys(dir: string): ForgeKeys {
  mkdirSync(dir, { mode: 0o700 });
  const [shop, worker] = [makeKey(), makeKey()];
  const keysFile = join(dir, 'keys.json');
  const workerFile = join(dir, 'worker.pem');
  const keys = [entryOf('shop', 'producer', shop), entryOf('worker', 'worker', worker)];
  writeFileSync(keysFile, JSON.stringify({ version: 1, keys }), { mode: ONLY_OWNER });
  writeFileSync(workerFile, worker.export({ type: 'pkcs8', format: 'pem' }), { mode: ONLY_OWNER });
  return {
    keysFile,
    shop: { name: 'shop', privateKey: shop },
    environment: {
      PAYOUT_KEYS_FILE: keysFile,
      PAYOUT_WORKER_KEY_FILE: workerFile,
      PAYOUT_WORKER_KEY_NAME: 'worker',
    },
  };
}

/** Does what `payouts journal adopt` does: nothing of the account was sent before. */
export async function adoptJournal(dir: string, platformId: number): Promise<void> {
  const journal = await FileSendJournal.open({ dir, platformId });
  try {
    await journal.noteComplete({ at: Date.now(), by: 'demo', reason: 'a new account' });
  } finally {
    await journal.close();
  }
}

function makeKey(): KeyObject {
  return generateKeyPairSync('ed25519').privateKey;
}

function entryOf(name: string, role: KeyRole, key: KeyObject): Readonly<Record<string, string>> {
  return { name, role, person: `the demo's ${name}`, public: formatPublicKey(key) };
}
