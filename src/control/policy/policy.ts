import { z } from 'zod';
import { DAY_MS } from '../../base/clock.js';
import { InvalidConfigError, type Problem } from '../../base/errors.js';
import { toProblem } from '../../base/fields.js';
import { personIdField } from '../keys/person.js';
import { type Electorate, findContradictions, nameField, type PolicyRule, ruleField, toRule } from './rule.js';
import { durationField, paymentIdField, textField } from './values.js';

export interface UsdSettings {
  readonly maxAgeMs: number;
  /** A rate that moved further in one step does not count, per cent. */
  readonly maxMovePercent: number;
  readonly pinned: ReadonlyMap<number, string>;
}

export const DEFAULT_USD: UsdSettings = { maxAgeMs: 15 * 60_000, maxMovePercent: 25, pinned: new Map() };

export interface Policy extends Electorate {
  readonly platformId: number;
  readonly uncovered: 'hold' | 'send';
  readonly usd: UsdSettings | undefined;
  readonly approvalsExpireAfterMs: number;
  readonly rules: readonly PolicyRule[];
}

const percentField = textField('must be a share such as "25%", from 1% to 1000%', /^([1-9]\d{0,2}|1000)%$/).transform(
  (text) => Number(text.slice(0, -1)),
);

const policyFile = z.strictObject({
  version: z.literal('1', { error: 'must be 1' }),
  platformId: textField('must be the number of the account, such as "4242"', /^[1-9]\d{0,14}$/).transform(Number),
  default: z.enum(['hold', 'send'], { error: 'must be hold or send' }),
  usd: z
    .strictObject({
      maxAge: durationField.default(DEFAULT_USD.maxAgeMs),
      maxMove: percentField.default(DEFAULT_USD.maxMovePercent),
      pinned: z.record(z.string(), z.string()).default({}),
    })
    .exactOptional(),
  groups: z.record(nameField, z.array(personIdField).min(1)).default({}),
  approvals: z
    .strictObject({
      expireAfter: durationField.default(DAY_MS),
      requestedBy: z.enum(['keyring', 'any'], { error: 'must be keyring or any' }).default('keyring'),
    })
    .default({ expireAfter: DAY_MS, requestedBy: 'keyring' }),
  rules: z.array(ruleField, { error: 'must be a list of rules' }),
});

/** @throws InvalidConfigError naming every problem, such as `rules.2.cap.usd` */
export function parsePolicy(content: unknown): Policy {
  const parsed = policyFile.safeParse(content, { reportInput: true });
  if (!parsed.success) throw new InvalidConfigError(parsed.error.issues.map(toPlacedProblem));
  const { platformId, default: uncovered, usd, approvals, rules: given } = parsed.data;
  const groups = new Map(Object.entries(parsed.data.groups).map(([name, persons]) => [name, new Set(persons)]));
  const rules = given.map(toRule);
  const pinned = readPinned(usd?.pinned ?? {});
  const problems = [
    ...pinned.problems,
    ...given.flatMap((rule, index) =>
      [...findContradictions(rule)].map(({ field, message }) => ({ field: `rules.${index}.${field}`, message })),
    ),
    ...findDuplicates(rules),
    ...findShortGroups(rules, groups),
  ];
  if (problems.length > 0) throw new InvalidConfigError(problems);
  const rates = usd && { maxAgeMs: usd.maxAge, maxMovePercent: usd.maxMove, pinned: pinned.rates };
  return {
    ...{ platformId, uncovered, usd: rates, groups, rules },
    ...{ approvalsExpireAfterMs: approvals.expireAfter, anyoneMayRequest: approvals.requestedBy === 'any' },
  };
}

/** Names the place even of an unknown field: there are many rules with many fields. */
function toPlacedProblem(issue: z.core.$ZodIssue): Problem {
  const problem = toProblem(issue);
  if (issue.code !== 'unrecognized_keys') return problem;
  return { ...problem, field: issue.keys.map((key) => [...issue.path, key].join('.')).join(', ') };
}

function readPinned(given: Readonly<Record<string, string>>): { rates: Map<number, string>; problems: Problem[] } {
  const rates = new Map<number, string>();
  const problems: Problem[] = [];
  for (const [id, rate] of Object.entries(given)) {
    const parsed = paymentIdField.safeParse(id);
    const isRate = /^(0|[1-9]\d{0,11})(\.\d{1,18})?$/.test(rate) && !/^0(\.0+)?$/.test(rate);
    const message = `must be a currency's id and its rate in dollars, such as "6": "1" (got "${rate}")`;
    if (parsed.success && isRate) rates.set(parsed.data, rate);
    else problems.push({ field: `usd.pinned.${id}`, message });
  }
  return { rates, problems };
}

function findDuplicates(rules: readonly PolicyRule[]): Problem[] {
  const names = rules.map(({ name }) => name);
  return names.flatMap((name, index): Problem[] => {
    const first = names.indexOf(name);
    if (first === index) return [];
    return [{ field: `rules.${index}.name`, message: `is also the name of rules.${first} (got "${name}")` }];
  });
}

function findShortGroups(rules: readonly PolicyRule[], groups: Policy['groups']): Problem[] {
  return rules.flatMap(({ over }, index): Problem[] => {
    if (over.kind !== 'approve') return [];
    const { by, quorum } = over;
    const field = `rules.${index}.over.approve`;
    const size = groups.get(by)?.size;
    if (size === undefined) return [{ field: `${field}.by`, message: `names no group (got "${by}")` }];
    const message = `is ${quorum}, and the group ${by} has ${size} ${size === 1 ? 'person' : 'people'}`;
    return quorum <= size ? [] : [{ field: `${field}.quorum`, message }];
  });
}
