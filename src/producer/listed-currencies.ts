import { InvalidInputError, RedisUnavailableError } from '../base/errors.js';
import { toPlainText } from '../base/plain-text.js';
import { type Currency, readGatewayFacts, requestCurrencies } from '../ledger/reads/gateway-facts.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { NewPayout } from '../ledger/payout.js';

const REFRESH_EVERY_MS = 60_000;

/** A refusal rests on a list read from Redis at most this long ago. */
const REFUSE_WITHIN_MS = 10_000;

/** No worker has sent for a day, or none reads the list: what the gateway lists now is unknown. */
const MAX_AGE_MS = 24 * 3_600_000;

const LOOK_UP_AT_ONCE = 1_000;
const SHOWN = 20;

/** Why each of some payouts is refused. */
export type Refused = ReadonlyMap<NewPayout, InvalidInputError>;

/**
 * The gateway's currencies as the worker published them. Someone who writes to Redis can have payouts refused by it, and
 * none paid.
 */
export class ListedCurrencies {
  readonly #ledger: PayoutLedger;
  #currencies: readonly Currency[] = [];
  #ids: ReadonlySet<number> | undefined;
  /** Wall clock, ms. */
  #listedAt = 0;
  #readAt = -Infinity;

  constructor(ledger: PayoutLedger) {
    this.#ledger = ledger;
  }

  /** Empty while unknown. */
  get currencies(): readonly Currency[] {
    return this.#currencies;
  }

  /** Once a minute, beside the calls: it neither delays nor reorders them. */
  refresh(): void {
    if (this.#passedMs() > REFRESH_EVERY_MS) this.read().catch(() => undefined);
  }

  /** @throws RedisUnavailableError */
  async read(): Promise<void> {
    this.#readAt = this.#ledger.connection.clock.now();
    try {
      const { currencies, currenciesAt, isWhole } = await readGatewayFacts(this.#ledger.connection);
      const ids = new Set(currencies.map(({ paymentId }) => paymentId));
      this.#currencies = currencies;
      this.#listedAt = currenciesAt ?? 0;
      this.#ids = isWhole === true ? ids : undefined;
    } catch (error) {
      if (error instanceof RedisUnavailableError) throw error;
      // What is no list refuses nothing.
      this.#ids = undefined;
    }
  }

  /** By the list as it was read last. */
  hasUnlisted(payouts: readonly NewPayout[]): boolean {
    return payouts.some(({ paymentId }) => !this.#isListed(paymentId));
  }

  /**
   * Finds payouts of currencies that the gateway does not list, and has the worker query the list again. A payout that
   * the ledger has is not among them: a repeated call is answered as before.
   * @returns why each is refused
   * @throws RedisUnavailableError
   */
  async findRefused(payouts: readonly NewPayout[]): Promise<Refused> {
    if (this.#readAt === -Infinity) await this.read();
    if (!this.hasUnlisted(payouts)) return new Map();
    if (this.#passedMs() > REFUSE_WITHIN_MS) {
      await this.read();
      if (this.hasUnlisted(payouts)) await requestCurrencies(this.#ledger.connection);
    }
    const unlisted = payouts.filter(({ paymentId }) => !this.#isListed(paymentId));
    const refused = new Map<NewPayout, InvalidInputError>();
    for (let start = 0; start < unlisted.length; start += LOOK_UP_AT_ONCE) {
      const step = unlisted.slice(start, start + LOOK_UP_AT_ONCE);
      const known = await this.#ledger.knows(step.map(({ payoutId }) => payoutId));
      for (const [index, payout] of step.entries())
        if (known[index] !== true) refused.set(payout, this.#refusal(payout));
    }
    return refused;
  }

  #refusal({ paymentId }: NewPayout): InvalidInputError {
    const names = this.#currencies.slice(0, SHOWN).map((one) => toPlainText(`${one.paymentId} ${one.name}`));
    const others = this.#currencies.length - names.length;
    const list = [...names, ...(others > 0 ? [`and ${others} more (\`payouts gateway currencies\`)`] : [])].join(', ');
    const message = `must be in the gateway's list of ${new Date(this.#listedAt).toISOString()}: ${list} (got ${paymentId}). If the gateway has it since, repeat the call in a minute: the worker reads the list again, every 5 minutes at most`;
    return new InvalidInputError([{ field: 'paymentId', message }]);
  }

  #isListed(paymentId: number): boolean {
    if (this.#ids === undefined || this.#ids.has(paymentId)) return true;
    return Math.abs(this.#ledger.connection.clock.wallNow() - this.#listedAt) > MAX_AGE_MS;
  }

  #passedMs(): number {
    return this.#ledger.connection.clock.now() - this.#readAt;
  }
}
