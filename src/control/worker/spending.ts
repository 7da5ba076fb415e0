import type { Clock } from '../../clock.js';
import type { Spend, SpendEvent } from '../../ledger/spend-event.js';
import type { WindowView } from '../policy/decide.js';
import type { LoggedSpend } from '../policy/spending-log.js';
import { SpendSeries, type HeldSpend, type RuleWindow, type SpendingWorld } from './spend-series.js';

export interface SpendingOptions {
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
