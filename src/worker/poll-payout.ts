import type { StoredReceipt } from '../ledger/control-record.js';
import { ConflictError, NotFoundError } from '../base/errors.js';
import { gatewayIdField, isSameGatewayId } from '../base/fields.js';
import { describeDifferences, type PaymentStatus, type StatusGateway } from '../gateway/gateway.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { PayoutState } from '../ledger/states.js';
import type { Logger } from '../base/logger.js';
import type { ReceiptSigner } from './account-control.js';

type PolledLedger = Pick<PayoutLedger, 'get' | 'change' | 'oweReceipt'>;

type Verdict =
  | { readonly state: 'in_progress' }
  | {
      readonly state: 'completed' | 'failed';
      readonly txhash: string | undefined;
      readonly fee?: string;
      /** What the status omits or contradicts: the payment may not be this payout's. */
      readonly differs?: string;
    }
  /** The status cannot be this payout's. */
  | { readonly state: 'unknown'; readonly reason: string };

type LastVerdict = Exclude<Verdict, { state: 'in_progress' }>;
type FinalVerdict = Exclude<LastVerdict, { state: 'unknown' }>;

type PollReport =
  | ({
      readonly kind: 'polled';
      /** Why its final state has no receipt, although one was wanted. */
      readonly receiptFailure?: string | undefined;
    } & Verdict)
  /** Not `in_progress`. */
  | { readonly kind: 'skipped'; readonly state: PayoutState | undefined };

const FINAL_STATE = { paid: 'completed', failed: 'failed' } as const;

/**
 * Queries the gateway once about an `in_progress` payout and records its final state. Several processes may do so at
 * once: the ledger takes the first result. An error changes nothing.
 * @throws GatewayUnavailableError, GatewayInvalidResponseError, GatewayRejectedError, RedisUnavailableError
 */
export async function pollPayout(
  payoutId: string,
  ledger: PolledLedger,
  gateway: StatusGateway,
  logger: Logger,
  receipts?: ReceiptSigner,
  onCompleted?: (payout: Payout) => void,
): Promise<PollReport> {
  const payout = await ledger.get(payoutId);
  if (payout?.state !== 'in_progress' || payout.gatewayId === undefined) {
    if (payout?.state === 'completed' || payout?.state === 'failed') await complete(payoutId, payout.state, ledger);
    return { kind: 'skipped', state: payout?.state };
  }
  const { gatewayId } = payout;
  const verdict = gatewayIdField.safeParse(gatewayId).success
    ? checkStatus(await gateway.getStatus(gatewayId), payout, gateway)
    : // Someone has altered it.
      ({ state: 'unknown', reason: `its gatewayId names no payment: ${gatewayId}` } as const);
  if (verdict.state === 'in_progress') return { kind: 'polled', ...verdict };
  const signed = receipts && verdict.state !== 'unknown' ? await signVerdict(payout, verdict, receipts) : undefined;
  const receipt = signed?.kind === 'signed' ? signed.receipt : undefined;
  if (signed?.kind === 'failed') await ledger.oweReceipt(payoutId);
  const isFirst = await record({ ...payout, gatewayId }, verdict, receipt, ledger);
  if (isFirst) log(payout, verdict, logger);
  if (isFirst && verdict.state === 'completed') onCompleted?.(payout);
  if (!isFirst || signed === undefined || signed.kind === 'signed') return { kind: 'polled', ...verdict };
  const { kind, message: reason } = signed;
  logger[kind === 'failed' ? 'error' : 'warn'](
    { payoutId, state: verdict.state, gatewayId, reason },
    'payout ended without a receipt',
  );
  return { kind: 'polled', ...verdict, receiptFailure: kind === 'failed' ? reason : undefined };
}

/**
 * A status that lacks a field is trusted. One that contradicts the payout is not, unless an operator gave the gatewayId.
 */
export function checkStatus(status: PaymentStatus, payout: Payout, gateway: StatusGateway): Verdict {
  const differences = gateway.comparePayment(status, payout);
  const contradictions = differences.filter(({ actual }) => actual !== undefined);
  const isVouchedFor = isSameGatewayId(payout.vouchedGatewayId, payout.gatewayId);
  if (contradictions.length > 0 && !isVouchedFor) {
    const reason = `the gateway's status is about another payment: ${describeDifferences(contradictions)}`;
    return { state: 'unknown', reason };
  }
  const { kind, fee, txhash } = status;
  if (kind === 'pending') return { state: 'in_progress' };
  const differs = differences.length === 0 ? {} : { differs: describeDifferences(differences) };
  return { state: FINAL_STATE[kind], txhash, ...(fee === undefined ? {} : { fee }), ...differs };
}

/**
 * An earlier poll's script may have ended before index and event. The script completes them first, then refuses. A
 * payout never leaves a final state, so nothing else can happen.
 */
async function complete(payoutId: string, to: FinalVerdict['state'], ledger: PolledLedger): Promise<void> {
  try {
    await ledger.change({ payoutId, from: 'in_progress', to });
  } catch (error) {
    if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
  }
}

/** @returns false if a concurrent job was first, or an operator's decision */
async function record(
  payout: Payout & { readonly gatewayId: string },
  verdict: LastVerdict,
  receipt: StoredReceipt | undefined,
  ledger: PolledLedger,
): Promise<boolean> {
  const { payoutId, gatewayId, attempt } = payout;
  const details =
    verdict.state === 'unknown'
      ? { to: verdict.state, reason: verdict.reason, message: verdict.reason }
      : { to: verdict.state, txhash: verdict.txhash, ...feeOf(verdict), receipt };
  try {
    // An answer may come late: of another attempt or payment it says nothing.
    await ledger.change({ payoutId, from: 'in_progress', attempt, gatewayId, ...details });
    return true;
  } catch (error) {
    if (error instanceof ConflictError || error instanceof NotFoundError) return false;
    throw error;
  }
}

function feeOf({ fee }: FinalVerdict): { readonly fee?: string } {
  return fee === undefined ? {} : { fee };
}

/**
 * A worker signs only its own findings. Two things stay in Redis only: an operator's statement that contradicts the
 * gateway, and a payment whose status names no recipient. The txhash is the one of the status: what Redis had proves
 * nothing.
 * @param endedAt - ISO 8601, of a payout that has ended. Without it, now
 */
export async function signVerdict(
  payout: Payout,
  { state, txhash, differs }: FinalVerdict,
  receipts: ReceiptSigner,
  endedAt?: string,
): ReturnType<ReceiptSigner['sign']> {
  return differs === undefined
    ? receipts.sign({ ...payout, txhash }, state, endedAt)
    : { kind: 'refused', message: "the gateway's status does not show that it is this payment" };
}

/** Omits the reason, which names addresses. */
function log({ payoutId, gatewayId }: Payout, { state }: LastVerdict, logger: Logger): void {
  if (state === 'unknown') {
    logger.error(
      { payoutId, gatewayId },
      'payout is unknown: its gatewayId belongs to another payment; resolve it with `payouts resolve`',
    );
  } else {
    logger.info({ payoutId, state, gatewayId }, 'payout is final');
  }
}
