import { findStopSign } from '../../gateway/stop-sign.js';
import type { SentOutcome, WithdrawOutcome } from '../../gateway/withdraw-gateway.js';

const DESCRIPTIONS = { block: 'a block', rate_limit: 'a rate limit', credentials: 'wrong credentials' } as const;

/** @returns why the account must be paused, or undefined if the response is about this payout only */
export function findBlockedReason(message: string, httpStatus?: number): string | undefined {
  const sign = findStopSign(message, httpStatus);
  if (sign === undefined) return undefined;
  const byStatus = findStopSign(message) === undefined && httpStatus !== undefined;
  const said = byStatus && !message.startsWith('HTTP ') ? `HTTP ${httpStatus}, ${message}` : message;
  return `the gateway's response looks like ${DESCRIPTIONS[sign]}: ${said}`;
}

/** Without a response nothing is known about the account. */
export function blockedReasonOf(outcome: SentOutcome | WithdrawOutcome): string | undefined {
  if (outcome.kind === 'rejected') return findBlockedReason(outcome.message, outcome.httpStatus);
  if (outcome.kind !== 'unknown' || outcome.httpStatus === undefined) return undefined;
  return findBlockedReason(outcome.reason, outcome.httpStatus);
}
