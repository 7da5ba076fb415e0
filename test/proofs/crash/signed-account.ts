import { join } from 'node:path';
import { PayoutOperator } from '../../../src/control/payout-operator.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { adoptJournal, keepsPause, OPERATOR, UNSIGNED, writeKeyFiles } from '../signing.js';

const ACTOR = { by: 'ann', reason: 'crash points' };
const RESUME_EVERY_MS = 200;

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
  const { workerEnvironment } = await writeKeyFiles(dir);
  const journalDir = join(dir, 'journal');
  await adoptJournal(journalDir, platformId);
  const unsigned = new PayoutProducer({ redisUrl, platformId });
  await unsigned.enqueue(UNSIGNED);
  await unsigned.close();
  const operator = new PayoutOperator({ redisUrl, platformId, signer: OPERATOR });
  await operator.pause(ACTOR);
  // Once a worker has noted the pause, again and again until one has noted the act.
  const resume = async (): Promise<void> => {
    if (await keepsPause(journalDir, platformId)) await operator.resume(ACTOR);
  };
  const timer = setInterval(() => {
    void resume().catch(() => undefined);
  }, RESUME_EVERY_MS);
  return {
    environment: workerEnvironment,
    async close() {
      clearInterval(timer);
      await operator.close();
    },
  };
}
