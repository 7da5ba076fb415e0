import { findStopSign } from '../../gateway/stop-sign.js';
import type { SentOutcome, WithdrawOutcome } from '../../gateway/withdraw-gateway.js';

const DESCRIPTIONS = { block: 'a block', rate_limit: 'a rate limit', credentials: 'wrong credentials' } as const;

/**
 * Finds whether a response is about the account rather than about one payout: then nothing more may be sent.
 * @returns the reason for the pause, or undefined
 */
export function findBlockedReason(message: string, httpStatus?: number): string | undefined {
  const sign = findStopSign(message, httpStatus);
  if (sign === undefined) return undefined;
  const byStatus = findStopSign(message) === undefined && httpStatus !== undefined;
  const said = byStatus && !message.startsWith('HTTP ') ? `HTTP ${httpStatus}, ${message}` : message;
  return `the gateway's response looks like ${DESCRIPTIONS[sign]}: ${said}`;
}

/** As {@link findBlockedReason}, for the outcome of a send: only a response says anything about the account. */
export function blockedReasonOf(outcome: SentOutcome | WithdrawOutcome): string | undefined {
  if (outcome.kind === 'rejected') return findBlockedReason(outcome.message, outcome.httpStatus);
  if (outcome.kind !== 'unknown' || outcome.httpStatus === undefined) return undefined;
  return findBlockedReason(outcome.reason, outcome.httpStatus);
}
