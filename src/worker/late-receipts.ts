import { every, isAborted } from '../base/clock.js';
import type { Payout } from '../ledger/payout.js';
import type { AccountRuntime } from './account-runtime.js';
import type { ReceiptSigner } from './account-control.js';
import { checkStatus, signVerdict } from './poll-payout.js';
import { describeOtherGateway } from './sender/journal-audit.js';

type Needed = Pick<AccountRuntime, 'polledLedger' | 'gateway' | 'audience' | 'settings' | 'clock' | 'logger'>;

const EVERY_MS = 10_000;
/** Payouts read at once. */
const PAGE = 100;
/** Of the rate of polls, which the payouts in progress need. */
const SHARE_OF_POLLS = 0.5;

/**
 * Signs how payouts ended that have no receipt, because the signer gave none: in the process that sends, until the
 * signal is aborted. The gateway is asked again, because nothing in Redis is believed. A round ends with the first
 * signature that fails, so that a signer which is away costs one question in ten seconds.
 */
export async function addLateReceipts(runtime: Needed, receipts: ReceiptSigner, signal: AbortSignal): Promise<void> {
  const { clock, logger } = runtime;
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'late receipts could not be added, will try again');
  };
  await every(EVERY_MS, async () => addAll(runtime, receipts, signal), { clock, signal, onError });
}

async function addAll(runtime: Needed, receipts: ReceiptSigner, signal: AbortSignal): Promise<void> {
  const { polledLedger, audience, clock, settings } = runtime;
  const owed = await polledLedger.readOwedReceipts(PAGE);
  if (owed.length === 0) return;
  // A gateway knows nothing of another gateway's transactions.
  const bound = (await polledLedger.readAudience()) ?? audience;
  if (bound !== audience) throw new Error(describeOtherGateway(bound, audience));
  for (const payoutId of owed) {
    if (isAborted(signal) || !(await addOne(payoutId, runtime, receipts))) return;
    await clock.sleep(1_000 / (settings.pollRate * SHARE_OF_POLLS), signal);
  }
}

/** @returns false if the signer gives no signature */
async function addOne(payoutId: string, runtime: Needed, receipts: ReceiptSigner): Promise<boolean> {
  const { polledLedger, logger } = runtime;
  const payout = await polledLedger.get(payoutId);
  if (payout?.state === 'in_progress') {
    // A poll was about to end it, and another one will.
    await polledLedger.postponeReceipt(payoutId);
    return true;
  }
  const finding = payout === undefined ? undefined : await find(payout, runtime, receipts);
  if (finding?.kind === 'failed') return false;
  if (finding?.kind === 'unclear') {
    await polledLedger.postponeReceipt(payoutId);
    return true;
  }
  const isAdded = payout && finding?.kind === 'signed' && (await polledLedger.addReceipt(payout, finding.receipt));
  if (isAdded) logger.info({ payoutId }, 'payout has its receipt late');
  if (finding?.kind === 'refused') logger.warn({ payoutId, reason: finding.message }, 'payout gets no receipt');
  await polledLedger.settleReceipt(payoutId);
  return true;
}

/** @returns undefined if nothing is owed any more; `unclear`: the gateway has to be asked again */
async function find(payout: Payout, { gateway, logger }: Needed, receipts: ReceiptSigner) {
  const { payoutId, state, gatewayId } = payout;
  if ((state !== 'completed' && state !== 'failed') || payout.receipt !== undefined) return undefined;
  if (gatewayId === undefined) return { kind: 'refused', message: 'it has no payment' } as const;
  try {
    const verdict = checkStatus(await gateway.getStatus(gatewayId), payout, gateway);
    if (verdict.state === 'completed' || verdict.state === 'failed') {
      if (verdict.state === state && verdict.txhash === payout.txhash)
        return await signVerdict(payout, verdict, receipts, payout.updatedAt);
    }
    return {
      kind: 'refused',
      message: `the gateway's status does not show it as ${state}, by this transaction`,
    } as const;
  } catch (error) {
    logger.debug({ payoutId, error: (error as Error).message }, 'the gateway does not say how a payout ended');
    return { kind: 'unclear' } as const;
  }
}
