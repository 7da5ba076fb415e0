import type { Clock } from '../../base/clock.js';
import type { Spend, SpendEvent } from '../../ledger/control-record.js';
import {
  bucketOf,
  type IsListed,
  matches,
  type PolicySubject,
  type UsdWorth,
  valueOf,
  type WindowView,
} from '../policy/decide.js';
import type { Cap, Policy, PolicyRule } from '../policy/policy.js';
import { type LoggedSpend, SpendingLog } from '../policy/spending-log.js';

interface SpendingOptions {
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Longest time from journal line to sent request, ms. */
  readonly doubtMs: number;
  /** At least the longest window, ms. */
  readonly keepMs: number;
}

interface Held extends HeldSpend {
  /** Monotonic, ms. */
  readonly begunAt: number;
  agesFrom: number | undefined;
  isAccepted: boolean;
  logged: (LoggedSpend | undefined)[];
}

/** Two hosts' clocks may differ by this much: a spend counts as so much younger. */
const CLOCKS_WITHIN_MS = 2_000;

/**
 * What all processes of the account spent, from the journal and the ledger, for the windows of a policy.
 *
 * The wall clock places the spends of other and earlier processes. From then on only the monotonic clock ages them:
 * every `now` is monotonic, ms.
 */
export class Spending {
  readonly #options: SpendingOptions;
  readonly #held = new Map<string, Held>();
  /** Spends whose request may be on its way. */
  readonly #open = new Set<string>();
  /** The latest time given to windows, which take times in order; monotonic, ms. */
  #latest = -Infinity;
  #world: SpendingWorld;
  /** Built on demand: a process that stands by only remembers. */
  #windows: ReadonlyMap<string, RuleWindow> | undefined;

  constructor(options: SpendingOptions, world: SpendingWorld) {
    this.#options = options;
    this.#world = world;
  }

  use(world: SpendingWorld): void {
    this.#world = world;
    this.#windows = undefined;
  }

  /** @param placing - `by wall clock` for spends from before this process was the sender */
  take(events: readonly SpendEvent[], placing: 'by wall clock' | 'now'): void {
    if (placing === 'now') this.#apply(events, () => this.#options.clock.now());
    else {
      // A day may have 86,400 events: building the windows once is much less work than moving them for each event.
      this.#windows = undefined;
      let reached = -Infinity;
      // A later event happened later, even if a wall clock was set back in between.
      this.#apply(events, (at) => (reached = Math.max(reached, this.#toMonotonic(at))));
    }
  }

  #apply(events: readonly SpendEvent[], place: (at: number) => number): void {
    for (const event of events) {
      if (event.kind === 'begun') this.#begin(event.spend, place(event.at));
      else if (event.kind === 'accepted') this.#accept(event.id, place(event.at));
      else this.#release(event.id);
    }
    this.#endDoubts();
    this.#forget();
  }

  /** Whether a spend is known and may have paid. */
  has(id: string): boolean {
    return this.#held.has(id);
  }

  /** Releases the payout's attempts that the gateway did not accept: they are known to have paid nothing. */
  releasePayout(payoutId: string): void {
    for (const { spend, isAccepted } of this.#held.values()) {
      if (spend.payoutId === payoutId && !isAccepted) this.#release(spend.id);
    }
  }

  bucketsOf(rule: string, now: number): Iterable<[bucket: string, sum: bigint]> {
    const { series, withinMs } = this.#windowOf(rule);
    return series.sums(withinMs, now);
  }

  view(rule: string, bucket: string): Omit<WindowView, 'ahead'> {
    const { series, withinMs } = this.#windowOf(rule);
    return series.view(withinMs, bucket, this.#options.clock.now());
  }

  #windowOf(rule: string): RuleWindow {
    const found = (this.#windows ??= this.#build()).get(rule);
    if (found === undefined) throw new Error(`rule ${rule} has no window`);
    return found;
  }

  #begin(spend: Spend, at: number): void {
    if (this.#held.has(spend.id)) return;
    const held: Held = { spend, begunAt: at, agesFrom: undefined, isAccepted: false, logged: [] };
    this.#held.set(spend.id, held);
    this.#open.add(spend.id);
    for (const series of this.#standing) series.count(held);
  }

  #accept(id: string, at: number): void {
    const held = this.#held.get(id);
    if (held !== undefined) held.isAccepted = true;
    this.#age(id, at);
  }

  #age(id: string, at: number): void {
    const held = this.#held.get(id);
    if (held === undefined || held.agesFrom !== undefined) return;
    this.#open.delete(id);
    // Windows take times in order: a later time is on the safe side.
    if (this.#windows !== undefined) this.#latest = Math.max(this.#latest, at);
    held.agesFrom = this.#windows === undefined ? at : this.#latest;
    for (const series of this.#standing) series.answer(held, held.agesFrom);
  }

  #release(id: string): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    this.#open.delete(id);
    for (const series of this.#standing) series.release(held);
  }

  /** A request without an answer cannot arrive any more after `doubtMs`. */
  #endDoubts(): void {
    const { clock, doubtMs } = this.#options;
    for (const id of this.#open) {
      const held = this.#held.get(id);
      if (held !== undefined && held.begunAt + doubtMs <= clock.now()) this.#age(id, held.begunAt + doubtMs);
    }
  }

  #forget(): void {
    const { clock, keepMs } = this.#options;
    for (const [id, { agesFrom }] of this.#held) {
      // Oldest first: the rest is younger, except spends taken from another process.
      if (agesFrom === undefined || agesFrom + keepMs > clock.now()) return;
      this.#held.delete(id);
    }
  }

  /** Each series once. */
  get #standing(): Iterable<SpendSeries> {
    return allOf(this.#windows);
  }

  #build(): ReadonlyMap<string, RuleWindow> {
    const windows = SpendSeries.of(this.#world);
    const byAge = [...this.#held.values()].sort(
      (one, other) => (one.agesFrom ?? Infinity) - (other.agesFrom ?? Infinity),
    );
    this.#latest = byAge.findLast(({ agesFrom }) => agesFrom !== undefined)?.agesFrom ?? -Infinity;
    const now = this.#options.clock.now();
    const all = [...allOf(windows)];
    for (const held of byAge) {
      held.logged = [];
      for (const series of all) {
        if (series.isOver(held, now)) continue;
        series.count(held);
        if (held.agesFrom !== undefined) series.answer(held, held.agesFrom);
      }
    }
    return windows;
  }

  /** Converts wall clock to monotonic, never into the future: another host's clock may be ahead. */
  #toMonotonic(at: number): number {
    const { clock } = this.#options;
    return clock.now() - Math.max(0, clock.wallNow() - at - CLOCKS_WITHIN_MS);
  }
}

function allOf(windows: ReadonlyMap<string, RuleWindow> | undefined): Iterable<SpendSeries> {
  return new Set([...(windows?.values() ?? [])].map(({ series }) => series));
}

interface SpendingWorld {
  readonly policy: Policy;
  readonly isListed: IsListed;
  /** The present worth, for spends without a noted one. */
  readonly worthOf: (paymentId: number, amount: string) => UsdWorth;
}

interface HeldSpend {
  readonly spend: Spend;
  /** When it begins to age, monotonic, ms; undefined while its request may be on its way. */
  readonly agesFrom: number | undefined;
  /** By the number of the series. */
  readonly logged: (LoggedSpend | undefined)[];
}

interface CappedRule extends PolicyRule {
  readonly cap: Cap & { readonly withinMs: number };
}

interface RuleWindow {
  readonly series: SpendSeries;
  readonly withinMs: number;
}

/** The spends of rules that differ only in window length: 50 rules load as fast as a few. */
class SpendSeries {
  readonly #number: number;
  readonly #rule: CappedRule;
  readonly #longestMs: number;
  readonly #log: SpendingLog;
  readonly #world: SpendingWorld;
  /** Spends of unknown value. */
  readonly #unvalued = new Map<string, HeldSpend>();

  private constructor(number: number, rules: readonly [CappedRule, ...CappedRule[]], world: SpendingWorld) {
    this.#number = number;
    [this.#rule] = rules;
    this.#longestMs = Math.max(...rules.map(({ cap }) => cap.withinMs));
    this.#log = new SpendingLog(this.#longestMs);
    this.#world = world;
  }

  /** By rule name. */
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

  isOver({ agesFrom }: HeldSpend, now: number): boolean {
    return isOver(agesFrom, this.#longestMs, now);
  }

  count(held: HeldSpend): void {
    const { spend, logged } = held;
    if (logged[this.#number] !== undefined) return;
    const value = this.#valueOf(spend);
    if (value === undefined) return;
    if (typeof value !== 'bigint') this.#unvalued.set(spend.id, held);
    else logged[this.#number] = this.#log.begin(bucketOf(this.#rule.cap, spend), value);
  }

  answer({ logged }: HeldSpend, at: number): void {
    const found = logged[this.#number];
    if (found !== undefined) this.#log.answer(found, at);
  }

  release({ logged, spend }: HeldSpend): void {
    const found = logged[this.#number];
    if (found !== undefined) this.#log.release(found);
    this.#unvalued.delete(spend.id);
  }

  sums(withinMs: number, now: number): Iterable<[bucket: string, sum: bigint]> {
    return this.#log.sums(withinMs, now);
  }

  view(withinMs: number, bucket: string, now: number): Omit<WindowView, 'ahead'> {
    return {
      unknown: this.#findUnknown(withinMs, now),
      sum: (at) => this.#log.sum(bucket, withinMs, at),
      freeAt: (most, at) => this.#log.freeAt(bucket, withinMs, most, at),
    };
  }

  /** Undefined if the rules do not apply to the spend. */
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

  /** @returns why the window's sum is unknown, or undefined */
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

/** Rules with the same text count the same spends, in the same unit and buckets. */
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
