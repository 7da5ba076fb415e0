import { fromUnits, toUnits } from '../../decimal.js';
import { parseWallet, walletKey } from '../../gateway/wallet.js';
import type { Cap, Condition, Policy, PolicyRule } from './policy.js';
import { formatMicros } from './usd.js';

/** A payout as rules see it: from the object that is sent. */
export interface PolicySubject {
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  /** The name of the key that signed it; undefined where nothing has to be signed. */
  readonly signer?: string | undefined;
}

/** What a payout is worth in dollars, or why nobody knows. */
export type UsdWorth =
  { readonly kind: 'known'; readonly micros: bigint } | { readonly kind: 'unknown'; readonly reason: string };

/** What a cap counted in its window. */
export interface WindowView {
  /** In the unit of the cap. */
  sum(now: number): bigint;
  /** See `SpendingLog.freeAt`. */
  freeAt(most: bigint, now: number): number | undefined;
  /** Why nobody knows what counts, where that is so. */
  readonly unknown?: string | undefined;
  /** What payouts take that wait for room in it, and came before this one. */
  readonly ahead: bigint;
}

/**
 * Whether a list has an address. As a `wallet` it is the same with any destination tag: nobody gets around a rule that holds.
 * As a `recipient` it has this tag: a rule that lets pass lets nobody else pass.
 */
export type IsListed = (list: string, addressTo: string, as: 'wallet' | 'recipient') => boolean;

/** What rules ask for, beside the payout. */
export interface PolicyWorld {
  /** Monotonic, ms: windows age by it. */
  readonly now: number;
  /** Wall clock, ms. */
  readonly wallNow: number;
  readonly worth: UsdWorth;
  /** When a payout to this address was first seen, wall clock, ms; undefined where none was before this one. */
  readonly addressSeenAt: number | undefined;
  /** Whether a list, by the name that the policy has for it, has the address. */
  readonly isListed: IsListed;
  /** The window of a rule's cap, of the bucket that the payout belongs to. */
  readonly window: (rule: string, bucket: string) => WindowView;
  /** Persons whose approval of this very payout counts. */
  readonly approvedBy: ReadonlySet<string>;
  /** A person who rejected it. */
  readonly rejectedBy: string | undefined;
  /** Who asked for it, where the keyring has no such person; see `findStranger`. */
  readonly stranger: string | undefined;
}

/** What one rule says of a payout. */
export type Verdict =
  | { readonly kind: 'send'; readonly rule: string }
  /**
   * @param until - wall clock, ms; undefined where nobody knows
   * @param waitsFor - the room in a window that it waits for: first come, first served
   */
  | {
      readonly kind: 'wait';
      readonly rule: string;
      readonly reason: string;
      readonly until: number | undefined;
      readonly waitsFor?: RoomWanted | undefined;
    }
  /** @param missing - how many more persons of the group have to approve  @param until - as above */
  | {
      readonly kind: 'approve';
      readonly rule: string;
      readonly reason: string;
      readonly by: string;
      readonly missing: number;
      readonly until: number | undefined;
    }
  /** @param until - as above */
  | { readonly kind: 'refuse'; readonly rule: string; readonly reason: string; readonly until: number | undefined };

/** Room in the window of a rule. */
export interface RoomWanted {
  readonly bucket: string;
  /** In the unit of the cap. */
  readonly value: bigint;
}

export interface Decision {
  /** The strictest: refuse, then approve, then wait. */
  readonly verdict: Verdict;
  /** What every rule that is about the payout says, in the order of the file. */
  readonly all: readonly Verdict[];
}

/** The name under which a payout is held that no cap covers. */
export const DEFAULT_RULE = 'default';

const STRICTNESS = ['send', 'wait', 'approve', 'refuse'] as const satisfies readonly Verdict['kind'][];

/**
 * What may become of a payout now. Every rule is asked and the strictest counts, so that their order means nothing. What
 * equals a limit passes. A policy only holds: nothing here cancels a payout.
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
  // Of two that wait, the one that waits longer says when the payout is free.
  return one.kind === 'wait' && other.kind === 'wait' && (one.until ?? Infinity) > (other.until ?? Infinity);
}

/** Whether a rule is about a payout, or why nobody knows. */
export type Match = 'yes' | 'no' | { readonly reason: string };

/** What is not known may be anything: then the rule holds the payout. */
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

/** Under `default: hold` a cap with a list lets the recipients on it pass, and nobody else of the same wallet. */
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
  // Only where it waits for room does it matter who came first: an approval makes none.
  const ahead = rule.over.kind === 'wait' ? window.ahead : 0n;
  if (sum + ahead + value <= cap.limit) return { kind: 'send', rule: name };
  const freeAt = window.freeAt(cap.limit - value - ahead, world.now);
  const until = freeAt === undefined ? undefined : world.wallNow + (freeAt - world.now);
  const others = ahead === 0n ? '' : `, ${show(cap, ahead)} are wanted by payouts before it`;
  const reason = `${show(cap, sum)} of ${show(cap, cap.limit)} are spent${others}, and it is ${show(cap, value)}`;
  if (rule.over.kind !== 'wait') return hold(rule, policy, world, reason, until);
  return { kind: 'wait', rule: name, reason, until, waitsFor: { bucket: bucketOf(cap, subject), value } };
}

/** What a payout counts for in the unit of a cap. */
export function valueOf(cap: Cap, { amount }: PolicySubject, worth: UsdWorth): bigint | { readonly reason: string } {
  if (cap.unit === 'count') return 1n;
  if (cap.unit === 'amount') return toUnits(amount);
  return worth.kind === 'known' ? worth.micros : worth;
}

/** With what a payout is counted together. */
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
