import { DEFAULT_RULE, type Decision, type Verdict } from './decide.js';
import { describeRule } from './describe-rule.js';
import { describeVerdict } from './describe-verdict.js';
import type { Policy } from './policy.js';

/** What one rule says of a payout. */
export interface RuleVerdict {
  readonly rule: string;
  /** What the rule means, as a sentence. */
  readonly meaning: string;
  /** What it says, in words: the end of a sentence that begins with the payout. */
  readonly text: string;
  /** Undefined where the rule is not about the payout. */
  readonly verdict?: Verdict;
}

/** What every rule of a policy says of a payout, in the order of the file; last what holds one that no cap covers. */
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
