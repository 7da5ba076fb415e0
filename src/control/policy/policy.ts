import { z } from 'zod';
import { toUnits } from '../../base/decimal.js';
import { InvalidConfigError, type Problem } from '../../base/errors.js';
import { toProblem } from '../../base/fields.js';
import { personIdField } from '../keys/person.js';
import { type OfficeHours, parseOfficeHours } from './office-hours.js';
import { roundUpToMicros } from './usd.js';

/** Every scalar is text (YAML's failsafe schema), so that no amount was ever a float. */

const MS_OF = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION_RULE = 'must be a duration such as "15m", "24h" or "7d", of at most 31 days';
const LONGEST_MS = 31 * MS_OF.d;

export const durationField = z
  .string({ error: DURATION_RULE })
  // Before the conversion, so that an error shows the text as given.
  .refine((text) => /^[1-9]\d{0,6}[smhd]$/.test(text) && toMs(text) <= LONGEST_MS, DURATION_RULE)
  .transform(toMs);

function toMs(text: string): number {
  return Number(text.slice(0, -1)) * MS_OF[text.slice(-1) as keyof typeof MS_OF];
}

const DECIMAL = /^(0|[1-9]\d{0,29})(\.\d{1,18})?$/;
const DECIMAL_RULE =
  'must be a decimal such as "2.5": up to 30 digits, then at most 18 decimal places, no sign, no exponent';

/** Units of 10⁻³⁶ of a currency. */
const amountLimitField = z.string({ error: DECIMAL_RULE }).regex(DECIMAL, DECIMAL_RULE).transform(toUnits);

const USD_RULE = 'must be US dollars such as "5000" or "0.5", with at most 6 decimal places';

/** Millionths of a dollar. */
const usdField = z
  .string({ error: USD_RULE })
  .regex(/^(0|[1-9]\d{0,29})(\.\d{1,6})?$/, USD_RULE)
  .transform((text) => roundUpToMicros(toUnits(text)));

const COUNT_RULE = 'must be a whole number of sends such as "500"';
const countField = z
  .string({ error: COUNT_RULE })
  .regex(/^(0|[1-9]\d{0,8})$/, COUNT_RULE)
  .transform(BigInt);

const PERCENT_RULE = 'must be a share such as "25%", from 1% to 1000%';

const percentField = z
  .string({ error: PERCENT_RULE })
  .regex(/^([1-9]\d{0,2}|1000)%$/, PERCENT_RULE)
  .transform((text) => Number(text.slice(0, -1)));

const ID_RULE = 'must be the id of a currency such as "6"';
const paymentIdField = z
  .string({ error: ID_RULE })
  .regex(/^[1-9]\d{0,14}$/, ID_RULE)
  .transform(Number);

export interface Condition {
  readonly paymentIds?: ReadonlySet<number> | undefined;
  /**
   * First seen less than the rule's `wait` ago. "Was never paid" would not do: a small first payment would evade it.
   */
  readonly isAddressNew?: boolean | undefined;
  /** An unknown form or a wrong checksum. */
  readonly isAddressUnparsed?: boolean | undefined;
  /** Millionths of a dollar. */
  readonly usdAbove?: bigint | undefined;
  readonly addressIn?: string | undefined;
}

const BUCKETS = ['address', 'signer'] as const;

export interface Cap {
  readonly unit: 'usd' | 'amount' | 'count';
  /** Millionths of a dollar, units of 10⁻³⁶ of the currency, or sends. */
  readonly limit: bigint;
  /** The rolling window, ms; without it each payout is compared alone. */
  readonly withinMs?: number | undefined;
  readonly per?: (typeof BUCKETS)[number] | undefined;
}

export type Over =
  | { readonly kind: 'refuse' }
  /** Until there is room, or the hours begin. */
  | { readonly kind: 'wait' }
  /** This long after the address was first seen. */
  | { readonly kind: 'cool_down'; readonly ms: number }
  | { readonly kind: 'approve'; readonly by: string; readonly quorum: number };

export interface PolicyRule {
  readonly name: string;
  readonly when: Condition;
  readonly cap?: Cap | undefined;
  readonly hours?: OfficeHours | undefined;
  readonly over: Over;
}

export interface UsdSettings {
  /** Older rates do not count, ms. */
  readonly maxAgeMs: number;
  /** A rate that moved further in one step does not count, per cent. */
  readonly maxMovePercent: number;
  /** Fixed rates, by currency. */
  readonly pinned: ReadonlyMap<number, string>;
}

export const DEFAULT_USD: UsdSettings = { maxAgeMs: 15 * 60_000, maxMovePercent: 25, pinned: new Map() };

export interface Policy {
  readonly platformId: number;
  /** What happens to a payout that no cap covers. */
  readonly uncovered: 'hold' | 'send';
  readonly usd: UsdSettings | undefined;
  readonly groups: ReadonlyMap<string, ReadonlySet<string>>;
  readonly approvalsExpireAfterMs: number;
  /** Applications may name requesters who are not in the keyring. */
  readonly anyoneMayRequest: boolean;
  readonly rules: readonly PolicyRule[];
}

const NAME_RULE = 'must be 1 to 40 of a-z, 0-9 and -';
const nameField = z.string({ error: NAME_RULE }).regex(/^[a-z0-9][a-z0-9-]{0,39}$/, NAME_RULE);

const when = z
  .strictObject({
    paymentId: z.array(paymentIdField, { error: 'must be a list of ids such as ["6"]' }).min(1).exactOptional(),
    address: z.enum(['new', 'unparsed'], { error: 'must be new or unparsed' }).exactOptional(),
    usdAbove: usdField.exactOptional(),
    addressIn: z.string().min(1).exactOptional(),
  })
  .transform(({ paymentId, address, usdAbove, addressIn }): Condition => ({
    paymentIds: paymentId && new Set(paymentId),
    isAddressNew: address === 'new' || undefined,
    isAddressUnparsed: address === 'unparsed' || undefined,
    usdAbove,
    addressIn,
  }));

const cap = z.strictObject({
  usd: usdField.exactOptional(),
  amount: amountLimitField.exactOptional(),
  count: countField.exactOptional(),
  within: durationField.exactOptional(),
  per: z.enum(BUCKETS, { error: `must be ${BUCKETS.join(' or ')}` }).exactOptional(),
});

const QUORUM_RULE = 'must be a whole number from 1 to 20';
const over = z
  .union(
    [
      z.enum(['refuse', 'wait']).transform((kind) => ({ kind })),
      z.strictObject({ wait: durationField }).transform(({ wait }) => ({ kind: 'cool_down' as const, ms: wait })),
      z
        .strictObject({
          approve: z.strictObject({
            by: nameField,
            quorum: z
              .string({ error: QUORUM_RULE })
              .regex(/^([1-9]|1\d|20)$/, QUORUM_RULE)
              .transform(Number),
          }),
        })
        .transform(({ approve }) => ({ kind: 'approve' as const, ...approve })),
    ],
    'must be refuse, wait, { wait: "24h" } or { approve: { by: GROUP, quorum: "2" } }',
  )
  .transform((value): Over => value);

const hours = z.string().transform((text, context): OfficeHours => {
  try {
    return parseOfficeHours(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as RangeError).message, input: text });
    return z.NEVER;
  }
});

const rule = z.strictObject({
  name: nameField,
  when: when.default({}),
  cap: cap.exactOptional(),
  window: hours.exactOptional(),
  over,
});

type GivenRule = z.output<typeof rule>;

/** Finds contradictions when the file is read, not when a payout waits. */
function* judgeRule({ when: given, cap: limit, window, over: then }: GivenRule): Generator<Problem> {
  if (limit !== undefined) yield* judgeCap(limit, given);
  if (limit !== undefined && window !== undefined) {
    const message = 'cannot stand beside a cap: make two rules, all of which have to let a payout pass';
    yield { field: 'window', message };
  }
  const isAboutAll = Object.values(given).every((value) => value === undefined);
  if (limit === undefined && window === undefined && isAboutAll) {
    const message = 'is missing: without it, a cap or a window the rule would be about every payout';
    yield { field: 'when', message };
  }
  if (then.kind === 'wait' && window === undefined && limit?.within === undefined) {
    const message = 'is wait, which would never end: only a window, or a cap with within, makes room by itself';
    yield { field: 'over', message };
  }
  if (then.kind === 'cool_down' && (given.isAddressNew !== true || limit !== undefined || window !== undefined)) {
    yield { field: 'over.wait', message: 'with a duration goes with when: { address: new } alone' };
  }
  if (given.isAddressNew === true && then.kind !== 'cool_down') {
    yield { field: 'when.address', message: 'is new for as long as over says: give over: { wait: "24h" }' };
  }
}

/** A journal certainly has every send of this time. */
const LONGEST_WINDOW_MS = 7 * 86_400_000;

function* judgeCap(limit: z.output<typeof cap>, { paymentIds }: Condition): Generator<Problem> {
  const { usd, amount, count, within, per } = limit;
  if ([usd, amount, count].filter((each) => each !== undefined).length !== 1) {
    yield { field: 'cap', message: 'needs one of usd, amount and count' };
  }
  if (amount !== undefined && paymentIds?.size !== 1) {
    const message = 'needs when: { paymentId: [ONE] }, since amounts of two currencies cannot be added';
    yield { field: 'cap.amount', message };
  }
  if (within !== undefined && within > LONGEST_WINDOW_MS) {
    yield { field: 'cap.within', message: 'must be at most 7d: for so long each send is known' };
  }
  if (count !== undefined && within === undefined) {
    yield { field: 'cap.count', message: 'needs within: one payout is always one' };
  }
  if (per !== undefined && within === undefined) {
    yield { field: 'cap.per', message: 'needs within: what one payout is counts for itself' };
  }
}

function toRule({ name, when: given, cap: limit, window, over: then }: GivenRule): PolicyRule {
  return { name, when: given, cap: limit && toCap(limit), hours: window, over: then };
}

function toCap({ usd, amount, count, within, per }: z.output<typeof cap>): Cap {
  const unit = usd !== undefined ? 'usd' : amount !== undefined ? 'amount' : 'count';
  return { unit, limit: usd ?? amount ?? count ?? 0n, withinMs: within, per };
}

const DAY_MS = 24 * 3_600_000;
const ACCOUNT_RULE = 'must be the number of the account, such as "4242"';
const policyFile = z.strictObject({
  version: z.literal('1', { error: 'must be 1' }),
  platformId: z
    .string({ error: ACCOUNT_RULE })
    .regex(/^[1-9]\d{0,14}$/, ACCOUNT_RULE)
    .transform(Number),
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
  rules: z.array(rule, { error: 'must be a list of rules' }),
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
    ...given.flatMap((each, index) => [...judgeRule(each)].map((problem) => inRule(index, problem))),
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

function inRule(index: number, { field, message }: Problem): Problem {
  return { field: `rules.${index}.${field}`, message };
}

function readPinned(given: Readonly<Record<string, string>>): { rates: Map<number, string>; problems: Problem[] } {
  const rates = new Map<number, string>();
  const problems: Problem[] = [];
  for (const [id, rate] of Object.entries(given)) {
    const parsed = paymentIdField.safeParse(id);
    const isRate = /^(0|[1-9]\d{0,11})(\.\d{1,18})?$/.test(rate) && !/^0(\.0+)?$/.test(rate);
    if (parsed.success && isRate) rates.set(parsed.data, rate);
    else
      problems.push({
        field: `usd.pinned.${id}`,
        message: `must be a currency's id and its rate in dollars, such as "6": "1" (got "${rate}")`,
      });
  }
  return { rates, problems };
}

function findDuplicates(rules: readonly PolicyRule[]): Problem[] {
  const names = rules.map(({ name }) => name);
  return names.flatMap((name, index) =>
    names.indexOf(name) === index
      ? []
      : [{ field: `rules.${index}.name`, message: `is also the name of rules.${names.indexOf(name)} (got "${name}")` }],
  );
}

function findShortGroups(rules: readonly PolicyRule[], groups: Policy['groups']): Problem[] {
  return rules.flatMap(({ over: then }, index) => {
    if (then.kind !== 'approve') return [];
    const field = `rules.${index}.over.approve`;
    const persons = groups.get(then.by);
    if (persons === undefined) return [{ field: `${field}.by`, message: `names no group (got "${then.by}")` }];
    return then.quorum <= persons.size
      ? []
      : [
          {
            field: `${field}.quorum`,
            message: `is ${then.quorum}, and the group ${then.by} has ${persons.size} ${persons.size === 1 ? 'person' : 'people'}`,
          },
        ];
  });
}
