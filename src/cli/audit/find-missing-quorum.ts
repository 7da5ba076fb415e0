import { decide, type PolicyWorld } from '../../control/policy/decide.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { PolicyRule } from '../../control/policy/policy.js';
import type { JournalEntry } from '../../journal/journal-line.js';

/** What is asked of a policy by which sends were judged. */
export type PolicyOfThen = Pick<LoadedPolicy, 'policy' | 'hash' | 'isListed'>;

/**
 * Whether a send had the approvals that the rules about it alone ask for: those without a window or hours, of which nobody knows any
 * more what they said. Only where the policy is the one by which the send was judged.
 * @param approvedBy - the persons whose approvals counted
 * @returns what is missing; undefined where nothing is, or the policy is another
 */
export function findMissingQuorum(
  { at, request, signed, judged }: JournalEntry,
  approvedBy: ReadonlySet<string>,
  { policy, hash, isListed }: PolicyOfThen,
): string | undefined {
  if (judged?.policy !== hash) return undefined;
  const { paymentId, amount, addressTo } = request;
  const world: PolicyWorld = {
    ...{ now: at, wallNow: at, isListed, approvedBy, rejectedBy: undefined, stranger: undefined, addressSeenAt: 0 },
    worth: judged.usd === undefined ? NOT_NOTED : { kind: 'known', micros: BigInt(judged.usd) },
    window: () => ({ sum: () => 0n, freeAt: () => undefined, ahead: 0n }),
  };
  const asked = { ...policy, uncovered: 'send', rules: policy.rules.filter(asksForPersons) } as const;
  const { verdict } = decide(asked, { paymentId, amount, addressTo, signer: signed?.key }, world);
  if (verdict.kind !== 'approve') return undefined;
  const persons = [...approvedBy].join(', ') || 'nobody';
  return `rule "${verdict.rule}" asks for ${verdict.missing} more of the group ${verdict.by} than approved it (${persons})`;
}

const NOT_NOTED = { kind: 'unknown', reason: 'it was not noted' } as const;

function asksForPersons({ over, cap, hours }: PolicyRule): boolean {
  return over.kind === 'approve' && cap?.withinMs === undefined && hours === undefined;
}
