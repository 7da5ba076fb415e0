import { findStopSign } from '../../gateway/blocked-message.js';
import type { SentOutcome, WithdrawOutcome } from '../../gateway/withdraw-gateway.js';

const DESCRIPTIONS = { block: 'a block', rate_limit: 'a rate limit', credentials: 'wrong credentials' } as const;

/**
 * Tells whether an answer is about the account rather than about one payout: then nothing more may be sent.
 * @returns the reason for the pause, or undefined
 */
export function readBlockedReason(message: string, httpStatus?: number): string | undefined {
  const sign = findStopSign(message, httpStatus);
  if (sign === undefined) return undefined;
  const byStatus = findStopSign(message) === undefined && httpStatus !== undefined;
  const said = byStatus && !message.startsWith('HTTP ') ? `HTTP ${httpStatus}, ${message}` : message;
  return `the gateway's answer looks like ${DESCRIPTIONS[sign]}: ${said}`;
}

/** As {@link readBlockedReason}, for what came of a send: only an answer says anything of the account. */
export function blockedReasonOf(outcome: SentOutcome | WithdrawOutcome): string | undefined {
  if (outcome.kind === 'rejected') return readBlockedReason(outcome.message, outcome.httpStatus);
  if (outcome.kind !== 'unknown' || outcome.httpStatus === undefined) return undefined;
  return readBlockedReason(outcome.reason, outcome.httpStatus);
}
