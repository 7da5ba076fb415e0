import { z } from 'zod';
import { fromUnits, toUnits } from '../../base/decimal.js';
import { formatExact } from '../../base/format.js';
import type { Problem } from '../../base/errors.js';
import { parseWallet, walletKey } from '../../gateway/wallet.js';
import { type OfficeHours, parseOfficeHours } from './office-hours.js';
import {
  amountLimitField,
  durationField,
  formatMicros,
  formatSpan,
  paymentIdField,
  textField,
  usdField,
} from './values.js';

/**
 * The rules of a policy: their form, contradictions, check and text. A new kind of rule is an entry of `CONDITIONS`, or
 * a field of `ruleField` with its part in `findContradictions`, `checkRule` and `describeRule`.
 */

export interface PolicySubject {
  readonly paymentId: number;
  /** The most of that currency that the payment may be; the reason if that is not known. */
  readonly amount: string | { readonly reason: string };
  readonly addressTo: string;
  readonly signer?: string | undefined;
}

export type UsdWorth =
  { readonly kind: 'known'; readonly micros: bigint } | { readonly kind: 'unknown'; readonly reason: string };

/** A cap's window, in the unit of the cap. `ahead` sums earlier payouts that wait for room. */
export interface WindowView {
  readonly sum: (now: number) => bigint;
  /** See `SpendingLog.freeAt`. */
  readonly freeAt: (most: bigint, now: number) => number | undefined;
  readonly unknown?: string | undefined;
  readonly ahead: bigint;
}

/**
 * `wallet` ignores the destination tag: no tag evades a rule that holds. `recipient` includes it: a rule that passes
 * one recipient passes no other.
 */
export type IsListed = (list: string, addressTo: string, as: 'wallet' | 'recipient') => boolean;

/** `now` is monotonic and ages windows; other times are wall clock, ms. */
export interface PolicyWorld {
  readonly now: number;
  readonly wallNow: number;
  readonly worth: UsdWorth;
  readonly addressSeenAt: number | undefined;
  readonly isListed: IsListed;
  readonly window: (rule: string, bucket: string) => WindowView;
  readonly approvedBy: ReadonlySet<string>;
  readonly stranger: string | undefined;
}

type ConditionWorld = Pick<PolicyWorld, 'isListed' | 'worth'>;

/** Unknown with the reason: it may be anything, so the rule then holds the payout. */
type Match = 'yes' | 'no' | { readonly reason: string };

interface ConditionKind<Field extends z.ZodType> {
  readonly field: Field;
  readonly matches: (value: z.output<Field>, subject: PolicySubject, world: ConditionWorld) => boolean | Match;
  readonly text: (value: z.output<Field>, over: Over) => string;
}

function condition<Field extends z.ZodType>(kind: ConditionKind<Field>): ConditionKind<Field> {
  return kind;
}

const CONDITIONS = {
  paymentId: condition({
    field: z
      .array(paymentIdField, { error: 'must be a list of ids such as ["6"]' })
      .min(1)
      .transform((ids): ReadonlySet<number> => new Set(ids)),
    matches: (ids, { paymentId }) => ids.has(paymentId),
    text: (ids) => `in currency ${[...ids].join(' or ')}`,
  }),
  /**
   * `new`: first seen less than the rule's `wait` ago, see {@link checkRule}. "Was never paid" would not do: a small
   * first payment would evade it. `unparsed`: an unknown form or a wrong checksum.
   */
  address: condition({
    field: z.enum(['new', 'unparsed'], { error: 'must be new or unparsed' }),
    matches: (kind, { addressTo }) => kind === 'new' || !isParsed(addressTo),
    text: (kind, over) =>
      kind === 'unparsed'
        ? 'to an address that cannot be read'
        : `to an address first seen less than ${over.kind === 'cool_down' ? formatSpan(over.ms) : ''} ago`,
  }),
  addressIn: condition({
    field: z.string().min(1),
    matches: (list, { addressTo }, { isListed }) => isListed(list, addressTo, 'wallet'),
    text: (list) => `to an address of ${list}`,
  }),
  usdAbove: condition({
    field: usdField,
    matches: (limit, _, { worth }) => (worth.kind === 'known' ? worth.micros > limit : worth),
    text: (limit) => `worth more than ${formatExact(formatMicros(limit), 'USD')}`,
  }),
};

type ConditionName = keyof typeof CONDITIONS;

type Condition = {
  readonly [Name in ConditionName]?: z.output<(typeof CONDITIONS)[Name]['field']> | undefined;
};

const conditionField = z.strictObject(
  Object.fromEntries(Object.entries(CONDITIONS).map(([name, { field }]) => [name, field.exactOptional()])),
) as unknown as z.ZodType<Condition>;

function kindsOf(when: Condition): [ConditionKind<z.ZodType>, unknown][] {
  return Object.entries(CONDITIONS).flatMap(([name, kind]) => {
    const value = when[name as ConditionName];
    return value === undefined ? [] : [[kind, value]];
  });
}

export function matches(when: Condition, subject: PolicySubject, world: ConditionWorld): Match {
  let found: Match = 'yes';
  for (const [kind, value] of kindsOf(when)) {
    const match = kind.matches(value, subject, world);
    if (match === false || match === 'no') return 'no';
    if (typeof match === 'object') found = match;
  }
  return found;
}

function isParsed(addressTo: string): boolean {
  const { family, problem } = parseWallet(addressTo);
  return family !== undefined && problem === undefined;
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

const capField = z.strictObject({
  usd: usdField.exactOptional(),
  amount: amountLimitField.exactOptional(),
  count: textField('must be a whole number of sends such as "500"', /^(0|[1-9]\d{0,8})$/)
    .transform(BigInt)
    .exactOptional(),
  within: durationField.exactOptional(),
  per: z.enum(BUCKETS, { error: `must be ${BUCKETS.join(' or ')}` }).exactOptional(),
});

export type Over =
  | { readonly kind: 'refuse' }
  | { readonly kind: 'wait' }
  | { readonly kind: 'cool_down'; readonly ms: number }
  | { readonly kind: 'approve'; readonly by: string; readonly quorum: number };

export const nameField = textField('must be 1 to 40 of a-z, 0-9 and -', /^[a-z0-9][a-z0-9-]{0,39}$/);

const approveField = z.strictObject({
  by: nameField,
  quorum: textField('must be a whole number from 1 to 20', /^([1-9]|1\d|20)$/).transform(Number),
});

const overField = z
  .union(
    [
      z.enum(['refuse', 'wait']).transform((kind) => ({ kind })),
      z.strictObject({ wait: durationField }).transform(({ wait }) => ({ kind: 'cool_down' as const, ms: wait })),
      z.strictObject({ approve: approveField }).transform(({ approve }) => ({ kind: 'approve' as const, ...approve })),
    ],
    'must be refuse, wait, { wait: "24h" } or { approve: { by: GROUP, quorum: "2" } }',
  )
  .transform((value): Over => value);

const hoursField = z.string().transform((text, context): OfficeHours => {
  try {
    return parseOfficeHours(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as RangeError).message, input: text });
    return z.NEVER;
  }
});

export const ruleField = z.strictObject({
  name: nameField,
  when: conditionField.default({}),
  cap: capField.exactOptional(),
  window: hoursField.exactOptional(),
  over: overField,
});

type GivenRule = z.output<typeof ruleField>;

export interface PolicyRule {
  readonly name: string;
  readonly when: Condition;
  readonly cap?: Cap | undefined;
  readonly hours?: OfficeHours | undefined;
  readonly over: Over;
}

export function toRule({ name, when, cap, window: hours, over }: GivenRule): PolicyRule {
  if (cap === undefined) return { name, when, hours, over };
  const { usd, amount, count, within, per } = cap;
  const unit = usd !== undefined ? 'usd' : amount !== undefined ? 'amount' : 'count';
  return { name, when, cap: { unit, limit: usd ?? amount ?? count ?? 0n, withinMs: within, per }, hours, over };
}

/** Finds contradictions when the file is read, not when a payout waits. */
export function* findContradictions({ when, cap, window, over }: GivenRule): Generator<Problem> {
  if (cap !== undefined) yield* findCapProblems(cap, when);
  if (cap !== undefined && window !== undefined) {
    const message = 'cannot stand beside a cap: make two rules, all of which have to let a payout pass';
    yield { field: 'window', message };
  }
  if (cap === undefined && window === undefined && kindsOf(when).length === 0) {
    const message = 'is missing: without it, a cap or a window the rule would be about every payout';
    yield { field: 'when', message };
  }
  if (over.kind === 'wait' && window === undefined && cap?.within === undefined) {
    const message = 'is wait, which would never end: only a window, or a cap with within, makes room by itself';
    yield { field: 'over', message };
  }
  if (over.kind === 'cool_down' && (when.address !== 'new' || cap !== undefined || window !== undefined)) {
    yield { field: 'over.wait', message: 'with a duration goes with when: { address: new } alone' };
  }
  if (when.address === 'new' && over.kind !== 'cool_down') {
    yield { field: 'when.address', message: 'is new for as long as over says: give over: { wait: "24h" }' };
  }
}

/** A journal certainly has every send of this time. */
const LONGEST_WINDOW_MS = 7 * 86_400_000;

function* findCapProblems(cap: z.output<typeof capField>, { paymentId }: Condition): Generator<Problem> {
  const { usd, amount, count, within, per } = cap;
  if ([usd, amount, count].filter((each) => each !== undefined).length !== 1) {
    yield { field: 'cap', message: 'needs one of usd, amount and count' };
  }
  if (amount !== undefined && paymentId?.size !== 1) {
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

/** Whether the verdict depends neither on other sends nor on the hour. */
export function isEarly({ cap, hours }: PolicyRule): boolean {
  return cap?.withinMs === undefined && hours === undefined;
}

export function isInDollars({ when, cap }: PolicyRule): boolean {
  return when.usdAbove !== undefined || cap?.unit === 'usd';
}

/** Equal for rules that count the same spends, in the same unit and buckets. */
export function seriesOf({ when, cap }: PolicyRule): string {
  return JSON.stringify([when, cap?.unit, cap?.per], (_, value: unknown) =>
    value instanceof Set ? [...value].sort() : typeof value === 'bigint' ? value.toString() : value,
  );
}

/** Under `default: hold`, a cap with a list passes only the listed recipients of a wallet. */
export function mayCover({ cap, when }: PolicyRule, { addressTo }: PolicySubject, { isListed }: PolicyWorld): boolean {
  return cap !== undefined && (when.addressIn === undefined || isListed(when.addressIn, addressTo, 'recipient'));
}

/** `until` is wall clock, ms; undefined if unknown. */
export type Verdict = { readonly rule: string } & (
  { readonly kind: 'send' } | ({ readonly reason: string; readonly until: number | undefined } & Shortfall)
);

type Shortfall =
  | { readonly kind: 'refuse' }
  /** `waitsFor` is room in a window, in the unit of the cap: first come, first served. */
  | { readonly kind: 'wait'; readonly waitsFor?: { readonly bucket: string; readonly value: bigint } | undefined }
  /** `missing` people of the group must still approve. */
  | { readonly kind: 'approve'; readonly by: string; readonly missing: number };

export interface Electorate {
  readonly groups: ReadonlyMap<string, ReadonlySet<string>>;
  /** Applications may name requesters who are not in the keyring. */
  readonly anyoneMayRequest: boolean;
}

export function checkRule(rule: PolicyRule, subject: PolicySubject, world: PolicyWorld, people: Electorate): Verdict {
  const { name, cap, hours, over } = rule;
  const hold = (reason: string, until?: number): Verdict => holdBy(rule, reason, until, world, people);
  if (cap !== undefined) return checkCap(name, cap, over, subject, world, hold);
  if (hours !== undefined) {
    if (hours.isOpen(world.wallNow)) return { kind: 'send', rule: name };
    return hold(`it is outside of ${hours.text}`, hours.opensAt(world.wallNow));
  }
  if (over.kind !== 'cool_down') return hold('the rule is about it');
  const until = (world.addressSeenAt ?? world.wallNow) + over.ms;
  if (until <= world.wallNow) return { kind: 'send', rule: name };
  return { kind: 'wait', rule: name, reason: 'its address is new', until };
}

function checkCap(
  rule: string,
  cap: Cap,
  over: Over,
  subject: PolicySubject,
  { worth, now, wallNow, window }: PolicyWorld,
  hold: (reason: string, until?: number) => Verdict,
): Verdict {
  const value = valueOf(cap, subject, worth);
  if (typeof value !== 'bigint') return waitForRate(rule, value.reason);
  const limit = `${show(cap, cap.limit)}${cap.unit === 'amount' ? ` of currency ${subject.paymentId}` : ''}`;
  if (value > cap.limit) {
    const reason = `it is ${show(cap, value)}, more than ${limit}`;
    // No window ever has room for it.
    return over.kind === 'wait' ? { kind: 'refuse', rule, reason, until: undefined } : hold(reason);
  }
  if (cap.withinMs === undefined) return { kind: 'send', rule };
  const bucket = bucketOf(cap, subject);
  const { unknown, sum: sumAt, freeAt: findFree, ahead: before } = window(rule, bucket);
  if (unknown !== undefined) return waitForRate(rule, unknown);
  const sum = sumAt(now);
  // The order of arrival matters only for room: an approval makes none.
  const ahead = over.kind === 'wait' ? before : 0n;
  if (sum + ahead + value <= cap.limit) return { kind: 'send', rule };
  const freeAt = findFree(cap.limit - value - ahead, now);
  const until = freeAt === undefined ? undefined : wallNow + (freeAt - now);
  const others = ahead === 0n ? '' : `, ${show(cap, ahead)} are wanted by payouts before it`;
  const reason = `${show(cap, sum)} of ${limit} are spent${others}, and it is ${show(cap, value)}`;
  return over.kind === 'wait'
    ? { kind: 'wait', rule, reason, until, waitsFor: { bucket, value } }
    : hold(reason, until);
}

export function waitForRate(rule: string, reason: string): Verdict {
  return { kind: 'wait', rule, reason: `its worth in dollars is not known: ${reason}`, until: undefined };
}

export function valueOf(cap: Cap, { amount }: PolicySubject, worth: UsdWorth): bigint | { readonly reason: string } {
  if (cap.unit === 'count') return 1n;
  if (cap.unit === 'amount') return typeof amount === 'string' ? toUnits(amount) : amount;
  return worth.kind === 'known' ? worth.micros : worth;
}

export function bucketOf({ per }: Cap, { addressTo, signer = '' }: PolicySubject): string {
  return per === 'address' ? walletKey(addressTo) : per === 'signer' ? signer : '';
}

function holdBy(
  { name: rule, over }: PolicyRule,
  reason: string,
  until: number | undefined,
  { approvedBy, stranger }: PolicyWorld,
  { groups, anyoneMayRequest }: Electorate,
): Verdict {
  if (over.kind === 'wait') return { kind: 'wait', rule, reason, until };
  if (over.kind !== 'approve') return { kind: 'refuse', rule, reason, until };
  if (stranger !== undefined && !anyoneMayRequest) {
    const why = `it asks for approvals, and no key of the keyring is of the person in requestedBy (${stranger}), who could approve it under another name. Enqueue it with requestedBy a person of the keyring, or let applications name others (approvals: { requestedBy: any })`;
    return { kind: 'refuse', rule, reason: why, until: undefined };
  }
  const group = groups.get(over.by) ?? new Set();
  const approvals = [...approvedBy].filter((person) => group.has(person)).length;
  const missing = Math.max(0, over.quorum - approvals);
  return missing === 0 ? { kind: 'send', rule } : { kind: 'approve', rule, reason, by: over.by, missing, until };
}

function show({ unit }: Cap, value: bigint): string {
  if (unit === 'usd') return formatExact(formatMicros(value), 'USD');
  return unit === 'count' ? formatExact(value.toString(), 'sends') : formatExact(fromUnits(value));
}

export function describeRule({ when, cap, hours, over }: PolicyRule): string {
  const parts = kindsOf(when).map(([kind, value]) => kind.text(value, over));
  const about = parts.length === 0 ? 'every payout' : `a payout ${parts.join(', ')}`;
  if (over.kind === 'cool_down') return `${about}: waits until the ${formatSpan(over.ms)} are over`;
  const limit = cap === undefined ? hours && `only ${hours.text}` : describeCap(cap);
  const makesRoom = cap?.withinMs !== undefined;
  const then = `it ${over.kind === 'wait' ? 'waits' : 'is held'} until ${hours !== undefined ? 'then' : makesRoom ? 'there is room' : 'the policy changes'}`;
  const shortfall = over.kind === 'approve' ? describeApprove(over, makesRoom) : then;
  return limit === undefined ? `${about}: ${shortfall}` : `${about}: ${limit}, else ${shortfall}`;
}

function describeApprove({ by, quorum }: Extract<Over, { kind: 'approve' }>, makesRoom: boolean): string {
  return `it needs ${quorum === 1 ? '1 approval' : `${quorum} approvals`} by ${by}${makesRoom ? ', or room' : ''}`;
}

function describeCap(cap: Cap): string {
  const { limit, withinMs, per } = cap;
  if (withinMs === undefined) return `at most ${show(cap, limit)} each`;
  const apart = per === undefined ? '' : per === 'address' ? ' to one address' : ' signed with one key';
  return `at most ${show(cap, limit)} in any ${formatSpan(withinMs)}${apart}`;
}
