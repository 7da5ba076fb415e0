import { every, followSignals, untilAborted } from '../base/clock.js';
import type { Logger } from '../base/logger.js';
import type { AccountSettings } from '../base/settings.js';
import { type Balance, type Currency, type FactsGateway, queryFailureCode } from '../gateway/gateway.js';
import {
  type GatewayFacts,
  type GatewayFactsPart,
  readGatewayFacts,
  takeCurrenciesRequest,
  writeGatewayFacts,
} from '../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { toLine } from '../ledger/payout.js';
import type { Reconciler } from './reconciliation/reconciler.js';

/** The intervals are 0 for never. */
interface KeepGatewayFactsOptions extends Pick<AccountSettings, 'balanceEveryMs' | 'currenciesEveryMs'> {
  readonly gateway: FactsGateway;
  readonly connection: LedgerConnection;
  /** Currency ids of waiting payouts. An unknown id is worth a query. */
  readonly queuedPaymentIds: () => readonly number[];
  readonly reconciler?: Pick<Reconciler, 'compare'>;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 1_000;

/** The longest time until a failed query is repeated. It shows operators that the gateway is back. */
const RETRY_FAILED_MS = 10_000;

/** The shortest time between two queries for unknown currency ids. */
const UNKNOWN_ID_EVERY_MS = 5 * 60_000;

/** How often a producer's request for the list is looked for. */
const REQUEST_EVERY_MS = 10_000;

/**
 * Caches the gateway's currencies and the account's balance in Redis until the signal is aborted. A failed query is
 * recorded there and delays no payout.
 */
export async function keepGatewayFacts(options: KeepGatewayFactsOptions, signal: AbortSignal): Promise<void> {
  const keeper = new GatewayFactsKeeper(options);
  const refresh = async (): Promise<void> => {
    // The end of the sender must not wait for a slow query.
    const turn = followSignals(signal);
    await Promise.race([keeper.refresh(), untilAborted(turn.signal)]).finally(turn.end);
  };
  const onError = ({ message }: Error): void => {
    options.logger.debug({ error: message }, 'the facts of the gateway could not be cached');
  };
  await every(CHECK_EVERY_MS, refresh, { clock: options.connection.clock, signal, onError });
}

type Query = 'currencies' | 'balance';

class GatewayFactsKeeper {
  readonly #options: KeepGatewayFactsOptions;
  readonly #failures = new Map<Query, Pick<GatewayFacts, 'failure' | 'failureCode'>>();
  /** Wall clock of each last query. Undefined until the cache is read. */
  #queriedAt: Record<Query, number> | undefined;
  #unknownIdAt = -Infinity;
  #requestReadAt = -Infinity;
  #currencies: readonly Currency[] = [];
  readonly #askedFor = new Set<number>();

  constructor(options: KeepGatewayFactsOptions) {
    this.#options = options;
  }

  async refresh(): Promise<void> {
    const { connection, gateway, currenciesEveryMs, balanceEveryMs } = this.#options;
    const queriedAt = (this.#queriedAt ??= await this.#readCache());
    const isDue = this.#isDue('currencies', queriedAt, currenciesEveryMs);
    if (currenciesEveryMs > 0 && (isDue || (await this.#isWanted()))) {
      queriedAt.currencies = connection.clock.wallNow();
      await this.#query('currencies', async () => {
        const { currencies, isWhole, given } = await gateway.readCurrencies();
        if (currencies.length === 0 && given.length > 0)
          throw new Error('its items have a form that is not understood');
        this.#currencies = currencies;
        return { currencies, currenciesAt: queriedAt.currencies, isWhole };
      });
    }
    if (balanceEveryMs > 0 && this.#isDue('balance', queriedAt, balanceEveryMs)) {
      queriedAt.balance = connection.clock.wallNow();
      await this.#query('balance', async () => {
        return { balance: await this.#readBalance(), balanceAt: queriedAt.balance };
      });
    }
  }

  async #readBalance(): Promise<readonly Balance[]> {
    const { gateway, reconciler } = this.#options;
    const currencies = this.#currencies;
    const read = async (): Promise<readonly Balance[]> => {
      const { balances } = await gateway.readBalances(currencies);
      if (balances === undefined) throw new Error('it has a form that is not understood');
      return balances;
    };
    return reconciler === undefined ? read() : reconciler.compare(read, currencies);
  }

  /** A new sender continues the last one's schedule. */
  async #readCache(): Promise<Record<Query, number>> {
    const facts = await readGatewayFacts(this.#options.connection);
    this.#currencies = facts.currencies;
    return { currencies: facts.currenciesAt ?? -Infinity, balance: facts.balanceAt ?? -Infinity };
  }

  #isDue(query: Query, queriedAt: Record<Query, number>, everyMs: number): boolean {
    const passedMs = this.#options.connection.clock.wallNow() - queriedAt[query];
    const waitMs = this.#failures.has(query) ? Math.min(everyMs, RETRY_FAILED_MS) : everyMs;
    // A clock that was set back must not end the queries.
    return passedMs >= waitMs || passedMs < 0;
  }

  /** Each id of a waiting payout is worth one query. All, with those that a producer refused, are limited by time. */
  async #isWanted(): Promise<boolean> {
    const { queuedPaymentIds, connection } = this.#options;
    const now = connection.clock.now();
    if (this.#currencies.length === 0 || now - this.#unknownIdAt < UNKNOWN_ID_EVERY_MS) return false;
    const known = new Set(this.#currencies.map(({ paymentId }) => paymentId));
    const unknown = queuedPaymentIds().filter((id) => !known.has(id) && !this.#askedFor.has(id));
    if (unknown.length === 0 && !(await this.#takeRequest(now))) return false;
    for (const id of unknown) this.#askedFor.add(id);
    this.#unknownIdAt = now;
    return true;
  }

  async #takeRequest(now: number): Promise<boolean> {
    if (now - this.#requestReadAt < REQUEST_EVERY_MS) return false;
    this.#requestReadAt = now;
    return takeCurrenciesRequest(this.#options.connection);
  }

  async #query(name: Query, run: () => Promise<GatewayFactsPart>): Promise<void> {
    const { connection, logger } = this.#options;
    const had = this.#failures.get(name)?.failure;
    let part: GatewayFactsPart[] = [];
    try {
      part = [await run()];
      this.#failures.delete(name);
    } catch (error) {
      const failure = toLine(`/${name}: ${(error as Error).message}`);
      this.#failures.set(name, { failure, failureCode: queryFailureCode(error) });
      if (failure !== had) logger.warn({ error: failure }, 'the gateway was queried in vain; no payout needs it');
    }
    const [failure] = this.#failures.values();
    const failureAt = failure === undefined ? undefined : connection.clock.wallNow();
    await writeGatewayFacts(connection, ...part, { failure: undefined, ...failure, failureAt });
  }
}
