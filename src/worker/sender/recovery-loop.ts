import type { Clock } from '../../clock.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import type { Logger } from '../../logger.js';
import type { OutboxRelay } from '../../queues/outbox-relay.js';
import type { Sender } from './sender.js';

export interface RecoveryOptions {
  readonly clock: Clock;
  readonly delivery: Pick<OutboxRelay, 'relayOutbox'>;
  readonly sender: Pick<Sender, 'checkLedger' | 'resolveLeftovers'>;
  /** Told when the ledger is not the one that the sender knows. */
  readonly onRefused: (mismatch: LedgerMismatch) => void;
  readonly logger: Logger;
}

const OUTBOX_EVERY_MS = 2_000;
/** A change that is younger is being followed by its job right now. */
const OUTBOX_AGE_MS = 2_000;

/**
 * Repairs what a crash may have left: attempts without an outcome, and payouts whose job was not added. Runs beside the
 * sender until the signal is aborted.
 */
export async function recoverRegularly(options: RecoveryOptions, signal: AbortSignal): Promise<void> {
  const { clock, sender, logger } = options;
  while (!signal.aborted) {
    try {
      await sender.resolveLeftovers();
      const mismatch = await sender.checkLedger();
      if (mismatch !== undefined) options.onRefused(mismatch);
      await relayOutbox(options, signal);
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'recovery was interrupted, will try again');
    }
    await clock.sleep(OUTBOX_EVERY_MS, signal);
  }
}

async function relayOutbox({ clock, delivery, logger }: RecoveryOptions, signal: AbortSignal): Promise<void> {
  const delivered = await delivery.relayOutbox(clock.wallNow() - OUTBOX_AGE_MS, signal);
  if (delivered > 0) logger.info({ delivered }, 'payouts whose job may have been missing were looked after');
}
