import { describeVerdict } from '../../control/policy/describe-verdict.js';
import { DEFAULT_RULE, type Verdict } from '../../control/policy/decide.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';
import { STATE_MEANING } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState } from '../output/colour-state.js';
import { formatTable } from '../output/format-table.js';
import type { Explanation } from './explain-payout.js';

/** Why a payout is held now, what each rule says of it, and what this host does not know. */
export function formatExplanation(
  payout: Payout,
  { policy, hash, file }: LoadedPolicy,
  explanation: Explanation,
  colours: CliContext['colours'],
): string {
  const { payoutId, state, held } = payout;
  const { decision, unverified, unknown, approvals } = explanation;
  const rows = rulesOf(policy.rules, decision.all).map(({ rule, text }) => ['', rule, text]);
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

/** Every rule of the file, and what holds a payout that no cap covers. */
function rulesOf(
  rules: LoadedPolicy['policy']['rules'],
  verdicts: readonly Verdict[],
): { readonly rule: string; readonly text: string; readonly verdict?: Verdict }[] {
  const found = rules.map(({ name }) => {
    const verdict = verdicts.find(({ rule }) => rule === name);
    return verdict === undefined
      ? { rule: name, text: 'is not about it' }
      : { rule: name, text: describeVerdict(verdict), verdict };
  });
  const rest = verdicts.filter(({ rule }) => rule === DEFAULT_RULE && !rules.some(({ name }) => name === rule));
  return [...found, ...rest.map((verdict) => ({ rule: verdict.rule, text: describeVerdict(verdict), verdict }))];
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
    rules: rulesOf(policy.rules, decision.all).map(({ rule, verdict }) =>
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
