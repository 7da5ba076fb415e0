import { NotFoundError } from '../errors.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { Payout } from '../ledger/payout.js';
import { wrongStateError } from '../ledger/payout-ledger.js';
import type { AccountAccess } from '../queues/open-account.js';
import { checkTransaction } from './verify-transaction.js';
import type { Actor } from './actor.js';
import { requeuePayout } from './requeue-payout.js';

/** What an operator says became of a payout that is `unknown`. */
export type Decision =
  /** `gateway`: asked whether the transaction is the payout's; without it the operator vouches for that. */
  | { readonly kind: 'sent'; readonly txhash: string; readonly gateway?: GatewayClient }
  | { readonly kind: 'not_sent' }
  | { readonly kind: 'write_off' };

/** The payout that was decided about, and the attempt, where the decision is not about a later one. */
export interface Decided {
  readonly payoutId: string;
  readonly attempt?: number;
}

/**
 * Carries out what an operator decided about a payout that is `unknown`.
 * @returns the payout as it is now
 * @throws NotFoundError
 * @throws ConflictError when it is not `unknown`, or was sent again since, or the transaction is not its payment
 * @throws RedisUnavailableError
 * @throws GatewayUnavailableError
 * @throws GatewayInvalidResponseError
 */
export async function resolvePayout(
  account: AccountAccess,
  decided: Decided,
  decision: Decision,
  actor: Actor,
): Promise<Payout> {
  const { ledger } = account;
  switch (decision.kind) {
    case 'sent':
      return resolveSent(account, decided, decision, actor);
    case 'not_sent':
      return requeuePayout(account, { ...decided, from: 'unknown' }, actor);
    case 'write_off':
      await ledger.change({ ...decided, from: 'unknown', to: 'cancelled', ...actor });
      return readPayout(ledger, decided.payoutId);
  }
}

async function resolveSent(
  account: AccountAccess,
  decided: Decided,
  { txhash, gateway }: Extract<Decision, { kind: 'sent' }>,
  actor: Actor,
): Promise<Payout> {
  if (gateway === undefined) {
    const reason = `${actor.reason} (txhash not checked with the gateway)`;
    return followTransaction(account, decided, txhash, { ...actor, reason });
  }
  const payout = await readPayout(account.ledger, decided.payoutId);
  // The gateway is asked about payouts only that the answer can still change.
  if (payout.state !== 'unknown') throw wrongStateError(payout.payoutId, payout.state, 'unknown', 'in_progress');
  await checkTransaction(gateway, txhash, payout);
  return followTransaction(account, decided, txhash, actor);
}

async function followTransaction(
  { ledger, relay }: AccountAccess,
  decided: Decided,
  txhash: string,
  actor: Actor,
): Promise<Payout> {
  const { payoutId } = decided;
  await ledger.change({ ...decided, from: 'unknown', to: 'in_progress', txhash, ...actor });
  await relay.tryDeliver('in_progress', [payoutId]);
  return readPayout(ledger, payoutId);
}

async function readPayout(ledger: AccountAccess['ledger'], payoutId: string): Promise<Payout> {
  const payout = await ledger.get(payoutId);
  if (payout === undefined) throw new NotFoundError(`There is no payout ${payoutId}`);
  return payout;
}
