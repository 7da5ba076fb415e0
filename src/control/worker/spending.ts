import type { Spend, SpendEvent } from '../../ledger/control-record.js';
import type { ControlRuntime } from '../control-runtime.js';
import type { Policy } from '../policy/policy.js';
import {
  bucketOf,
  type Cap,
  type IsListed,
  isInDollars,
  matches,
  type PolicyRule,
  type PolicySubject,
  seriesOf,
  type UsdWorth,
  valueOf,
  type WindowView,
} from '../policy/rule.js';
import { type LoggedSpend, SpendingLog } from '../policy/spending-log.js';
import type { PaymentValue } from '../policy/usd-rates.js';

interface Held {
  readonly spend: Spend;
  /** Monotonic, ms. */
  readonly begunAt: number;
  /** When it begins to age, monotonic, ms; undefined while its request may be on its way. */
  agesFrom: number | undefined;
  isAccepted: boolean;
  /** By the number of the series. */
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
  readonly #runtime: Pick<ControlRuntime, 'clock'>;
  readonly #keepMs: number;
  readonly #held = new Map<string, Held>();
  /** Spends whose request may be on its way. */
  readonly #open = new Set<string>();
  #latest = -Infinity;
  #world: SpendingWorld;
  /** Built on demand: a process that stands by only remembers. */
  #windows: ReadonlyMap<string, RuleWindow> | undefined;

  /** @param keepMs - at least the longest window */
  constructor(runtime: Pick<ControlRuntime, 'clock'>, keepMs: number, world: SpendingWorld) {
    this.#runtime = runtime;
    this.#keepMs = keepMs;
    this.#world = world;
  }

  use(world: SpendingWorld): void {
    this.#world = world;
    this.#windows = undefined;
  }

  /** @param placing - `by wall clock` for spends from before this process was the sender */
  take(events: readonly SpendEvent[], placing: 'by wall clock' | 'now'): void {
    if (placing === 'now') this.#apply(events, () => this.#runtime.clock.now());
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
    this.#ageUnanswered();
    this.#forget();
  }

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
    return series.view(withinMs, bucket, this.#runtime.clock.now());
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

  /** A request without an answer cannot arrive any more after the time that its sender told. */
  #ageUnanswered(): void {
    const { clock } = this.#runtime;
    for (const id of this.#open) {
      const held = this.#held.get(id);
      if (held === undefined) continue;
      const overAt = held.begunAt + held.spend.inFlightMs;
      if (overAt <= clock.now()) this.#age(id, overAt);
    }
  }

  #forget(): void {
    const { clock } = this.#runtime;
    for (const [id, { agesFrom }] of this.#held) {
      // Oldest first: the rest is younger, except spends taken from another process.
      if (agesFrom === undefined || agesFrom + this.#keepMs > clock.now()) return;
      this.#held.delete(id);
    }
  }

  get #standing(): Iterable<SpendSeries> {
    return allOf(this.#windows);
  }

  #build(): ReadonlyMap<string, RuleWindow> {
    const windows = SpendSeries.of(this.#world);
    const byAge = [...this.#held.values()].sort(
      (one, other) => (one.agesFrom ?? Infinity) - (other.agesFrom ?? Infinity),
    );
    this.#latest = byAge.findLast(({ agesFrom }) => agesFrom !== undefined)?.agesFrom ?? -Infinity;
    const now = this.#runtime.clock.now();
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
    const { clock } = this.#runtime;
    return clock.now() - Math.max(0, clock.wallNow() - at - CLOCKS_WITHIN_MS);
  }
}

function allOf(windows: ReadonlyMap<string, RuleWindow> | undefined): Iterable<SpendSeries> {
  return new Set([...(windows?.values() ?? [])].map(({ series }) => series));
}

export interface SpendingWorld {
  readonly policy: Policy;
  readonly isListed: IsListed;
  /** The present value, for spends without a noted one. */
  readonly valueOf: (spend: Spend) => PaymentValue;
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
  readonly #unvalued = new Map<string, Held>();

  private constructor(number: number, rules: readonly [CappedRule, ...CappedRule[]], world: SpendingWorld) {
    this.#number = number;
    [this.#rule] = rules;
    this.#longestMs = Math.max(...rules.map(({ cap }) => cap.withinMs));
    this.#log = new SpendingLog(this.#longestMs);
    this.#world = world;
  }

  static of(world: SpendingWorld): ReadonlyMap<string, RuleWindow> {
    const alike = new Map<string, [CappedRule, ...CappedRule[]]>();
    for (const rule of world.policy.rules.filter(hasWindow)) {
      const kind = seriesOf(rule);
      alike.set(kind, [...(alike.get(kind) ?? []), rule] as [CappedRule, ...CappedRule[]]);
    }
    return new Map(
      [...alike.values()].flatMap((rules, number) => {
        const series = new SpendSeries(number, rules, world);
        return rules.map(({ name, cap }) => [name, { series, withinMs: cap.withinMs }] as const);
      }),
    );
  }

  isOver({ agesFrom }: Held, now: number): boolean {
    return isOver(agesFrom, this.#longestMs, now);
  }

  count(held: Held): void {
    const { spend, logged } = held;
    if (logged[this.#number] !== undefined) return;
    const value = this.#valueOf(spend);
    if (value === undefined) return;
    if (typeof value !== 'bigint') this.#unvalued.set(spend.id, held);
    else logged[this.#number] = this.#log.begin(bucketOf(this.#rule.cap, spend), value);
  }

  answer({ logged }: Held, at: number): void {
    const found = logged[this.#number];
    if (found !== undefined) this.#log.answer(found, at);
  }

  release({ logged, spend }: Held): void {
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

  #valueOf(spend: Spend): ReturnType<typeof valueOf> | undefined {
    const { isListed } = this.#world;
    const worth = isInDollars(this.#rule) ? this.#worthOf(spend) : NOT_ASKED;
    const subject = { ...spend, amount: this.#coinsOf(spend) };
    const applies = matches(this.#rule.when, subject, { worth, isListed });
    if (applies === 'no') return undefined;
    return applies === 'yes' ? valueOf(this.#rule.cap, subject, worth) : applies;
  }

  #worthOf(spend: Spend): UsdWorth {
    return spend.usd === undefined ? this.#world.valueOf(spend).worth : { kind: 'known', micros: spend.usd };
  }

  #coinsOf(spend: Spend): PolicySubject['amount'] {
    if (spend.symbol === undefined) return spend.amount;
    return spend.coins ?? this.#world.valueOf(spend).coins;
  }

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

function isOver(agesFrom: number | undefined, withinMs: number, now: number): boolean {
  return agesFrom !== undefined && agesFrom + withinMs <= now;
}

function hasWindow(rule: PolicyRule): rule is CappedRule {
  return rule.cap?.withinMs !== undefined;
}
