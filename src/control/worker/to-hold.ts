import type { Hold } from '../../ledger/hold.js';
import type { Verdict } from '../policy/decide.js';

/** A verdict as the payout's record has it. */
export function toHold(verdict: Exclude<Verdict, { kind: 'send' }>): Hold {
  const { kind: reason, rule } = verdict;
  const needs = verdict.kind === 'approve' ? { by: verdict.by, persons: verdict.missing } : undefined;
  const until = verdict.until === undefined ? undefined : new Date(verdict.until).toISOString();
  return { kind: 'policy', reason, rule, message: describe(verdict), isTampering: false, needs, until };
}

function describe(verdict: Exclude<Verdict, { kind: 'send' }>): string {
  const { rule, reason } = verdict;
  const why = `Rule ${rule} of the policy: ${reason}.`;
  if (verdict.kind === 'approve') {
    const persons = verdict.missing === 1 ? '1 more person' : `${verdict.missing} more persons`;
    return `${why} ${persons} of the group ${verdict.by} must approve it: \`payouts approve\`.`;
  }
  if (verdict.kind === 'refuse') return `${why} Change the policy, or cancel the payout.`;
  return `${why} It is sent by itself when the rule lets it pass.`;
}
