import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyRole } from '../../control/keys/keyring.js';
import { formatPublicKey } from '../../control/keys/signing-key-file.js';
import type { SigningKeyOption } from '../../control/keys/signing-key-option.js';
import { FileSendJournal } from '../../journal/file-send-journal.js';

/** The keys of an account, made when the demo starts. */
export interface DemoKeys {
  /** The keyring, public keys only. */
  readonly keysFile: string;
  readonly shop: SigningKeyOption;
  /** The environment that the shop, the approvers and the worker sign for. */
  readonly audience: string;
  /** By the name of the key. */
  readonly approvers: ReadonlyMap<string, KeyObject>;
  /** What its worker is given besides. */
  readonly environment: Readonly<Record<string, string>>;
}

const ONLY_OWNER = 0o600;

/** Somebody who approves: the name of the key, and whose it is. */
export interface DemoApprover {
  readonly name: string;
  readonly person: string;
}

const AUDIENCE = 'demo';

/** The person whose key signs for the shop. */
export const SHOP_PERSON = "the demo's shop";

/** Does what `payouts keygen` and an editor do: keys for the shop, the worker and those who approve, and their keyring. */
export function makeKeys(dir: string, people: readonly DemoApprover[] = []): DemoKeys {
  mkdirSync(dir, { mode: 0o700 });
  const [shop, worker] = [makeKey(), makeKey()];
  const keysFile = join(dir, 'keys.json');
  const workerFile = join(dir, 'worker.pem');
  const approvals = people.map((who) => ({ ...who, key: makeKey() }));
  const keys = [
    entryOf('shop', 'producer', SHOP_PERSON, shop),
    entryOf('worker', 'worker', "the demo's worker", worker),
    ...approvals.map(({ name, person, key }) => entryOf(name, 'approver', person, key)),
  ];
  writeFileSync(keysFile, JSON.stringify({ version: 1, keys }), { mode: ONLY_OWNER });
  writeFileSync(workerFile, worker.export({ type: 'pkcs8', format: 'pem' }), { mode: ONLY_OWNER });
  return {
    keysFile,
    shop: { name: 'shop', privateKey: shop },
    audience: AUDIENCE,
    approvers: new Map(approvals.map(({ name, key }) => [name, key])),
    environment: {
      PAYOUT_AUDIENCE: AUDIENCE,
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

function entryOf(name: string, role: KeyRole, person: string, key: KeyObject): Readonly<Record<string, string>> {
  return { name, role, person, public: formatPublicKey(key) };
}
