import { fromUnits, toUnits } from '../../base/decimal.js';
import { parseWallet, walletKey } from '../../gateway/wallet.js';
import type { Cap, Condition, Policy, PolicyRule } from './policy.js';
import { formatMicros } from './usd.js';

export interface PolicySubject {
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly signer?: string | undefined;
}

export type UsdWorth =
  { readonly kind: 'known'; readonly micros: bigint } | { readonly kind: 'unknown'; readonly reason: string };

/** A cap's window, in the unit of the cap. `ahead` sums earlier payouts that wait for room. */
export interface WindowView {
  sum(now: number): bigint;
  /** See `SpendingLog.freeAt`. */
  freeAt(most: bigint, now: number): number | undefined;
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
  /** Undefined if this is the first payout to the address. */
  readonly addressSeenAt: number | undefined;
  readonly isListed: IsListed;
  readonly window: (rule: string, bucket: string) => WindowView;
  readonly approvedBy: ReadonlySet<string>;
  readonly rejectedBy: string | undefined;
  /** See `findStranger`. */
  readonly stranger: string | undefined;
}

/** `until` is wall clock, ms; undefined if unknown. */
export type Verdict =
  | { readonly kind: 'send'; readonly rule: string }
  /** `waitsFor` is room in a window: first come, first served. */
  | {
      readonly kind: 'wait';
      readonly rule: string;
      readonly reason: string;
      readonly until: number | undefined;
      readonly waitsFor?: RoomWanted | undefined;
    }
  /** `missing` people of the group must still approve. */
  | {
      readonly kind: 'approve';
      readonly rule: string;
      readonly reason: string;
      readonly by: string;
      readonly missing: number;
      readonly until: number | undefined;
    }
  | { readonly kind: 'refuse'; readonly rule: string; readonly reason: string; readonly until: number | undefined };

/** In the unit of the cap. */
interface RoomWanted {
  readonly bucket: string;
  readonly value: bigint;
}

export interface Decision {
  /** The strictest: refuse, then approve, then wait. */
  readonly verdict: Verdict;
  readonly all: readonly Verdict[];
}

/** The rule name of a payout that no cap covers. */
export const DEFAULT_RULE = 'default';

const STRICTNESS = ['send', 'wait', 'approve', 'refuse'] as const satisfies readonly Verdict['kind'][];

/**
 * The strictest rule counts, so their order means nothing. A value equal to a limit passes. A policy only holds: it
 * never cancels a payout.
 */
export function decide(policy: Policy, subject: PolicySubject, world: PolicyWorld): Decision {
  const all: Verdict[] = [];
  let isCovered = false;
  for (const rule of policy.rules) {
    const applies = matches(rule.when, subject, world);
    if (applies === 'no') continue;
    if (rule.cap !== undefined && mayCover(rule.when, subject, world)) isCovered = true;
    all.push(applies === 'yes' ? judge(rule, policy, subject, world) : waitForRate(rule.name, applies.reason));
  }
  if (!isCovered && policy.uncovered === 'hold') {
    const reason = 'no rule with a cap is about it, and the policy holds such payouts (default: hold)';
    all.push({ kind: 'refuse', rule: DEFAULT_RULE, reason, until: undefined });
  }
  return { verdict: strictest(all), all };
}

function strictest(verdicts: readonly Verdict[]): Verdict {
  let found: Verdict = { kind: 'send', rule: DEFAULT_RULE };
  for (const verdict of verdicts) if (isStricter(verdict, found)) found = verdict;
  return found;
}

function isStricter(one: Verdict, other: Verdict): boolean {
  const difference = STRICTNESS.indexOf(one.kind) - STRICTNESS.indexOf(other.kind);
  if (difference !== 0) return difference > 0;
  return one.kind === 'wait' && other.kind === 'wait' && (one.until ?? Infinity) > (other.until ?? Infinity);
}

type Match = 'yes' | 'no' | { readonly reason: string };

/** An unknown may be anything, so the rule then holds the payout. */
export function matches(
  when: Condition,
  subject: PolicySubject,
  world: Pick<PolicyWorld, 'isListed' | 'worth'>,
): Match {
  const { paymentIds, usdAbove, addressIn, isAddressUnparsed } = when;
  if (paymentIds !== undefined && !paymentIds.has(subject.paymentId)) return 'no';
  if (addressIn !== undefined && !world.isListed(addressIn, subject.addressTo, 'wallet')) return 'no';
  if (isAddressUnparsed === true && isParsed(subject.addressTo)) return 'no';
  if (usdAbove === undefined) return 'yes';
  if (world.worth.kind === 'unknown') return { reason: world.worth.reason };
  return world.worth.micros > usdAbove ? 'yes' : 'no';
}

function isParsed(addressTo: string): boolean {
  const { family, problem } = parseWallet(addressTo);
  return family !== undefined && problem === undefined;
}

/** Under `default: hold`, a cap with a list passes only the listed recipients of a wallet. */
function mayCover({ addressIn }: Condition, { addressTo }: PolicySubject, world: PolicyWorld): boolean {
  return addressIn === undefined || world.isListed(addressIn, addressTo, 'recipient');
}

function waitForRate(rule: string, reason: string): Verdict {
  return { kind: 'wait', rule, reason: `its worth in dollars is not known: ${reason}`, until: undefined };
}

function judge(rule: PolicyRule, policy: Policy, subject: PolicySubject, world: PolicyWorld): Verdict {
  const { name, cap, hours, over } = rule;
  if (cap !== undefined) return judgeCap(rule, cap, policy, subject, world);
  if (hours !== undefined) {
    if (hours.isOpen(world.wallNow)) return { kind: 'send', rule: name };
    return hold(rule, policy, world, `it is outside of ${hours.text}`, hours.opensAt(world.wallNow));
  }
  if (over.kind === 'cool_down') {
    const until = (world.addressSeenAt ?? world.wallNow) + over.ms;
    if (until <= world.wallNow) return { kind: 'send', rule: name };
    return { kind: 'wait', rule: name, reason: 'its address is new', until };
  }
  return hold(rule, policy, world, 'the rule is about it', undefined);
}

function judgeCap(rule: PolicyRule, cap: Cap, policy: Policy, subject: PolicySubject, world: PolicyWorld): Verdict {
  const { name } = rule;
  const value = valueOf(cap, subject, world.worth);
  if (typeof value !== 'bigint') return waitForRate(name, value.reason);
  if (value > cap.limit) {
    const reason = `it is ${show(cap, value)}, more than ${show(cap, cap.limit)}`;
    // No window ever has room for it.
    if (rule.over.kind === 'wait') return { kind: 'refuse', rule: name, reason, until: undefined };
    return hold(rule, policy, world, reason, undefined);
  }
  if (cap.withinMs === undefined) return { kind: 'send', rule: name };
  const window = world.window(name, bucketOf(cap, subject));
  if (window.unknown !== undefined) return waitForRate(name, window.unknown);
  const sum = window.sum(world.now);
  // The order of arrival matters only for room: an approval makes none.
  const ahead = rule.over.kind === 'wait' ? window.ahead : 0n;
  if (sum + ahead + value <= cap.limit) return { kind: 'send', rule: name };
  const freeAt = window.freeAt(cap.limit - value - ahead, world.now);
  const until = freeAt === undefined ? undefined : world.wallNow + (freeAt - world.now);
  const others = ahead === 0n ? '' : `, ${show(cap, ahead)} are wanted by payouts before it`;
  const reason = `${show(cap, sum)} of ${show(cap, cap.limit)} are spent${others}, and it is ${show(cap, value)}`;
  if (rule.over.kind !== 'wait') return hold(rule, policy, world, reason, until);
  return { kind: 'wait', rule: name, reason, until, waitsFor: { bucket: bucketOf(cap, subject), value } };
}

export function valueOf(cap: Cap, { amount }: PolicySubject, worth: UsdWorth): bigint | { readonly reason: string } {
  if (cap.unit === 'count') return 1n;
  if (cap.unit === 'amount') return toUnits(amount);
  return worth.kind === 'known' ? worth.micros : worth;
}

export function bucketOf({ per }: Cap, { addressTo, signer = '' }: PolicySubject): string {
  return per === 'address' ? walletKey(addressTo) : per === 'signer' ? signer : '';
}

function hold(
  rule: PolicyRule,
  policy: Policy,
  world: PolicyWorld,
  reason: string,
  until: number | undefined,
): Verdict {
  const { name, over } = rule;
  if (over.kind === 'wait') return { kind: 'wait', rule: name, reason, until };
  if (over.kind !== 'approve') return { kind: 'refuse', rule: name, reason, until };
  if (world.rejectedBy !== undefined) {
    return { kind: 'refuse', rule: name, reason: `${world.rejectedBy} rejected it`, until: undefined };
  }
  if (world.stranger !== undefined && !policy.anyoneMayRequest) {
    return { kind: 'refuse', rule: name, reason: describeStranger(world.stranger), until: undefined };
  }
  const group = policy.groups.get(over.by) ?? new Set();
  const approvals = [...world.approvedBy].filter((person) => group.has(person)).length;
  const missing = Math.max(0, over.quorum - approvals);
  if (missing === 0) return { kind: 'send', rule: name };
  return { kind: 'approve', rule: name, reason, by: over.by, missing, until };
}

function describeStranger(name: string): string {
  return `it asks for approvals, and no key of the keyring is of the person in requestedBy (${name}), who could approve it under another name. Enqueue it with requestedBy a person of the keyring, or let applications name others (approvals: { requestedBy: any })`;
}

function show({ unit }: Cap, value: bigint): string {
  if (unit === 'usd') return `${formatMicros(value)} USD`;
  return unit === 'count' ? `${value} sends` : fromUnits(value);
}
