import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signText } from '../../../src/control/ed25519.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { journalPath } from '../../../src/journal/journal-files.js';
import { PayoutOperator } from '../../../src/operator/payout-operator.js';
import { PayoutProducer } from '../../../src/producer/payout-producer.js';
import { keyEntry, testKey } from '../../control/support.js';

/** What is enqueued without a signature: it has to be held, and never sent. */
export const UNSIGNED = 'P-unsigned';

const [SHOP, ANN] = [testKey(1), testKey(2)];
const ACTOR = { by: 'ann', reason: 'crash points' };
const RESUME_EVERY_MS = 200;

export const SIGNING_KEY = { name: 'shop', privateKey: SHOP };

export interface SignedAccount {
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export interface SignedAccountOptions {
  readonly redisUrl: string;
  readonly platformId: number;
  /** For the keyring; the journal is in `journal` below it. */
  readonly dir: string;
}

/**
 * Adds to an account what only signed payouts come to: a worker with a keyring and a journal that was declared complete, a
 * payout that is held, and a pause that the worker keeps until an operator's signed act.
 */
export async function openSignedAccount({ redisUrl, platformId, dir }: SignedAccountOptions): Promise<SignedAccount> {
  const keysFile = join(dir, 'keyring.json');
  const keys = [keyEntry(SHOP), keyEntry(ANN, { name: 'ann', role: 'operator', person: 'Ann' })];
  await writeFile(keysFile, JSON.stringify({ version: 1, keys }), { mode: 0o600 });
  const journalDir = join(dir, 'journal');
  const journal = await FileSendJournal.open({ dir: journalDir, platformId });
  await journal.noteComplete({ at: Date.now(), ...ACTOR });
  await journal.close();

  const unsigned = new PayoutProducer({ redisUrl, platformId });
  await unsigned.enqueue({ payoutId: UNSIGNED, paymentId: 1, amount: '1', addressTo: 'bc1qunsigned' });
  await unsigned.close();
  const signer = { name: 'ann', sign: async (text: string) => Promise.resolve(signText(text, ANN)) };
  const operator = new PayoutOperator({ redisUrl, platformId, signer });
  await operator.pause(ACTOR);
  const timer = setInterval(() => {
    void resumeWhereKept(operator, journalPath(journalDir, platformId)).catch(() => undefined);
  }, RESUME_EVERY_MS);
  return {
    environment: { PAYOUT_KEYS_FILE: keysFile },
    async close() {
      clearInterval(timer);
      await operator.close();
    },
  };
}

/** Resumes once a worker has noted the pause, again and again until one has noted the act. */
async function resumeWhereKept(operator: PayoutOperator, path: string): Promise<void> {
  const text = await readFile(path, 'utf8');
  if (text.lastIndexOf('"paused":') > text.lastIndexOf('"resumed":')) await operator.resume(ACTOR);
}
