import type { Verdict } from './decide.js';

/** What a rule says of a payout, in words: the end of a sentence that begins with the payout. */
export function describeVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'send':
      return 'passes';
    case 'wait': {
      const until = verdict.until === undefined ? '' : ` until ${new Date(verdict.until).toISOString()}`;
      return `waits${until}: ${verdict.reason}`;
    }
    case 'approve': {
      const approvals = verdict.missing === 1 ? '1 approval' : `${verdict.missing} approvals`;
      return `needs ${approvals} more by ${verdict.by}: ${verdict.reason}`;
    }
    case 'refuse':
      return `is held: ${verdict.reason}`;
  }
}
