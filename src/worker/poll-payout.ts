import { ConflictError, NotFoundError } from '../errors.js';
import { txhashField } from '../fields.js';
import { comparePayment, describeDifferences } from '../gateway/compare-payment.js';
import type { PaymentStatus, StatusGateway } from '../gateway/gateway.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { PayoutState } from '../ledger/states.js';
import type { Logger } from '../logger.js';

export interface PollOptions {
  readonly ledger: Pick<PayoutLedger, 'get' | 'change'>;
  readonly gateway: StatusGateway;
  readonly logger: Logger;
}

/** What the gateway's status makes of a payout. */
type Verdict =
  | { readonly state: 'in_progress' }
  | { readonly state: 'completed' | 'failed'; readonly fee?: string }
  /** The status cannot be this payout's, whatever it says. */
  | { readonly state: 'unknown'; readonly reason: string };

type LastVerdict = Exclude<Verdict, { state: 'in_progress' }>;

/** The result of polling one payout. */
export type PollReport =
  | ({ readonly kind: 'polled' } & Verdict)
  /** It is not `in_progress`; there is nothing to do. */
  | { readonly kind: 'skipped'; readonly state: PayoutState | undefined };

const FINAL_STATE = { paid: 'completed', failed: 'failed' } as const;

/**
 * Queries the gateway once about the transaction of a payout that is `in_progress`, and records what ends that state.
 * Several processes may do so at the same time: the ledger takes the first result.
 * @throws GatewayUnavailableError, GatewayInvalidResponseError, GatewayRejectedError, RedisUnavailableError; nothing was changed
 */
export async function pollPayout(payoutId: string, { ledger, gateway, logger }: PollOptions): Promise<PollReport> {
  const payout = await ledger.get(payoutId);
  if (payout?.state !== 'in_progress' || payout.txhash === undefined) return { kind: 'skipped', state: payout?.state };
  const { txhash } = payout;
  const verdict = txhashField.safeParse(txhash).success
    ? judge(await gateway.getStatus(txhash), payout)
    : // Accepted by an earlier version, which believed the gateway.
      ({ state: 'unknown', reason: `its txhash names no transaction: ${txhash}` } as const);
  if (verdict.state !== 'in_progress' && (await record({ payoutId, txhash }, verdict, ledger)))
    log(payout, verdict, logger);
  return { kind: 'polled', ...verdict };
}

/**
 * A status that leaves a field out is believed; one that contradicts the payout is not, unless an operator gave the
 * txhash in spite of it.
 */
function judge(status: PaymentStatus, payout: Payout): Verdict {
  const contradictions = comparePayment(status, payout).filter(({ actual }) => actual !== undefined);
  const isVouchedFor = payout.vouchedTxhash === payout.txhash;
  if (contradictions.length > 0 && !isVouchedFor) {
    const reason = `the gateway's status is about another payment: ${describeDifferences(contradictions)}`;
    return { state: 'unknown', reason };
  }
  const { kind, fee } = status;
  if (kind === 'pending') return { state: 'in_progress' };
  return { state: FINAL_STATE[kind], ...(fee === undefined ? {} : { fee }) };
}

/** @returns false when a job that ran at the same time was first */
async function record(
  { payoutId, txhash }: { readonly payoutId: string; readonly txhash: string },
  verdict: LastVerdict,
  ledger: PollOptions['ledger'],
): Promise<boolean> {
  const { state: to, ...found } = verdict;
  const details = 'reason' in found ? { reason: found.reason, message: found.reason, txhash } : found;
  try {
    await ledger.change({ payoutId, from: 'in_progress', to, ...details });
    return true;
  } catch (error) {
    if (error instanceof ConflictError || error instanceof NotFoundError) return false;
    throw error;
  }
}

/** Without the reason, which names addresses. */
function log({ payoutId, txhash }: Payout, { state }: LastVerdict, logger: Logger): void {
  if (state === 'unknown') {
    logger.error(
      { payoutId, txhash },
      'payout is unknown: its txhash belongs to another payment; resolve it with `payouts resolve`',
    );
  } else {
    logger.info({ payoutId, state, txhash }, 'payout is final');
  }
}
