import { ask, type LedgerConnection } from './ledger-connection.js';

/** What the gateway said last of its currencies and the account's balance. The sender caches it for those who may not ask the gateway. */
export interface GatewayFacts {
  /** Empty while they are not known. */
  readonly currencies: readonly Currency[];
  /** Wall clock, ms. */
  readonly currenciesAt: number | undefined;
  /** One for each currency, or for each symbol in which the gateway keeps accounts. Empty while it is not known. */
  readonly balance: readonly Balance[];
  /** Wall clock, ms. */
  readonly balanceAt: number | undefined;
  /** Why the last query failed; undefined where it did not. */
  readonly failure: string | undefined;
  /** When it failed: wall clock, ms. */
  readonly failureAt: number | undefined;
}

/** A currency that the gateway pays out. */
export interface Currency {
  readonly paymentId: number;
  /** Short, for operators, such as `USDT (TRC-20)`. */
  readonly name: string;
  /** A decimal string. */
  readonly usdRate: string | undefined;
}

/** What an account holds of a currency, named by its id or by the symbol of the account, or of both unnamed. */
export interface Balance {
  readonly paymentId: number | undefined;
  readonly symbol: string | undefined;
  /** A decimal string. */
  readonly amount: string;
}

const NOTHING: GatewayFacts = {
  currencies: [],
  currenciesAt: undefined,
  balance: [],
  balanceAt: undefined,
  failure: undefined,
  failureAt: undefined,
};

/**
 * Reads what the sender cached; without a sender so far, nothing is known.
 * @throws RedisUnavailableError
 */
export async function readGatewayFacts({ redis, keys }: LedgerConnection): Promise<GatewayFacts> {
  const stored = await ask(redis.hgetall(keys.gateway));
  const parts = Object.values(stored).map((text) => JSON.parse(text) as Partial<GatewayFacts>);
  return Object.assign({}, NOTHING, ...parts) as GatewayFacts;
}

/** A part of the facts that is known at the same time as a whole. */
export type GatewayFactsPart =
  | Pick<GatewayFacts, 'currencies' | 'currenciesAt'>
  | Pick<GatewayFacts, 'balance' | 'balanceAt'>
  | Pick<GatewayFacts, 'failure' | 'failureAt'>;

/**
 * Caches what was learned, and leaves the other parts as they are.
 * @throws RedisUnavailableError
 */
export async function writeGatewayFacts(
  { redis, keys }: LedgerConnection,
  ...parts: readonly GatewayFactsPart[]
): Promise<void> {
  const fields = parts.flatMap((part) => [Object.keys(part)[0] ?? '', JSON.stringify(part)]);
  await ask(redis.hset(keys.gateway, ...fields));
}
