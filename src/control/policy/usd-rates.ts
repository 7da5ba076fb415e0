import { fromUnits, toUnits } from '../../base/decimal.js';
import type { RateAnchor } from '../../ledger/control-record.js';
import type { UsdSettings } from './policy.js';
import type { UsdWorth } from './rule.js';
import { worthInMicros } from './values.js';

interface Rate {
  readonly rate: string;
  readonly at: number;
  /** The start of the time without a jump. A rate that jumped counts again after `maxAge`. */
  readonly steadySince: number;
  /** The rate for comparison; undefined after the first sight. */
  readonly anchor: string | undefined;
}

/** `now` is monotonic; ms. */
interface RateMoment {
  readonly now: number;
  readonly wallNow: number;
}

/** The shortest time between two moves of an anchor. */
const MOVE_EVERY_MS = 24 * 60 * 60 * 1_000;

const FINEST = 10n ** 18n;

/**
 * The gateway's latest dollar rates, kept only in this process. A missing, old or jumped rate does not count: a payout
 * that needs it waits. Nor does a rate further than `maxMove` from its anchor. The journal keeps the anchor, which
 * moves by at most `maxMove` a day. So a lying gateway gets no further, at once or in small steps.
 */
export class UsdRates {
  #settings: UsdSettings;
  readonly #moveEveryMs: number;
  isUnconfirmed = false;
  readonly #rates = new Map<number, Rate>();
  /** When this process first saw each anchor, monotonic: the wall clock counts only across starts. */
  readonly #anchoredAt = new Map<number, { readonly wallAt: number; readonly at: number }>();

  /** @param moveEveryMs - a simulation has shorter days */
  constructor(settings: UsdSettings, moveEveryMs = MOVE_EVERY_MS) {
    this.#settings = settings;
    this.#moveEveryMs = moveEveryMs;
  }

  use(settings: UsdSettings): void {
    this.#settings = settings;
  }

  /** @returns new or moved anchors, for the journal */
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
      const steadySince = before === undefined ? -Infinity : this.#isFar(before.rate, rate) ? now : before.steadySince;
      this.#rates.set(paymentId, { rate, at: now, steadySince, anchor: anchor?.rate });
    }
    return moved;
  }

  get oldestAt(): number | undefined {
    const times = [...this.#rates.values()].map(({ at }) => at);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** @param now - monotonic, ms */
  worthOf(paymentId: number, amount: string, now: number): UsdWorth {
    const pinned = this.#settings.pinned.get(paymentId);
    if (pinned !== undefined) return { kind: 'known', micros: worthInMicros(amount, pinned) };
    const known = this.#rates.get(paymentId);
    if (known === undefined) return unknown(`the gateway has named no rate of currency ${paymentId}`);
    const { rate, at, steadySince, anchor } = known;
    const { maxAgeMs, maxMovePercent } = this.#settings;
    if (now - at > maxAgeMs) return unknown(`the rate of currency ${paymentId} is ${inMinutes(now - at)} old`);
    if (anchor === undefined) {
      return unknown(`the rate of currency ${paymentId} was read once, and counts once it is read again`);
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

  /**
   * What a payment may be worth, and how much of its currency. With a `symbol`, its amount may be in that currency or in
   * its own, so the larger of both readings counts.
   * @param now - monotonic, ms
   */
  valueOf({ paymentId, amount, symbol }: PaymentAmount, now: number): PaymentValue {
    const own = this.worthOf(paymentId, amount, now);
    if (symbol === undefined) return { worth: own, coins: amount };
    if (symbol !== DOLLAR) return unvalued(`its amount may be in ${symbol}, whose rate is not known`);
    if (own.kind === 'unknown') return unvalued(own.reason);
    const rate = this.#settings.pinned.get(paymentId) ?? this.#rates.get(paymentId)?.rate ?? '0';
    if (toUnits(rate) >= toUnits('1')) return { worth: own, coins: amount };
    const coins = divideUp(amount, rate);
    if (coins === undefined) return unvalued(`the rate of currency ${paymentId} is 0`);
    return { worth: { kind: 'known', micros: worthInMicros(amount, '1') }, coins };
  }

  #moveAnchor(
    rate: string,
    before: string | undefined,
    known: RateAnchor | undefined,
    ageMs = 0,
  ): { readonly rate: string; readonly isNew: boolean } | undefined {
    if (known === undefined) {
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

/** The dollar's symbol at the gateway. */
const DOLLAR = 'USD';

interface PaymentAmount {
  readonly paymentId: number;
  readonly amount: string;
  readonly symbol?: string | undefined;
}

export interface PaymentValue {
  readonly worth: UsdWorth;
  /** A decimal string; the reason if it is not known. */
  readonly coins: string | { readonly reason: string };
}

function unvalued(reason: string): PaymentValue {
  return { worth: unknown(reason), coins: { reason } };
}

/** Rounded up to 18 places, so that no cap is passed. */
function divideUp(amount: string, rate: string): string | undefined {
  const divisor = toUnits(rate) * FINEST;
  if (divisor === 0n) return undefined;
  const finest = (toUnits(amount) * toUnits('1') + divisor - 1n) / divisor;
  return fromUnits(finest * FINEST);
}

function unknown(reason: string): UsdWorth {
  return { kind: 'unknown', reason };
}

function inMinutes(ms: number): string {
  return `${Math.floor(ms / 60_000)} min`;
}
