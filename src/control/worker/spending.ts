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
  /** For how long a request may be on its way after it was journaled, ms. */
  readonly doubtMs: number;
  /** For how long spends are held: at least the longest window, ms. */
  readonly keepMs: number;
}

interface Held extends HeldSpend {
  /** Monotonic, ms. */
  readonly begunAt: number;
  agesFrom: number | undefined;
  isAccepted: boolean;
  logged: (LoggedSpend | undefined)[];
}

/** The clocks of two hosts may differ by this much: a spend is taken for so much younger. */
const CLOCKS_WITHIN_MS = 2_000;

/**
 * What was spent, for the windows of a policy: from the journal and the ledger, of every process of the account.
 *
 * Spends that another process, or an earlier one, made are placed by the wall clock; from then on only the monotonic clock
 * makes them older.
 */
export class Spending {
  readonly #options: SpendingOptions;
  readonly #held = new Map<string, Held>();
  /** Those whose request may be on its way. */
  readonly #open = new Set<string>();
  /** Up to where times were given to windows, which take them in order, monotonic, ms. */
  #latest = -Infinity;
  #world: SpendingWorld;
  /** Built when they are asked for: a process that stands by only remembers. */
  #windows: ReadonlyMap<string, RuleWindow> | undefined;

  constructor(options: SpendingOptions, world: SpendingWorld) {
    this.#options = options;
    this.#world = world;
  }

  /** From now on the windows of this policy count. */
  use(world: SpendingWorld): void {
    this.#world = world;
    this.#windows = undefined;
  }

  /**
   * Takes what was spent since the last call.
   * @param placing - `by wall clock` for what happened before this process was the sender; else it has happened just now
   */
  take(events: readonly SpendEvent[], placing: 'by wall clock' | 'now'): void {
    if (placing === 'now') this.#apply(events, () => this.#options.clock.now());
    else {
      // There may be 86,400 of each day: to build the windows once is much less work than to move them event by event.
      this.#windows = undefined;
      let reached = -Infinity;
      // What stands behind another happened after it, also where a wall clock was set back in between.
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

  /** Whether a spend is known, and may have paid. */
  has(id: string): boolean {
    return this.#held.has(id);
  }

  /** The attempts of a payout of which the gateway accepted none are known to have paid nothing. */
  releasePayout(payoutId: string): void {
    for (const { spend, isAccepted } of this.#held.values()) {
      if (spend.payoutId === payoutId && !isAccepted) this.#release(spend.id);
    }
  }

  /** What counts in each bucket of a rule's window. @param now - monotonic, ms */
  bucketsOf(rule: string, now: number): Iterable<[bucket: string, sum: bigint]> {
    const { series, withinMs } = this.#windowOf(rule);
    return series.sums(withinMs, now);
  }

  /** The window of a rule's cap for one bucket, without those that wait. */
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
    // Windows that were built take times in order: later than it was is on the safe side.
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

  /** A request that got no answer cannot arrive any more once its doubt is over. */
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
      // The oldest come first: what follows is younger, but for what was taken from another process.
      if (agesFrom === undefined || agesFrom + keepMs > clock.now()) return;
      this.#held.delete(id);
    }
  }

  /** The series that were built, each once. */
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

  /** A time of the wall clock as one of the monotonic clock: none lies in the future, and another host's clock may be ahead. */
  #toMonotonic(at: number): number {
    const { clock } = this.#options;
    return clock.now() - Math.max(0, clock.wallNow() - at - CLOCKS_WITHIN_MS);
  }
}

function allOf(windows: ReadonlyMap<string, RuleWindow> | undefined): Iterable<SpendSeries> {
  return new Set([...(windows?.values() ?? [])].map(({ series }) => series));
}

/** What windows ask of a policy beside its rules. */
interface SpendingWorld {
  readonly policy: Policy;
  readonly isListed: IsListed;
  /** What an amount is worth now, for spends of which nobody noted it. */
  readonly worthOf: (paymentId: number, amount: string) => UsdWorth;
}

/** A spend in the time of this process. */
interface HeldSpend {
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
interface RuleWindow {
  readonly series: SpendSeries;
  readonly withinMs: number;
}

/** The spends that rules count which differ in the length of their windows alone: 50 rules are loaded as fast as a few. */
class SpendSeries {
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
