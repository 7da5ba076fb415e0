import { NotFoundError } from '../errors.js';
import type { Payout } from '../ledger/payout.js';
import { wrongStateError } from '../ledger/payout-ledger.js';
import type { AccountAccess } from '../producer/account-access.js';
import { JobDelivery } from '../queues/job-delivery.js';
import { checkTransaction } from './check-transaction.js';
import type { CliContext } from './cli-context.js';
import type { Person } from './person.js';
import { requeuePayout } from './requeue-payout.js';
import { withAccount } from './with-account.js';
import { withGateway } from './with-gateway.js';

/** What a person says became of a payout that is `unknown`. */
export type Decision =
  /** `force`: the person vouches for the txhash, the gateway is not asked. */
  | { readonly kind: 'sent'; readonly txhash: string; readonly force: boolean }
  | { readonly kind: 'not_sent' }
  | { readonly kind: 'write_off' };

/**
 * Carries out what a person decided about a payout that is `unknown`.
 * @returns the payout as it is now
 * @throws NotFoundError; ConflictError when it is not `unknown`, or the transaction is not its payment;
 * RedisUnavailableError, GatewayUnavailableError, GatewayInvalidResponseError
 */
export async function resolvePayout(
  context: CliContext,
  payoutId: string,
  decision: Decision,
  person: Person,
): Promise<Payout> {
  switch (decision.kind) {
    case 'sent':
      return resolveSent(context, payoutId, decision, person);
    case 'not_sent':
      return withAccount(context, (account) => requeuePayout(account, payoutId, 'unknown', person));
    case 'write_off':
      return withAccount(context, async ({ ledger }) => {
        await ledger.change({ payoutId, from: 'unknown', to: 'cancelled', ...person });
        return readPayout(ledger, payoutId);
      });
  }
}

async function resolveSent(
  context: CliContext,
  payoutId: string,
  { txhash, force }: Extract<Decision, { kind: 'sent' }>,
  person: Person,
): Promise<Payout> {
  if (force) {
    const reason = `${person.reason} (txhash not checked with the gateway)`;
    return withAccount(context, (account) => followTransaction(account, payoutId, txhash, { ...person, reason }));
  }
  return withGateway(context, (gateway) =>
    withAccount(context, async (account) => {
      const payout = await readPayout(account.ledger, payoutId);
      // The gateway is asked about payouts only that the answer can still change.
      if (payout.state !== 'unknown') throw wrongStateError(payoutId, payout.state, 'unknown', 'in_progress');
      await checkTransaction(gateway, txhash, payout);
      return followTransaction(account, payoutId, txhash, person);
    }),
  );
}

async function followTransaction(
  { ledger, queues, logger }: AccountAccess,
  payoutId: string,
  txhash: string,
  person: Person,
): Promise<Payout> {
  await ledger.change({ payoutId, from: 'unknown', to: 'in_progress', txhash, ...person });
  try {
    await new JobDelivery({ ledger, queues, firstPollAfterMs: 0 }).addMissing('in_progress', [payoutId]);
    await ledger.clearOutbox('in_progress', [payoutId]);
  } catch (error) {
    // The change stands, and the outbox makes the worker add the job.
    logger.warn({ reason: (error as Error).message }, `the worker will add the poll job of ${payoutId} later`);
  }
  return readPayout(ledger, payoutId);
}

async function readPayout(ledger: AccountAccess['ledger'], payoutId: string): Promise<Payout> {
  const payout = await ledger.get(payoutId);
  if (payout === undefined) throw new NotFoundError(`There is no payout ${payoutId}`);
  return payout;
}
