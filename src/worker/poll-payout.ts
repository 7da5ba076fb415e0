import { ConflictError, NotFoundError } from '../errors.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { PayoutState } from '../ledger/states.js';
import type { Logger } from '../logger.js';

export interface PollOptions {
  readonly ledger: Pick<PayoutLedger, 'get' | 'change'>;
  readonly gateway: Pick<GatewayClient, 'transactionStatus'>;
  readonly logger: Logger;
}

/** What came of looking at one payout. */
export type PollReport =
  | { readonly kind: 'polled'; readonly state: 'in_progress' | 'completed' | 'failed' }
  /** It is not `in_progress`; there is nothing to do. */
  | { readonly kind: 'skipped'; readonly state: PayoutState | undefined };

/**
 * Asks the gateway once about the transaction of a payout that is `in_progress`, and records a final answer. Several
 * may do so at the same time: the ledger takes the first.
 * @throws GatewayUnavailableError, GatewayInvalidResponseError, GatewayRejectedError, RedisUnavailableError; nothing was changed
 */
export async function pollPayout(payoutId: string, { ledger, gateway, logger }: PollOptions): Promise<PollReport> {
  const payout = await ledger.get(payoutId);
  if (payout?.state !== 'in_progress' || payout.txhash === undefined) return { kind: 'skipped', state: payout?.state };
  const { txhash } = payout;
  const { approve, fee } = await gateway.transactionStatus({ txhash });
  if (approve === 0) return { kind: 'polled', state: 'in_progress' };
  const to = approve === 1 ? 'completed' : 'failed';
  try {
    await ledger.change({ payoutId, from: 'in_progress', to, ...(fee === undefined ? {} : { fee }) });
    logger.info({ payoutId, state: to, txhash }, 'payout is final');
  } catch (error) {
    // The same answer was recorded by a job that ran at the same time.
    if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
  }
  return { kind: 'polled', state: to };
}
