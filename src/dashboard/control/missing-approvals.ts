import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { MissingApprovals, Payout } from '../../ledger/payout.js';

/**
 * Whose approvals a held payout lacks: by the dashboard's own policy where it has one, else as the worker said last, which
 * may not have seen the newest approval yet.
 * @param approvedBy - persons whose approval counts
 * @returns undefined where none is missing, or nobody said so
 */
export function findMissing(
  { held }: Payout,
  approvedBy: ReadonlySet<string>,
  loaded: LoadedPolicy | undefined,
): MissingApprovals | undefined {
  const rule = loaded?.policy.rules.find(({ name }) => name === held?.rule);
  if (rule?.over.kind !== 'approve') return held?.needs;
  const { by, quorum } = rule.over;
  const group = loaded?.policy.groups.get(by);
  const persons = quorum - [...approvedBy].filter((person) => group?.has(person)).length;
  return persons > 0 ? { by, persons } : undefined;
}
