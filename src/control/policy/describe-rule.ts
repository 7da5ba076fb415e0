import { fromUnits } from '../../base/decimal.js';
import { type Decision, DEFAULT_RULE, type Verdict } from './decide.js';
import type { Cap, Policy, PolicyRule } from './policy.js';
import { formatMicros } from './usd.js';

export function describeRule(rule: PolicyRule): string {
  const { cap, hours, over } = rule;
  const about = describeCondition(rule);
  if (cap !== undefined) return `${about}: ${describeCap(cap)}, else ${describeOver(rule)}`;
  if (hours !== undefined) return `${about}: only ${hours.text}, else ${describeOver(rule)}`;
  if (over.kind === 'cool_down') return `${about}: waits until the ${formatSpan(over.ms)} are over`;
  return `${about}: ${describeOver(rule)}`;
}

function describeCondition({ when, over }: PolicyRule): string {
  const { paymentIds, isAddressNew, isAddressUnparsed, usdAbove, addressIn } = when;
  const parts = [
    paymentIds && `in currency ${[...paymentIds].join(' or ')}`,
    isAddressNew && over.kind === 'cool_down' && `to an address first seen less than ${formatSpan(over.ms)} ago`,
    isAddressUnparsed && 'to an address that cannot be read',
    addressIn !== undefined && `to an address of ${addressIn}`,
    usdAbove !== undefined && `worth more than ${formatMicros(usdAbove)} USD`,
  ].filter((part) => typeof part === 'string');
  return parts.length === 0 ? 'every payout' : `a payout ${parts.join(', ')}`;
}

function describeCap({ unit, limit, withinMs, per }: Cap): string {
  const most = unit === 'usd' ? `${formatMicros(limit)} USD` : unit === 'count' ? `${limit} sends` : fromUnits(limit);
  if (withinMs === undefined) return `at most ${most} each`;
  const apart = per === undefined ? '' : per === 'address' ? ' to one address' : ' signed with one key';
  return `at most ${most} in any ${formatSpan(withinMs)}${apart}`;
}

function describeOver({ over, cap, hours }: PolicyRule): string {
  const makesRoom = cap?.withinMs !== undefined;
  if (over.kind === 'approve') {
    const approvals = over.quorum === 1 ? '1 approval' : `${over.quorum} approvals`;
    return `it needs ${approvals} by ${over.by}${makesRoom ? ', or room' : ''}`;
  }
  const verb = over.kind === 'wait' ? 'waits' : 'is held';
  if (hours !== undefined) return `it ${verb} until then`;
  return makesRoom ? `it ${verb} until there is room` : `it ${verb} until the policy changes`;
}

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

const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;
const DAY_MS = 86_400_000;

/** An exact duration: `7 d`, but `24 h`; `90 min`. @param ms - whole seconds */
export function formatSpan(ms: number): string {
  if (ms > DAY_MS && ms % DAY_MS === 0) return `${ms / DAY_MS} d`;
  const [name, size] = UNITS.find(([, each]) => ms % each === 0) ?? UNITS[2];
  return `${ms / size} ${name}`;
}

export interface RuleVerdict {
  readonly rule: string;
  readonly meaning: string;
  readonly text: string;
  readonly verdict?: Verdict;
}

/** The verdict of every rule, in the file's order, then the hold of a payout that no cap covers. */
export function listRuleVerdicts({ rules }: Policy, { all }: Decision): readonly RuleVerdict[] {
  const found = rules.map((rule): RuleVerdict => {
    const { name } = rule;
    const verdict = all.find((each) => each.rule === name);
    const about = { rule: name, meaning: describeRule(rule) };
    if (verdict === undefined) return { ...about, text: 'is not about it' };
    return { ...about, text: describeVerdict(verdict), verdict };
  });
  const rest = all.filter(({ rule }) => rule === DEFAULT_RULE && !rules.some(({ name }) => name === rule));
  const meaning = 'a payout that no rule with a cap is about: it is held';
  return [
    ...found,
    ...rest.map((verdict) => ({ rule: verdict.rule, meaning, text: describeVerdict(verdict), verdict })),
  ];
}
