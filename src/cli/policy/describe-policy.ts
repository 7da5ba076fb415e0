import { describeRule } from '../../control/policy/describe-rule.js';
import { formatSpan } from '../../control/policy/format-span.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import { DEFAULT_USD, type UsdSettings } from '../../control/policy/policy.js';
import type { CliContext } from '../context/cli-context.js';
import { formatTable } from '../output/format-table.js';

/** A policy in words: each rule with what it means. */
export function formatPolicy({ policy, hash, file }: LoadedPolicy, colours: CliContext['colours']): string {
  const { uncovered, usd, groups, approvalsExpireAfterMs, rules } = policy;
  const rest = uncovered === 'hold' ? 'held' : 'sent';
  const facts = [
    ['hash', hash],
    ['default', `${uncovered}: what no rule with a cap is about is ${rest}`],
    ['dollars', describeUsd(usd ?? DEFAULT_USD)],
    ['approvals', `hold for ${formatSpan(approvalsExpireAfterMs)}`],
    ...[...groups].map(([name, persons]) => [`group ${name}`, [...persons].join(', ')]),
  ];
  return [
    `${colours.bold(file)}  policy of account ${policy.platformId}\n\n`,
    formatTable(facts.map(([name = '', value = '']) => ['', colours.dim(name), value])),
    '\nRules: each is asked, and the strictest counts; what equals a limit passes\n',
    formatTable(rules.map((rule) => ['', rule.name, describeRule(rule)])),
  ].join('');
}

function describeUsd(usd: UsdSettings): string {
  const pinned = [...usd.pinned].map(([paymentId, rate]) => `1 of currency ${paymentId} is ${rate} USD`);
  const moved = `one that moved by more than ${usd.maxMovePercent}% counts once it has stood as long`;
  return [`a rate counts for ${formatSpan(usd.maxAgeMs)}; ${moved}`, ...pinned].join('; ');
}

/** The same for programs. */
export function toPolicyJson({ policy, hash, file, warnings }: LoadedPolicy): object {
  const { platformId, uncovered, groups, rules } = policy;
  return {
    ...{ file, hash, platformId, default: uncovered },
    groups: Object.fromEntries([...groups].map(([name, persons]) => [name, [...persons]])),
    rules: rules.map((rule) => ({ name: rule.name, over: rule.over.kind, meaning: describeRule(rule) })),
    warnings,
  };
}
