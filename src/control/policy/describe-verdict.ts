import type { Verdict } from './decide.js';

/** A rule's verdict: the end of a sentence that begins with the payout. */
export function describeVerdict(verdict: Verdict): string {
  if (verdict.kind === 'send') return 'passes';
  const until = verdict.until === undefined ? '' : ` until ${new Date(verdict.until).toISOString()}`;
  if (verdict.kind === 'wait') return `waits${until}: ${verdict.reason}`;
  if (verdict.kind === 'refuse') return `is held${until}: ${verdict.reason}`;
  const approvals = verdict.missing === 1 ? '1 more approval' : `${verdict.missing} more approvals`;
  // There may be room without their approval.
  return `needs ${approvals} by ${verdict.by}${until === '' ? '' : `, or waits${until}`}: ${verdict.reason}`;
}
