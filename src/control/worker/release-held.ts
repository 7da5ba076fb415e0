import { ConflictError, NotFoundError } from '../../errors.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { Logger } from '../../logger.js';
import type { OutboxRelay } from '../../queues/outbox-relay.js';
import type { HeldPayouts } from './hold-source.js';

export interface ReleaseHeldOptions {
  readonly ledger: Pick<PayoutLedger, 'change'>;
  readonly relay: Pick<OutboxRelay, 'tryDeliver'>;
  readonly logger: Logger;
}

const BATCH = 100;

/**
 * Queues a held payout again, for the sender to check.
 * @param reason - for its history
 * @throws RedisUnavailableError
 */
export async function releaseHeld(
  { ledger, relay, logger }: ReleaseHeldOptions,
  payoutId: string,
  reason: string,
): Promise<void> {
  try {
    await ledger.change({ payoutId, from: 'held', to: 'queued', reason });
    // At once; the outbox would take some seconds.
    await relay.tryDeliver('queued', [payoutId]);
    logger.info({ payoutId, reason }, 'payout released');
  } catch (error) {
    // An operator cancelled or released it at this moment.
    if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
  }
}

/**
 * Requeues what was held only because the journal was not adopted. Call it after the adoption.
 * @throws RedisUnavailableError
 */
export async function releaseAdopted(
  { source, ...options }: ReleaseHeldOptions & { readonly source: Pick<HeldPayouts, 'held'> },
  isOver: () => boolean,
): Promise<void> {
  let after: string | undefined;
  do {
    const { payouts, next } = await source.held(after, BATCH);
    for (const { payoutId, held } of payouts) {
      if (isOver()) return;
      if (held?.reason === 'before_birth') await releaseHeld(options, payoutId, 'the send journal was adopted');
    }
    after = next;
  } while (after !== undefined);
}
