import { describeVerdict } from '../../control/policy/describe-verdict.js';
import type { Verdict } from '../../control/policy/decide.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';
import { STATE_MEANING } from '../../ledger/states.js';
import type { Explanation } from '../../control/operator/explain-payout.js';
import { listRuleVerdicts } from '../../control/policy/rule-verdicts.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState } from '../output/colour-state.js';
import { formatTable } from '../output/format-table.js';

/** Why a payout is held now, what each rule says of it, and what this host does not know. */
export function formatExplanation(
  payout: Payout,
  { policy, hash, file }: LoadedPolicy,
  explanation: Explanation,
  colours: CliContext['colours'],
): string {
  const { payoutId, state, held } = payout;
  const { decision, unverified, unknown, approvals } = explanation;
  const rows = listRuleVerdicts(policy, decision).map(({ rule, text }) => ['', rule, text]);
  const notes = [
    ...(unverified === undefined
      ? []
      : [`Its signature does not count, so it is held whatever the policy says. ${unverified}`]),
    ...unknown.map((each) => `Not known on this host: ${each}.`),
  ];
  return [
    `${colours.bold(payoutId)}  ${colourState(state, colours)}: ${STATE_MEANING[state]}\n`,
    `  ${payout.amount} (payment_id ${payout.paymentId}) to ${payout.addressTo}\n\n`,
    held === undefined ? '' : `Held now: ${describeHold(held)}\n\n`,
    `Policy ${file}, ${hash}\n`,
    `With what this host knows, the payout ${describeVerdict(decision.verdict)}\n`,
    formatTable(rows),
    describeApprovals(approvals),
    notes.length === 0 ? '' : `\n${notes.join('\n')}\n`,
  ].join('');
}

function describeHold({ kind, reason, message, rule, until, needs }: HeldFor): string {
  const parts = [
    `${kind} (${reason}${rule === undefined ? '' : `, rule ${rule}`}): ${message}`,
    until === undefined ? '' : `until ${until}`,
    needs === undefined ? '' : `approvals that are missing, by ${needs.by}: ${needs.persons}`,
  ];
  return parts.filter(Boolean).join('; ');
}

function describeApprovals({ approvedBy, rejectedBy, refused }: Explanation['approvals']): string {
  const lines = [
    approvedBy.size === 0 ? '' : `\nApproved by ${[...approvedBy].join(', ')}\n`,
    rejectedBy === undefined ? '' : `\nRejected by ${rejectedBy}\n`,
    ...refused.map(({ by, message }) => `\nAn approval does not count, by key "${by}": ${message}\n`),
  ];
  return lines.join('');
}

/** The same for programs. */
export function toExplanationJson(
  { payoutId, state, held }: Payout,
  { policy, hash }: LoadedPolicy,
  { decision, approvals, unverified, unknown }: Explanation,
): object {
  return {
    ...{ payoutId, state, held, policyHash: hash, decision: toVerdictJson(decision.verdict) },
    rules: listRuleVerdicts(policy, decision).map(({ rule, verdict }) =>
      verdict === undefined ? { rule, kind: 'not_about_it' } : toVerdictJson(verdict),
    ),
    approvals: { approvedBy: [...approvals.approvedBy], rejectedBy: approvals.rejectedBy, refused: approvals.refused },
    unverified,
    unknown,
  };
}

function toVerdictJson(verdict: Verdict): object {
  const { rule, kind } = verdict;
  const { reason, until } = kind === 'send' ? {} : verdict;
  const needs = kind === 'approve' ? { by: verdict.by, persons: verdict.missing } : undefined;
  return {
    rule,
    kind,
    reason,
    until: until === undefined ? undefined : toIso(until),
    needs,
    text: describeVerdict(verdict),
  };
}

function toIso(at: number): string {
  return new Date(at).toISOString();
}
