import { z } from 'zod';
import type { Balance, Currency } from '../../gateway/gateway.js';
import { parseStored, storedAmount, storedTime } from '../parse-stored.js';
import { ask, askReadable, type LedgerConnection } from '../ledger-connection.js';

/** The gateway's last data, cached by the sender for processes that may not query the gateway. */
export interface GatewayFacts {
  /** Empty while unknown. */
  readonly currencies: readonly Currency[];
  /** Wall clock, ms. */
  readonly currenciesAt: number | undefined;
  /** Every item of the list was understood: no other id is a currency. */
  readonly isWhole?: boolean | undefined;
  /** One for each currency, or for each symbol in which the gateway keeps accounts. Empty while unknown. */
  readonly balance: readonly Balance[];
  /** Wall clock, ms. */
  readonly balanceAt: number | undefined;
  /** Why the last query failed; undefined after a success. */
  readonly failure: string | undefined;
  /** The code of that error. */
  readonly failureCode?: string | undefined;
  /** When it failed: wall clock, ms. */
  readonly failureAt: number | undefined;
  /**
   * Whether the gateway finds payments by order id, as the present worker learned from the first one that it saw accepted.
   * Undefined if the gateway has no order ids.
   */
  readonly lookUp?: 'untested' | 'works' | 'fails' | undefined;
  /** When it was learned: wall clock, ms. */
  readonly lookUpAt?: number | undefined;
  /** What the gateway answered instead, if it fails. */
  readonly lookUpMessage?: string | undefined;
}

export type { Balance, Currency };

const NOTHING: GatewayFacts = {
  currencies: [],
  currenciesAt: undefined,
  balance: [],
  balanceAt: undefined,
  failure: undefined,
  failureAt: undefined,
};

/** Empty before the first sender. */
export async function readGatewayFacts({ redis, keys }: LedgerConnection): Promise<GatewayFacts> {
  const stored = await askReadable(redis.hgetall(keys.gateway), {});
  const parts = Object.entries(PARTS).map(([field, schema]) => parseStored<object>(schema, stored[field]) ?? {});
  return Object.assign({}, NOTHING, ...parts) as GatewayFacts;
}

const currency = z.looseObject({
  paymentId: z.int(),
  name: z.string(),
  usdRate: storedAmount.optional().catch(undefined),
  network: z.string().optional().catch(undefined),
  chain: z.string().optional().catch(undefined),
  contract: z.string().optional().catch(undefined),
  minimum: storedAmount.optional().catch(undefined),
  maximum: storedAmount.optional().catch(undefined),
  decimals: z.int().min(0).max(100).optional().catch(undefined),
  fee: storedAmount.optional().catch(undefined),
});

const balance = z.object({ paymentId: z.int().optional(), symbol: z.string().optional(), amount: storedAmount });

/** What someone wrote over it, and nobody can read, is left out: pages, metrics and alarms go on without it. */
const PARTS = {
  currencies: z.object({
    currencies: z.array(currency),
    currenciesAt: storedTime.optional(),
    isWhole: z.boolean().optional(),
  }),
  balance: z.object({ balance: z.array(balance), balanceAt: storedTime.optional() }),
  failure: z.object({
    failure: z.string().optional(),
    failureCode: z.string().optional(),
    failureAt: storedTime.optional(),
  }),
  lookUp: z.object({
    lookUp: z.enum(['untested', 'works', 'fails']),
    lookUpAt: storedTime,
    lookUpMessage: z.string().optional(),
  }),
} as const;

export type LookUpEvidence = Pick<GatewayFacts, 'lookUp' | 'lookUpAt' | 'lookUpMessage'>;

export type GatewayFactsPart =
  | Pick<GatewayFacts, 'currencies' | 'currenciesAt' | 'isWhole'>
  | Pick<GatewayFacts, 'balance' | 'balanceAt'>
  | Pick<GatewayFacts, 'failure' | 'failureCode' | 'failureAt'>
  | LookUpEvidence;

/** Leaves the other parts as they are. */
export async function writeGatewayFacts(
  { redis, keys }: LedgerConnection,
  ...parts: readonly GatewayFactsPart[]
): Promise<void> {
  const fields = parts.flatMap((part) => [Object.keys(part)[0] ?? '', JSON.stringify(part)]);
  await ask(redis.hset(keys.gateway, ...fields));
}

const REQUEST = 'request';

/** Asks the sender to query the currencies again. */
export async function requestCurrencies({ redis, keys }: LedgerConnection): Promise<void> {
  await ask(redis.hset(keys.gateway, REQUEST, '{}'));
}

/** @returns whether {@link requestCurrencies} was called since the last call */
export async function takeCurrenciesRequest({ redis, keys }: LedgerConnection): Promise<boolean> {
  return (await ask(redis.hdel(keys.gateway, REQUEST))) > 0;
}
