import type { HeldFor } from '../../ledger/payout.js';

/** What the policy says, for those who did not write it. */
const VERDICTS: Readonly<Record<string, string>> = {
  approve: 'needs approval',
  wait: 'waits',
  refuse: 'held until the policy changes',
};

const KINDS: Readonly<Record<string, string>> = {
  signature: 'signature',
  journal: 'send journal',
  policy: 'policy',
};

/** What holds payouts, in a few words: `four-eyes: needs approval`, `signature: expired`. */
export function holdName(held: Partial<Pick<HeldFor, 'kind' | 'reason' | 'rule'>> | undefined): string {
  const { kind, reason, rule } = held ?? {};
  const what = rule ?? (kind === undefined ? undefined : (KINDS[kind] ?? kind));
  const why = reason === undefined ? undefined : (VERDICTS[reason] ?? reason.replaceAll('_', ' '));
  return [what, why].filter((part) => part !== undefined).join(': ') || 'held';
}
