import { every, type Clock } from '../../clock.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { Logger } from '../../logger.js';
import type { SendRecovery } from './recover-sends.js';

/**
 * Adds the missing jobs of payouts that changed.
 * @param changedBefore - wall clock, ms
 * @returns the number of payouts that were checked
 */
export type RelayOutbox = (changedBefore: number, signal: AbortSignal) => Promise<number>;

export interface RecoveryLoopOptions {
  readonly clock: Clock;
  readonly relayOutbox: RelayOutbox;
  readonly recovery: Pick<SendRecovery, 'checkLedger' | 'resolveLeftovers'>;
  readonly onMismatch: (mismatch: LedgerMismatch) => void;
  readonly logger: Logger;
}

const RECOVER_EVERY_MS = 2_000;
/** The job of a younger change is being added right now. */
const OUTBOX_AGE_MS = 2_000;

/** Repairs attempts without an outcome and payouts without a job, beside the sends, until the signal is aborted. */
export async function recoverRegularly(options: RecoveryLoopOptions, signal: AbortSignal): Promise<void> {
  const { clock, relayOutbox, recovery, onMismatch, logger } = options;
  const recover = async (): Promise<void> => {
    await recovery.resolveLeftovers();
    const mismatch = await recovery.checkLedger();
    if (mismatch !== undefined) onMismatch(mismatch);
    const payouts = await relayOutbox(clock.wallNow() - OUTBOX_AGE_MS, signal);
    if (payouts > 0) logger.info({ payouts }, 'checked payouts whose job may have been missing');
  };
  const onError = ({ message }: Error): void => {
    logger.warn({ error: message }, 'recovery was interrupted, will try again');
  };
  await every(RECOVER_EVERY_MS, recover, { clock, signal, onError });
}
