import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import type { Hold } from '../../ledger/payout.js';
import type { Policy } from './policy.js';
import {
  checkRule,
  describeRule,
  matches,
  mayCover,
  type PolicyRule,
  type PolicySubject,
  type PolicyWorld,
  type Verdict,
  waitForRate,
} from './rule.js';

export interface Decision {
  readonly verdict: Verdict;
  readonly all: readonly Verdict[];
}

const DEFAULT_RULE = 'default';

const STRICTNESS = ['send', 'wait', 'approve', 'refuse'] as const satisfies readonly Verdict['kind'][];

/**
 * The strictest rule counts, so their order means nothing. A value equal to a limit passes. A policy only holds: it
 * never cancels a payout.
 */
export function decide(policy: Policy, subject: PolicySubject, world: PolicyWorld): Decision {
  const all: Verdict[] = [];
  let isCovered = false;
  for (const rule of policy.rules) {
    try {
      const applies = matches(rule.when, subject, world);
      if (applies === 'no') continue;
      if (mayCover(rule, subject, world)) isCovered = true;
      all.push(applies === 'yes' ? checkRule(rule, subject, world, policy) : waitForRate(rule.name, applies.reason));
    } catch (error) {
      // It holds this payout alone: thrown, it would stop the account.
      const reason = `it could not be checked: ${(error as Error).message}`;
      all.push({ kind: 'refuse', rule: rule.name, reason, until: undefined });
    }
  }
  if (!isCovered && policy.uncovered === 'hold') {
    const reason = 'no rule with a cap covers it, and the policy holds such payouts (default: hold)';
    all.push({ kind: 'refuse', rule: DEFAULT_RULE, reason, until: undefined });
  }
  let verdict: Verdict = { kind: 'send', rule: DEFAULT_RULE };
  for (const each of all) if (isStricter(each, verdict)) verdict = each;
  return { verdict, all };
}

function isStricter(one: Verdict, other: Verdict): boolean {
  const difference = STRICTNESS.indexOf(one.kind) - STRICTNESS.indexOf(other.kind);
  if (difference !== 0) return difference > 0;
  return one.kind === 'wait' && other.kind === 'wait' && (one.until ?? Infinity) > (other.until ?? Infinity);
}

export function toHold(verdict: Exclude<Verdict, { kind: 'send' }>): Hold {
  const { kind: reason, rule } = verdict;
  const needs = verdict.kind === 'approve' ? { by: verdict.by, persons: verdict.missing } : undefined;
  const until = verdict.until === undefined ? undefined : new Date(verdict.until).toISOString();
  const message = `Rule ${rule} of the policy: ${verdict.reason}. ${describeWay(verdict)}`;
  return { kind: 'policy', reason, rule, message, isTampering: false, needs, until };
}

function describeWay(verdict: Exclude<Verdict, { kind: 'send' }>): string {
  if (verdict.kind === 'wait') return 'It is sent by itself when the rule lets it pass.';
  if (verdict.kind === 'refuse') return 'Change the policy, or cancel the payout.';
  const persons = verdict.missing === 1 ? '1 more person' : `${verdict.missing} more people`;
  return `${persons} of the group ${verdict.by} must approve it: \`payouts approve\`.`;
}

/** A rule's verdict: the end of a sentence that begins with the payout. */
export function describeVerdict(verdict: Verdict): string {
  if (verdict.kind === 'send') return 'passes';
  const until = verdict.until === undefined ? '' : ` until ${formatTimeUtc(toIsoTime(verdict.until))}`;
  if (verdict.kind !== 'approve') return `${verdict.kind === 'wait' ? 'waits' : 'is held'}${until}: ${verdict.reason}`;
  const approvals = verdict.missing === 1 ? '1 more approval' : `${verdict.missing} more approvals`;
  // There may be room without their approval.
  return `needs ${approvals} by ${verdict.by}${until === '' ? '' : `, or waits${until}`}: ${verdict.reason}`;
}

export interface RuleVerdict {
  readonly rule: string;
  readonly meaning: string;
  readonly text: string;
  readonly verdict?: Verdict;
}

/** Every rule in words, in the file's order, then what becomes of a payout that no cap covers. */
export function describePolicy({ rules, groups, uncovered }: Policy): { rule: string; meaning: string }[] {
  const persons = (rule: PolicyRule): string => {
    const { over } = rule;
    return over.kind === 'approve' ? ` (${[...(groups.get(over.by) ?? [])].join(', ')})` : '';
  };
  const meaning =
    uncovered === 'hold'
      ? 'a payout that no rule with a cap covers: it is held'
      : 'a payout that no rule is about: it is sent';
  return [
    ...rules.map((rule) => ({ rule: rule.name, meaning: `${describeRule(rule)}${persons(rule)}` })),
    { rule: DEFAULT_RULE, meaning },
  ];
}

/** The verdict of every rule, in the file's order, then the hold of a payout that no cap covers. */
export function listRuleVerdicts({ rules }: Policy, { all }: Decision): readonly RuleVerdict[] {
  const found = rules.map((rule): RuleVerdict => {
    const verdict = all.find((each) => each.rule === rule.name);
    const about = { rule: rule.name, meaning: describeRule(rule) };
    if (verdict === undefined) return { ...about, text: 'is not about it' };
    return { ...about, text: describeVerdict(verdict), verdict };
  });
  const rest = all.filter(({ rule }) => rule === DEFAULT_RULE && !rules.some(({ name }) => name === rule));
  const meaning = 'a payout that no rule with a cap covers: it is held';
  return [
    ...found,
    ...rest.map((verdict) => ({ rule: DEFAULT_RULE, meaning, text: describeVerdict(verdict), verdict })),
  ];
}
