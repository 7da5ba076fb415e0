import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { journalPath } from '../../src/journal/journal-files.js';
import type { PayoutInput } from '../../src/ledger/payout.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, testKey, TEST_AUDIENCE } from '../control/support/keys.js';
import { keySigner } from '../../src/control/keys/signing-key.js';

const [SHOP, ANN, WORKER] = [testKey(1), testKey(2), testKey(3)];

export const SIGNING = { signer: keySigner('shop', SHOP), audience: TEST_AUDIENCE };

export const OPERATOR = { signer: keySigner('ann', ANN), audience: TEST_AUDIENCE };

export const UNSIGNED: PayoutInput = {
  payoutId: 'P-unsigned',
  paymentId: 1,
  amount: '1',
  addressTo: 'wallet-unsigned',
};

export type KeyFiles = Readonly<{
  keysFile: string;
  operatorKeyFile: string;
  workerEnvironment: Readonly<Record<string, string>>;
}>;

export async function writeKeyFiles(dir: string): Promise<KeyFiles> {
  const keys = [
    keyEntry(SHOP),
    keyEntry(ANN, { name: 'ann', role: 'operator', person: 'Ann' }),
    keyEntry(WORKER, { name: 'worker', role: 'worker', person: 'Worker' }),
  ];
  const keysFile = await writeKeyring(join(dir, 'keyring.json'), keys);
  return {
    keysFile,
    operatorKeyFile: await writePrivateKey(join(dir, 'ann.pem'), ANN),
    workerEnvironment: {
      PAYOUT_AUDIENCE: TEST_AUDIENCE,
      PAYOUT_KEYS_FILE: keysFile,
      PAYOUT_WORKER_SIGNER: await writePrivateKey(join(dir, 'worker.pem'), WORKER),
      PAYOUT_WORKER_SIGNER_NAME: 'worker',
    },
  };
}

export async function adoptJournal(dir: string, platformId: number) {
  const journal = await FileSendJournal.open({ dir, platformId });
  await journal.noteComplete({ at: Date.now(), by: 'ann', reason: 'nothing was sent yet' });
  await journal.close();
}

export async function keepsPause(dir: string, platformId: number) {
  const text = await readFile(journalPath(dir, platformId), 'utf8');
  return text.lastIndexOf('"paused":') > text.lastIndexOf('"resumed":');
}
