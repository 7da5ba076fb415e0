import type { Clock } from '../../clock.js';
import {
  bucketOf,
  matches,
  valueOf,
  type PolicySubject,
  type UsdWorth,
  type WindowView,
} from '../../control/policy/decide.js';
import type { Cap, Policy, PolicyRule } from '../../control/policy/policy.js';
import type { Spend, SpendEvent } from '../../control/policy/spend-event.js';
import { SpendingWindow } from '../../control/policy/spending-window.js';

export interface SpendingOptions {
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** For how long a request may be on its way after it was journaled, ms. */
  readonly doubtMs: number;
  /** For how long spends are held: at least the longest window, ms. */
  readonly keepMs: number;
}

/** What windows ask of a policy beside its rules. */
export interface SpendingWorld {
  readonly policy: Policy;
  readonly isListed: (list: string, addressKey: string) => boolean;
  /** What an amount is worth now, for spends of which nobody noted it. */
  readonly worthOf: (paymentId: number, amount: string) => UsdWorth;
}

/** A spend in the time of this process. */
interface Held {
  readonly spend: Spend;
  /** Monotonic, ms. */
  readonly begunAt: number;
  /** From when on it grows old, monotonic, ms; undefined while its request may be on its way. */
  agesFrom: number | undefined;
  isAccepted: boolean;
}

/** The clocks of two hosts may differ by this much: a spend is taken for so much younger. */
const CLOCKS_WITHIN_MS = 2_000;

/** A rule whose cap has a window. */
interface CappedRule extends PolicyRule {
  readonly cap: Cap & { readonly withinMs: number };
}

interface RuleWindow {
  readonly rule: CappedRule;
  readonly window: SpendingWindow;
  /** Spends of which nobody knows yet what they count for. */
  readonly unvalued: Set<string>;
}

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
    for (const { spend, isAccepted } of [...this.#held.values()]) {
      if (spend.payoutId === payoutId && !isAccepted) this.#release(spend.id);
    }
  }

  /** What counts in each bucket of a rule's window. @param now - monotonic, ms */
  bucketsOf(rule: string, now: number): Iterable<[bucket: string, sum: bigint]> {
    return this.#windowOf(rule).window.sums(now);
  }

  /** The window of a rule's cap for one bucket, without those that wait. */
  view(rule: string, bucket: string): Omit<WindowView, 'ahead'> {
    const found = this.#windowOf(rule);
    const unknown = this.#value(found);
    return {
      unknown,
      sum: (now) => found.window.sum(bucket, now),
      freeAt: (most, now) => found.window.freeAt(bucket, most, now),
    };
  }

  #windowOf(rule: string): RuleWindow {
    const found = (this.#windows ??= this.#build()).get(rule);
    if (found === undefined) throw new Error(`rule ${rule} has no window`);
    return found;
  }

  #begin(spend: Spend, at: number): void {
    if (this.#held.has(spend.id)) return;
    this.#held.set(spend.id, { spend, begunAt: at, agesFrom: undefined, isAccepted: false });
    this.#open.add(spend.id);
    for (const window of this.#standing) this.#count(window, spend);
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
    for (const { window } of this.#standing) window.answer(id, held.agesFrom);
  }

  #release(id: string): void {
    this.#held.delete(id);
    this.#open.delete(id);
    for (const { window, unvalued } of this.#standing) {
      window.release(id);
      unvalued.delete(id);
    }
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

  /** The windows that were built. */
  get #standing(): Iterable<RuleWindow> {
    return this.#windows?.values() ?? [];
  }

  #build(): ReadonlyMap<string, RuleWindow> {
    const windows = new Map(
      this.#world.policy.rules.filter(hasWindow).map((rule) => {
        const window = new SpendingWindow(rule.cap.withinMs);
        return [rule.name, { rule, window, unvalued: new Set<string>() }];
      }),
    );
    const byAge = [...this.#held.values()].sort(
      (one, other) => (one.agesFrom ?? Infinity) - (other.agesFrom ?? Infinity),
    );
    this.#latest = byAge.findLast(({ agesFrom }) => agesFrom !== undefined)?.agesFrom ?? -Infinity;
    const now = this.#options.clock.now();
    for (const window of windows.values()) {
      const since = now - window.rule.cap.withinMs;
      for (const { spend, agesFrom } of byAge) {
        if (agesFrom !== undefined && agesFrom <= since) continue;
        this.#count(window, spend);
        if (agesFrom !== undefined) window.window.answer(spend.id, agesFrom);
      }
    }
    return windows;
  }

  /** Puts a spend into a window that it counts in. */
  #count({ rule, window, unvalued }: RuleWindow, spend: Spend): void {
    const worth: UsdWorth =
      spend.usd === undefined
        ? this.#world.worthOf(spend.paymentId, spend.amount)
        : { kind: 'known', micros: spend.usd };
    const subject: PolicySubject = spend;
    const applies = matches(rule.when, subject, { worth, isListed: this.#world.isListed });
    if (applies === 'no') return;
    const value = applies === 'yes' ? valueOf(rule.cap, subject, worth) : applies;
    if (typeof value === 'bigint') window.begin(spend.id, bucketOf(rule.cap, subject), value);
    else unvalued.add(spend.id);
  }

  /** @returns why it is not known what the window's spends come to, or undefined */
  #value(found: RuleWindow): string | undefined {
    const { clock } = this.#options;
    const { rule, window, unvalued } = found;
    for (const id of unvalued) {
      const held = this.#held.get(id);
      unvalued.delete(id);
      if (held === undefined || (held.agesFrom ?? Infinity) + rule.cap.withinMs <= clock.now()) continue;
      this.#count(found, held.spend);
      if (held.agesFrom !== undefined) window.answer(id, held.agesFrom);
      if (unvalued.has(id)) return `earlier sends of currency ${held.spend.paymentId} have no rate in dollars`;
    }
    return undefined;
  }

  /** A time of the wall clock as one of the monotonic clock: none lies in the future, and another host's clock may be ahead. */
  #toMonotonic(at: number): number {
    const { clock } = this.#options;
    return clock.now() - Math.max(0, clock.wallNow() - at - CLOCKS_WITHIN_MS);
  }
}

function hasWindow(rule: PolicyRule): rule is CappedRule {
  return rule.cap?.withinMs !== undefined;
}
