import { every, followSignals, untilAborted } from '../../clock.js';
import { errorCode } from '../../errors.js';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import {
  type GatewayFacts,
  readGatewayFacts,
  writeGatewayFacts,
  type Balance,
  type Currency,
  type GatewayFactsPart,
} from '../../ledger/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { toLine } from '../../ledger/payout.js';
import type { Logger } from '../../logger.js';
import type { Reconciler } from '../reconciliation/reconciler.js';
import { parseBalance } from './parse-balance.js';
import { parseCurrencies } from './parse-currencies.js';

export interface KeepGatewayFactsOptions {
  readonly gateway: Pick<GatewayClient, 'currencies' | 'balance'>;
  readonly connection: LedgerConnection;
  /** How often the balance is queried, in ms; 0 for never. */
  readonly balanceEveryMs: number;
  /** How often the currencies are queried, in ms; 0 for never. */
  readonly currenciesEveryMs: number;
  /** The currency ids of the payouts that wait: one that is not known is worth a query. */
  readonly queuedPaymentIds: () => readonly number[];
  /** Judges each balance; undefined where nobody does. */
  readonly reconciler?: Pick<Reconciler, 'watch'>;
  readonly logger: Logger;
}

/** How often it is checked whether a query is due. */
const CHECK_EVERY_MS = 1_000;

/** A query that failed is repeated after this time at the latest: operators see from it that the gateway is back. */
const RETRY_FAILED_MS = 10_000;

/** Between two queries because of currency ids that are not known. */
const UNKNOWN_ID_EVERY_MS = 5 * 60_000;

/**
 * Caches the gateway's currencies and the account's balance in Redis until the signal is aborted. A query that fails is
 * noted there, and delays or stops no payout.
 */
export async function keepGatewayFacts(options: KeepGatewayFactsOptions, signal: AbortSignal): Promise<void> {
  const keeper = new GatewayFactsKeeper(options);
  const refresh = async (): Promise<void> => {
    // A query may take as long as its time limit: the end of the sender does not wait for it.
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
  /** When each was queried last, by the wall clock; undefined until the cache was read. */
  #queriedAt: Record<Query, number> | undefined;
  #unknownIdAt = -Infinity;
  #currencies: readonly Currency[] = [];
  /** When they were stated, by the wall clock; a query that failed leaves it. */
  #currenciesAt: number | undefined;
  readonly #askedFor = new Set<number>();

  constructor(options: KeepGatewayFactsOptions) {
    this.#options = options;
  }

  async refresh(): Promise<void> {
    const { connection, gateway, currenciesEveryMs, balanceEveryMs } = this.#options;
    const queriedAt = (this.#queriedAt ??= await this.#readCache());
    if (currenciesEveryMs > 0 && (this.#isDue('currencies', queriedAt, currenciesEveryMs) || this.#hasUnknownId())) {
      queriedAt.currencies = connection.clock.wallNow();
      await this.#query('currencies', async () => {
        const list = await gateway.currencies();
        const currencies = parseCurrencies(list);
        if (currencies.length === 0 && list.length > 0) throw new Error('its items have a form that is not understood');
        this.#currencies = currencies;
        this.#currenciesAt = queriedAt.currencies;
        return { currencies, currenciesAt: queriedAt.currencies };
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
    const { gateway, reconciler, connection } = this.#options;
    const currencies = this.#currencies;
    const currenciesAt = this.#currenciesAt;
    const read = async (): Promise<readonly Balance[]> => {
      const balance = parseBalance(await gateway.balance(), currencies);
      if (balance === undefined) throw new Error('it has a form that is not understood');
      return balance;
    };
    if (reconciler === undefined) return read();
    const ageMs = currenciesAt === undefined ? undefined : connection.clock.wallNow() - currenciesAt;
    return reconciler.watch(read, { currencies, ageMs });
  }

  /** A sender that takes over continues where the last one was. */
  async #readCache(): Promise<Record<Query, number>> {
    const facts = await readGatewayFacts(this.#options.connection);
    this.#currencies = facts.currencies;
    this.#currenciesAt = facts.currenciesAt;
    return { currencies: facts.currenciesAt ?? -Infinity, balance: facts.balanceAt ?? -Infinity };
  }

  #isDue(query: Query, queriedAt: Record<Query, number>, everyMs: number): boolean {
    const passedMs = this.#options.connection.clock.wallNow() - queriedAt[query];
    const waitMs = this.#failures.has(query) ? Math.min(everyMs, RETRY_FAILED_MS) : everyMs;
    // A clock that was set back must not end the queries.
    return passedMs >= waitMs || passedMs < 0;
  }

  /** Each id is worth one query, and all together one now and then. */
  #hasUnknownId(): boolean {
    const { queuedPaymentIds, connection } = this.#options;
    const now = connection.clock.now();
    if (this.#currencies.length === 0 || now - this.#unknownIdAt < UNKNOWN_ID_EVERY_MS) return false;
    const known = new Set(this.#currencies.map(({ paymentId }) => paymentId));
    const unknown = queuedPaymentIds().filter((id) => !known.has(id) && !this.#askedFor.has(id));
    if (unknown.length === 0) return false;
    for (const id of unknown) this.#askedFor.add(id);
    this.#unknownIdAt = now;
    return true;
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
      this.#failures.set(name, { failure, failureCode: errorCode(error) });
      if (failure !== had) logger.warn({ error: failure }, 'the gateway was queried in vain; no payout needs it');
    }
    const [failure] = this.#failures.values();
    const failureAt = failure === undefined ? undefined : connection.clock.wallNow();
    await writeGatewayFacts(connection, ...part, { failure: undefined, ...failure, failureAt });
  }
}
