import { isAborted } from '../../base/clock.js';
import type { ErrorCode } from '../../base/errors.js';
import type { LedgerMismatch } from '../../journal/find-mismatch.js';
import { type SendReport, toNotSent } from './send-report.js';
import type { SenderRuntime } from './sender-runtime.js';
import type { Sender } from './sender.js';

/** The sender of a held lease. */
export interface ActiveSender<Runtime extends SenderRuntime = SenderRuntime> {
  /** Its log lines name the lease's epoch. */
  readonly runtime: Runtime;
  readonly sender: Pick<Sender, 'send'>;
  readonly onMismatch: (mismatch: LedgerMismatch) => void;
  /** Called with the reason why this process must not send although another may. */
  readonly onUnadopted: (reason: string) => void;
  readonly onOtherGateway: (audience: string) => void;
}

/** What becomes of a payout's job. */
export type SendDecision =
  | Extract<SendReport, { kind: 'sent' | 'skipped' | 'early' }>
  /** This process sends no more, and the payout still waits. */
  | { readonly kind: 'put_back' };

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 30_000;
const PAUSED_POLL_MS = 1_000;

/** A begin that Redis did not confirm is tried again so soon, once Redis has been checked. */
const REDIS_RETRY_MAX_MS = 1_000;

/**
 * Tries again while nothing was sent, and after a pause. Writes at most one attempt. Call it for one payout at a time.
 * @param stop - aborted when no new send may begin; one in progress still gets its response
 */
export async function sendUntilDecided(
  payoutId: string,
  active: ActiveSender,
  stop: AbortSignal,
): Promise<SendDecision> {
  const { observer, logger } = active.runtime;
  let loggedReason: string | undefined;
  let delayMs = 0;
  let cause: ErrorCode | 'other' | undefined;
  while (!isAborted(stop)) {
    const report = await active.sender.send(payoutId, stop).catch(toNotSent);
    switch (report.kind) {
      case 'sent':
      case 'skipped':
      case 'early':
        return report;
      case 'not_sent':
        // The wait grows while one cause lasts: what follows an outage of Redis must not wait as long as the outage.
        delayMs = cause === (report.code ?? 'other') ? Math.min(delayMs * 2, RETRY_MAX_MS) : RETRY_MIN_MS;
        cause = report.code ?? 'other';
        logger.warn({ payoutId, reason: report.reason, retryInMs: delayMs }, 'not sent, will try again');
        observer.notSent(report.reason, delayMs, report.code);
        await waitToRetry(active.runtime, report.code, delayMs, stop);
        break;
      case 'paused':
      case 'objected':
        // A pause that is only in the send journal is found again at each try.
        if (report.reason !== loggedReason) logger.warn({ payoutId, reason: report.reason }, WAITS[report.kind]);
        loggedReason = report.reason;
        await waitUntilResumed(active.runtime, stop);
        break;
      case 'ledger_mismatch':
        active.onMismatch(report.mismatch);
        return { kind: 'put_back' };
      case 'unadopted':
        active.onUnadopted(report.reason);
        return { kind: 'put_back' };
      case 'other_gateway':
        active.onOtherGateway(report.audience);
        return { kind: 'put_back' };
      case 'lease_lost':
      case 'stopped':
        return { kind: 'put_back' };
    }
  }
  return { kind: 'put_back' };
}

const WAITS = {
  paused: 'the account is paused, its payouts wait; `payouts resume` lets it send again',
  objected: 'a send journal contradicts the ledger, payouts wait; `payouts stats` shows the command that ends this',
};

/** Redis may be well long before a wait that grew with its outage is over: the check of Redis ends it. */
async function waitToRetry(
  { clock, hindrance }: SenderRuntime,
  code: ErrorCode | undefined,
  delayMs: number,
  stop: AbortSignal,
): Promise<void> {
  if (code !== 'REDIS_UNAVAILABLE') {
    await clock.sleep(delayMs, stop);
    return;
  }
  const endsAt = clock.now() + delayMs;
  await clock.sleep(Math.min(delayMs, REDIS_RETRY_MAX_MS), stop);
  while (!isAborted(stop) && clock.now() < endsAt && hindrance() !== undefined) await clock.sleep(RETRY_MIN_MS, stop);
}

async function waitUntilResumed({ clock, senderLedger }: SenderRuntime, stop: AbortSignal): Promise<void> {
  while (!isAborted(stop)) {
    await clock.sleep(PAUSED_POLL_MS, stop);
    try {
      const { pausedReason, objections } = await senderLedger.readSender();
      if (pausedReason === undefined && objections.length === 0) return;
    } catch {
      // Redis is unavailable. begin-send checks the pause in any case.
    }
  }
}
