import { DEFAULT_RULE, type Decision, type Verdict } from './decide.js';
import { describeRule } from './describe-rule.js';
import { describeVerdict } from './describe-verdict.js';
import type { Policy } from './policy.js';

export interface RuleVerdict {
  readonly rule: string;
  readonly meaning: string;
  /** The end of a sentence that begins with the payout. */
  readonly text: string;
  readonly verdict?: Verdict;
}

/** The verdict of every rule, in the order of the file. Last is the hold of a payout that no cap covers. */
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
