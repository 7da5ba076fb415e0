import type { Spend } from '../../ledger/spend-event.js';
import {
  bucketOf,
  matches,
  valueOf,
  type IsListed,
  type PolicySubject,
  type UsdWorth,
  type WindowView,
} from '../policy/decide.js';
import type { Cap, Policy, PolicyRule } from '../policy/policy.js';
import { SpendingLog, type LoggedSpend } from '../policy/spending-log.js';

/** What windows ask of a policy beside its rules. */
export interface SpendingWorld {
  readonly policy: Policy;
  readonly isListed: IsListed;
  /** What an amount is worth now, for spends of which nobody noted it. */
  readonly worthOf: (paymentId: number, amount: string) => UsdWorth;
}

/** A spend in the time of this process. */
export interface HeldSpend {
  readonly spend: Spend;
  /** From when on it grows old, monotonic, ms; undefined while its request may be on its way. */
  readonly agesFrom: number | undefined;
  /** What it counts for in each series, by the number of the series. */
  readonly logged: (LoggedSpend | undefined)[];
}

/** A rule whose cap has a window. */
interface CappedRule extends PolicyRule {
  readonly cap: Cap & { readonly withinMs: number };
}

/** The window of a rule's cap: how far it looks back, and on what. */
export interface RuleWindow {
  readonly series: SpendSeries;
  readonly withinMs: number;
}

/** The spends that rules count which differ in the length of their windows alone: 50 rules are loaded as fast as a few. */
export class SpendSeries {
  readonly #number: number;
  readonly #rule: CappedRule;
  readonly #longestMs: number;
  readonly #log: SpendingLog;
  readonly #world: SpendingWorld;
  /** Spends of which nobody knows yet what they count for. */
  readonly #unvalued = new Map<string, HeldSpend>();

  private constructor(number: number, rules: readonly [CappedRule, ...CappedRule[]], world: SpendingWorld) {
    this.#number = number;
    [this.#rule] = rules;
    this.#longestMs = Math.max(...rules.map(({ cap }) => cap.withinMs));
    this.#log = new SpendingLog(this.#longestMs);
    this.#world = world;
  }

  /** The windows of a policy, by the names of its rules. */
  static of(world: SpendingWorld): ReadonlyMap<string, RuleWindow> {
    const alike = new Map<string, [CappedRule, ...CappedRule[]]>();
    for (const rule of world.policy.rules.filter(hasWindow)) {
      const kind = describe(rule);
      alike.set(kind, [...(alike.get(kind) ?? []), rule] as [CappedRule, ...CappedRule[]]);
    }
    return new Map(
      [...alike.values()].flatMap((rules, number) => {
        const series = new SpendSeries(number, rules, world);
        return rules.map(({ name, cap }) => [name, { series, withinMs: cap.withinMs }] as const);
      }),
    );
  }

  /** Whether a spend is too old to count, or was when it had its answer. @param now - monotonic, ms */
  isOver({ agesFrom }: HeldSpend, now: number): boolean {
    return isOver(agesFrom, this.#longestMs, now);
  }

  /** A send has begun. */
  count(held: HeldSpend): void {
    const { spend, logged } = held;
    if (logged[this.#number] !== undefined) return;
    const value = this.#valueOf(spend);
    if (value === undefined) return;
    if (typeof value !== 'bigint') this.#unvalued.set(spend.id, held);
    else logged[this.#number] = this.#log.begin(bucketOf(this.#rule.cap, spend), value);
  }

  /** See `SpendingLog.answer`. */
  answer({ logged }: HeldSpend, at: number): void {
    const found = logged[this.#number];
    if (found !== undefined) this.#log.answer(found, at);
  }

  /** See `SpendingLog.release`. */
  release({ logged, spend }: HeldSpend): void {
    const found = logged[this.#number];
    if (found !== undefined) this.#log.release(found);
    this.#unvalued.delete(spend.id);
  }

  /** See `SpendingLog.sums`. */
  sums(withinMs: number, now: number): Iterable<[bucket: string, sum: bigint]> {
    return this.#log.sums(withinMs, now);
  }

  /** One bucket of the window of this length. @param now - monotonic, ms */
  view(withinMs: number, bucket: string, now: number): Omit<WindowView, 'ahead'> {
    return {
      unknown: this.#findUnknown(withinMs, now),
      sum: (at) => this.#log.sum(bucket, withinMs, at),
      freeAt: (most, at) => this.#log.freeAt(bucket, withinMs, most, at),
    };
  }

  /** What a spend counts for; undefined where the rules are not about it. */
  #valueOf(spend: Spend): ReturnType<typeof valueOf> | undefined {
    const { isListed } = this.#world;
    const worth = this.#asksForDollars ? this.#worthOf(spend) : NOT_ASKED;
    const subject: PolicySubject = spend;
    const applies = matches(this.#rule.when, subject, { worth, isListed });
    if (applies === 'no') return undefined;
    return applies === 'yes' ? valueOf(this.#rule.cap, subject, worth) : applies;
  }

  #worthOf({ usd, paymentId, amount }: Spend): UsdWorth {
    return usd === undefined ? this.#world.worthOf(paymentId, amount) : { kind: 'known', micros: usd };
  }

  get #asksForDollars(): boolean {
    return this.#rule.cap.unit === 'usd' || this.#rule.when.usdAbove !== undefined;
  }

  /** @returns why it is not known what the window's spends come to, or undefined */
  #findUnknown(withinMs: number, now: number): string | undefined {
    for (const [id, held] of this.#unvalued) {
      if (isOver(held.agesFrom, withinMs, now)) {
        if (this.isOver(held, now)) this.#unvalued.delete(id);
        continue;
      }
      this.#unvalued.delete(id);
      this.count(held);
      if (this.#unvalued.has(id)) return `earlier sends of currency ${held.spend.paymentId} have no rate in dollars`;
      if (held.agesFrom !== undefined) this.answer(held, held.agesFrom);
    }
    return undefined;
  }
}

const NOT_ASKED: UsdWorth = { kind: 'unknown', reason: 'no rule asks for dollars' };

/** Rules of which this is equal count the same spends, in the same unit and the same buckets. */
function describe({ when, cap: { unit, per } }: CappedRule): string {
  const { paymentIds = [], isAddressNew, isAddressUnparsed, usdAbove, addressIn } = when;
  return JSON.stringify([
    [...paymentIds].sort(),
    isAddressNew,
    isAddressUnparsed,
    usdAbove?.toString(),
    addressIn,
    unit,
    per,
  ]);
}

function isOver(agesFrom: number | undefined, withinMs: number, now: number): boolean {
  return agesFrom !== undefined && agesFrom + withinMs <= now;
}

function hasWindow(rule: PolicyRule): rule is CappedRule {
  return rule.cap?.withinMs !== undefined;
}
