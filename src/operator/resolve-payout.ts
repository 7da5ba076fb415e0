import { z } from 'zod';
import { InvalidConfigError, TransactionMismatchError } from '../base/errors.js';
import { parseInput, gatewayIdField } from '../base/fields.js';
import {
  describeDifferences,
  GatewayRejectedError,
  type PaymentStatus,
  type StatusGateway,
} from '../gateway/gateway.js';
import { wrongStateError } from '../ledger/payout-ledger.js';
import type { Actor, Payout } from '../ledger/payout.js';
import { UNSENT_STATES } from '../ledger/states.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import { changeOnePayout } from './change-payouts.js';
import type { DecisionSigner } from './decision-signer.js';

/** The outcome of a payout that is `unknown`; `write_off` also of one that is `queued`, `held` or `rejected`. */
export type Resolution =
  | {
      /** It was sent, as the gateway calls it: this payment is polled until it is completed or failed. */
      readonly kind: 'sent';
      readonly gatewayId: string;
      /** The operator vouches for the payment, and the gateway is not asked. @defaultValue false */
      readonly unchecked?: boolean;
    }
  /** It was not sent: it is queued again and will be paid. */
  | { readonly kind: 'not_sent' }
  /** A person settled it outside the queue, paid or not: it is `written_off`, and never sent again. */
  | { readonly kind: 'write_off' };

/** The payout that was decided about. */
export interface DecidedPayout {
  readonly payoutId: string;
  /**
   * The decision is refused once a later attempt was sent. `not_sent` needs it: it is a statement about one attempt.
   * @defaultValue the last attempt
   */
  readonly attempt?: number;
}

const KINDS = ['sent', 'not_sent', 'write_off'] as const;

const resolutionSchema = z.object({ kind: z.enum(KINDS, { error: `must be one of ${KINDS.join(', ')}` }) });

const statedSchema = z.object({
  attempt: z
    .int('must be the number of the attempt that was not sent: `payouts get` and `Payout.attempt` have it')
    .min(0, 'must be at least 0'),
});

/**
 * Carries out an operator's decision about an `unknown` payout.
 * @param gateway - asked whether a payment is the payout's
 * @param signer - signs `not_sent`, for workers that require it
 * @throws see `PayoutOperator.resolve`
 */
export async function resolvePayout(
  account: LedgerAccess,
  { gateway, signer }: { readonly gateway: StatusGateway | undefined; readonly signer: DecisionSigner | undefined },
  decided: DecidedPayout,
  resolution: Resolution,
  actor: Actor,
): Promise<Payout> {
  parseInput(resolutionSchema, resolution, 'resolution', '{ kind }, with what its kind needs');
  switch (resolution.kind) {
    case 'sent':
      return resolveSent(account, gateway, decided, resolution, actor);
    case 'not_sent':
      parseInput(statedSchema, decided);
      return changeOnePayout(account, { ...decided, from: 'unknown', to: 'queued' }, actor, signer);
    case 'write_off':
      return writeOff(account, decided, actor);
  }
}

/** Also of a payout that was not sent, says the ledger: one that was paid must not become `cancelled`. */
async function writeOff(account: LedgerAccess, decided: DecidedPayout, actor: Actor): Promise<Payout> {
  const { state } = await account.ledger.require(decided.payoutId);
  const from = UNSENT_STATES.includes(state) ? state : 'unknown';
  return changeOnePayout(account, { ...decided, from, to: 'written_off' }, actor);
}

async function resolveSent(
  account: LedgerAccess,
  gateway: StatusGateway | undefined,
  decided: DecidedPayout,
  { gatewayId: given, unchecked = false }: Extract<Resolution, { kind: 'sent' }>,
  actor: Actor,
): Promise<Payout> {
  const { gatewayId } = parseInput(z.object({ gatewayId: gatewayIdField }), { gatewayId: given });
  const change = { ...decided, from: 'unknown', to: 'in_progress', gatewayId } as const;
  if (unchecked) {
    const reason = `${actor.reason} (payment not checked with the gateway)`;
    return changeOnePayout(account, change, { ...actor, reason });
  }
  if (gateway === undefined) {
    throw new InvalidConfigError([
      { field: 'gateway', message: 'is needed to check a payment, unless it is unchecked' },
    ]);
  }
  const payout = await account.ledger.require(decided.payoutId);
  // Ask the gateway only if its response can still change the payout.
  if (payout.state !== 'unknown') throw wrongStateError(payout.payoutId, payout.state, 'unknown', 'in_progress');
  const { txhash } = await verifyPayment(gateway, gatewayId, payout);
  return changeOnePayout(account, { ...change, txhash }, actor);
}

/**
 * Verifies that it is the payment of a payout: same currency, address and amount, all three named by the gateway.
 * @throws TransactionMismatchError when the gateway does not know the payment, or describes another
 * @throws InvalidInputError when the gatewayId names no payment
 * @throws GatewayUnavailableError when no complete response came
 * @throws GatewayInvalidResponseError when the response is not as documented
 */
async function verifyPayment(gateway: StatusGateway, gatewayId: string, payout: Payout): Promise<PaymentStatus> {
  const status = await fetchStatus(gateway, gatewayId);
  const differences = gateway.comparePayment(status, payout);
  if (differences.length === 0) return status;
  throw refusal(
    `${gatewayId} is not the payment of payout ${payout.payoutId}: ${describeDifferences(differences)}.`,
    differences.map(({ field }) => field),
  );
}

async function fetchStatus(gateway: StatusGateway, gatewayId: string): Promise<PaymentStatus> {
  try {
    return await gateway.getStatus(gatewayId);
  } catch (error) {
    if (!(error instanceof GatewayRejectedError)) throw error;
    throw refusal(`The gateway has no status for ${gatewayId}: ${error.gatewayMessage}.`, ['gatewayId']);
  }
}

function refusal(finding: string, fields: readonly string[]): TransactionMismatchError {
  return new TransactionMismatchError(`${finding} Nothing was changed`, fields);
}
