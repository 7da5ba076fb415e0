import type { UsdWorth } from './decide.js';
import type { UsdSettings } from './policy.js';
import { worthInMicros } from './usd.js';

interface Rate {
  readonly rate: string;
  /** When it was fetched, monotonic, ms. */
  readonly at: number;
  /** Since when it has not jumped: a rate that jumped counts again once it has stood for `maxAge`. */
  readonly steadySince: number;
}

/**
 * What currencies are worth in dollars, as the gateway said last, kept in this process alone. A rate that is missing, old, or
 * jumped is none: a payout that needs one waits, so that no wrong rate lets it pass a cap.
 */
export class UsdRates {
  #settings: UsdSettings;
  readonly #rates = new Map<number, Rate>();

  constructor(settings: UsdSettings) {
    this.#settings = settings;
  }

  /** From now on these settings count; what the gateway said stays. */
  use(settings: UsdSettings): void {
    this.#settings = settings;
  }

  /**
   * The gateway has said what its currencies are worth.
   * @param rates - decimal strings by currency
   * @param now - monotonic, ms
   */
  update(rates: Iterable<readonly [paymentId: number, rate: string]>, now: number): void {
    for (const [paymentId, rate] of rates) {
      const before = this.#rates.get(paymentId);
      // The first one has nothing that it could have jumped from.
      const steadySince =
        before === undefined ? -Infinity : this.#hasJumped(before.rate, rate) ? now : before.steadySince;
      this.#rates.set(paymentId, { rate, at: now, steadySince });
    }
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
    const { maxAgeMs, maxMovePercent } = this.#settings;
    if (now - known.at > maxAgeMs)
      return unknown(`the rate of currency ${paymentId} is ${inMinutes(now - known.at)} old`);
    if (now - known.steadySince < maxAgeMs) {
      return unknown(
        `the rate of currency ${paymentId} moved by more than ${maxMovePercent}% ${inMinutes(now - known.steadySince)} ago`,
      );
    }
    return { kind: 'known', micros: worthInMicros(amount, known.rate) };
  }

  #hasJumped(before: string, after: string): boolean {
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
