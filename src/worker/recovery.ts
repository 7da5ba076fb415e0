import type { Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import type { Lease, SenderLedger } from '../ledger/sender-ledger.js';
import type { JobDelivery } from '../queues/job-delivery.js';
import type { Sender } from './sender.js';

export interface RecoveryOptions {
  readonly clock: Clock;
  readonly ledger: SenderLedger;
  readonly delivery: Pick<JobDelivery, 'deliverOutbox' | 'checkAll'>;
  readonly lease: Lease;
  readonly sender: Pick<Sender, 'checkLedger'>;
  /** Told when the ledger is not the one that the sender knows. */
  readonly onRefused: (reason: string) => void;
  readonly logger: Logger;
}

const OUTBOX_EVERY_MS = 2_000;
/** A change that is younger is being followed by its job right now. */
const OUTBOX_AGE_MS = 2_000;
const CHECK_EVERY_MS = 60 * 60 * 1000;

const LEFT_BEHIND = 'its sender ended before the answer came; it may have been sent';

/**
 * Mends what a crash may have left: attempts without an outcome, and payouts without a job. Runs beside the sender
 * until the signal is aborted.
 */
export async function recoverRegularly(options: RecoveryOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  let checkedAt: number | undefined;
  while (!signal.aborted) {
    try {
      await recoverSends(options);
      const refusal = await options.sender.checkLedger();
      if (refusal !== undefined) options.onRefused(refusal);
      await deliverOutbox(options, signal);
      if (checkedAt === undefined || clock.now() - checkedAt >= CHECK_EVERY_MS) {
        await checkJobs(options, signal);
        checkedAt = clock.now();
      }
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'recovery was interrupted, will try again');
    }
    await clock.sleep(OUTBOX_EVERY_MS, signal);
  }
}

/** Attempts of earlier senders that have no outcome may have been sent: only a person can tell. */
export async function recoverSends({
  ledger,
  lease,
  logger,
}: Pick<RecoveryOptions, 'ledger' | 'lease' | 'logger'>): Promise<void> {
  const payoutIds = (await ledger.recoverSends(lease, LEFT_BEHIND)) ?? [];
  for (const payoutId of payoutIds) {
    logger.error({ payoutId }, 'payout is unknown: its sender ended before the answer came; `payouts resolve` decides');
  }
}

async function deliverOutbox({ clock, delivery, logger }: RecoveryOptions, signal: AbortSignal): Promise<void> {
  let delivered = 0;
  for (;;) {
    const count = await delivery.deliverOutbox(clock.wallNow() - OUTBOX_AGE_MS);
    delivered += count;
    if (count === 0 || signal.aborted) break;
  }
  if (delivered > 0) logger.info({ delivered }, 'payouts whose job may have been missing were looked after');
}

async function checkJobs({ delivery, logger }: RecoveryOptions, signal: AbortSignal): Promise<void> {
  for (const state of ['queued', 'in_progress'] as const) {
    const added = await delivery.checkAll(state, signal);
    if (added > 0) logger.warn({ state, added }, 'payouts had lost their job and got it again');
  }
}
