import { fromUnits, toUnits } from '../../decimal.js';
import type { RateAnchor } from '../../ledger/spend-event.js';
import type { UsdWorth } from './decide.js';
import type { UsdSettings } from './policy.js';
import { worthInMicros } from './usd.js';

interface Rate {
  readonly rate: string;
  /** When it was fetched, monotonic, ms. */
  readonly at: number;
  /** Since when it has not jumped: a rate that jumped counts again once it has stood for `maxAge`. */
  readonly steadySince: number;
  /** The rate that it is held against; undefined where it was named once only. */
  readonly anchor: string | undefined;
}

/** Now, by both clocks, ms. */
export interface RateMoment {
  /** Monotonic. */
  readonly now: number;
  readonly wallNow: number;
}

/** How often an anchor moves at most. */
const MOVE_EVERY_MS = 24 * 60 * 60 * 1_000;

/** Rates have at most so many places. */
const FINEST = 10n ** 18n;

/**
 * What currencies are worth in dollars, as the gateway said last, kept in this process alone. A rate that is missing, old, or
 * jumped is none: a payout that needs one waits, so that no wrong rate lets it pass a cap. Nor is one that is further than
 * `maxMove` from its anchor, which the journal keeps and which moves by `maxMove` a day at most: a gateway that lies, at once
 * or in small steps, gets no further.
 */
export class UsdRates {
  #settings: UsdSettings;
  readonly #moveEveryMs: number;
  /** Whether one of the rates that were named last counts only once it is named again. */
  isUnconfirmed = false;
  readonly #rates = new Map<number, Rate>();
  /** When each anchor that this process has met was set, on the monotonic clock: the wall clock counts across starts only. */
  readonly #anchoredAt = new Map<number, { readonly wallAt: number; readonly at: number }>();

  /** @param moveEveryMs - a simulation has shorter days */
  constructor(settings: UsdSettings, moveEveryMs = MOVE_EVERY_MS) {
    this.#settings = settings;
    this.#moveEveryMs = moveEveryMs;
  }

  /** From now on these settings count; what the gateway said stays. */
  use(settings: UsdSettings): void {
    this.#settings = settings;
  }

  /**
   * The gateway has said what its currencies are worth.
   * @param rates - decimal strings by currency
   * @param anchors - as the journal has them
   * @returns the anchors that it sets or moves, for the journal
   */
  update(
    rates: Iterable<readonly [paymentId: number, rate: string]>,
    anchors: ReadonlyMap<number, RateAnchor>,
    { now, wallNow }: RateMoment,
  ): ReadonlyMap<number, string> {
    const moved = new Map<number, string>();
    this.isUnconfirmed = false;
    for (const [paymentId, rate] of rates) {
      const before = this.#rates.get(paymentId);
      const known = anchors.get(paymentId);
      const anchor = this.#moveAnchor(rate, before?.rate, known, known && this.#ageOf(paymentId, known, now, wallNow));
      if (anchor === undefined) this.isUnconfirmed = true;
      else if (anchor.isNew) moved.set(paymentId, anchor.rate);
      // The first one has nothing that it could have jumped from.
      const steadySince = before === undefined ? -Infinity : this.#isFar(before.rate, rate) ? now : before.steadySince;
      this.#rates.set(paymentId, { rate, at: now, steadySince, anchor: anchor?.rate });
    }
    return moved;
  }

  /** When the oldest rate that is used was fetched, monotonic, ms; undefined without any. */
  get oldestAt(): number | undefined {
    const times = [...this.#rates.values()].map(({ at }) => at);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** What an amount of a currency is worth now (monotonic, ms). */
  worthOf(paymentId: number, amount: string, now: number): UsdWorth {
    const pinned = this.#settings.pinned.get(paymentId);
    if (pinned !== undefined) return { kind: 'known', micros: worthInMicros(amount, pinned) };
    const known = this.#rates.get(paymentId);
    if (known === undefined) return unknown(`the gateway has named no rate of currency ${paymentId}`);
    const { rate, at, steadySince, anchor } = known;
    const { maxAgeMs, maxMovePercent } = this.#settings;
    if (now - at > maxAgeMs) return unknown(`the rate of currency ${paymentId} is ${inMinutes(now - at)} old`);
    if (anchor === undefined) {
      return unknown(`the rate of currency ${paymentId} was named once, and counts once it is named again`);
    }
    if (this.#isFar(anchor, rate)) {
      return unknown(
        `the rate of currency ${paymentId}, ${rate}, is more than ${maxMovePercent}% from ${anchor}, and follows by that much a day: \`pinned\` sets it at once`,
      );
    }
    if (now - steadySince < maxAgeMs) {
      return unknown(
        `the rate of currency ${paymentId} moved by more than ${maxMovePercent}% ${inMinutes(now - steadySince)} ago`,
      );
    }
    return { kind: 'known', micros: worthInMicros(amount, rate) };
  }

  /** Where the anchor is, once this rate was named: undefined while there is none. */
  #moveAnchor(
    rate: string,
    before: string | undefined,
    known: RateAnchor | undefined,
    ageMs = 0,
  ): { readonly rate: string; readonly isNew: boolean } | undefined {
    if (known === undefined) {
      // A second one that says the same.
      return before === undefined || this.#isFar(before, rate) ? undefined : { rate, isNew: true };
    }
    if (ageMs < this.#moveEveryMs) return { rate: known.rate, isNew: false };
    return { rate: this.#isFar(known.rate, rate) ? this.#towards(known.rate, rate) : rate, isNew: true };
  }

  #ageOf(paymentId: number, { at }: RateAnchor, now: number, wallNow: number): number {
    const met = this.#anchoredAt.get(paymentId);
    if (met?.wallAt === at) return now - met.at;
    const ageMs = Math.max(0, wallNow - at);
    this.#anchoredAt.set(paymentId, { wallAt: at, at: now - ageMs });
    return ageMs;
  }

  /** As far as a move may go. */
  #towards(from: string, to: string): string {
    const percent = BigInt(this.#settings.maxMovePercent);
    const units = (toUnits(from) * (toUnits(to) > toUnits(from) ? 100n + percent : 100n - percent)) / 100n;
    return fromUnits((units / FINEST) * FINEST);
  }

  #isFar(before: string, after: string): boolean {
    const [one, other] = [worthInMicros('1000000', before), worthInMicros('1000000', after)];
    const distance = one > other ? one - other : other - one;
    return distance * 100n > one * BigInt(this.#settings.maxMovePercent);
  }
}

function unknown(reason: string): UsdWorth {
  return { kind: 'unknown', reason };
}

function inMinutes(ms: number): string {
  return `${Math.floor(ms / 60_000)} min`;
}
