import { fromUnits, toUnits } from '../../base/decimal.js';
import { ACCOUNT_SYMBOL } from '../../ledger/reads/balance-cover.js';
import type { Balance, Currency } from '../../ledger/reads/gateway-facts.js';
import type { SendFacts } from '../../ledger/payment-facts.js';
import type { SendSum } from '../../ledger/reads/reconciliation.js';

/** In units of decimal.ts, 10⁻³⁶. */
const ONE = 10n ** 36n;

/** A send that may have lowered a balance, with its currency's highest rate while open, in USD. */
export interface Debit extends SendFacts {
  readonly rate: bigint | undefined;
}

/** USD per currency, in units of decimal.ts. */
export type Rates = ReadonlyMap<number, bigint>;

export function ratesOf(currencies: readonly Currency[]): Rates {
  return new Map(
    currencies.flatMap(({ paymentId, usdRate }) => (usdRate === undefined ? [] : [[paymentId, toUnits(usdRate)]])),
  );
}

/** Sends that are converted alike. Sums are undefined if they have no upper bound. */
interface Group extends Pick<Debit, 'paymentId' | 'symbol'> {
  count: number;
  own: bigint | undefined;
  worth: bigint | undefined;
}

type SendGroups = readonly Group[];

/** @param fees - the largest of each currency, for sends whose fee is still unknown */
export function groupSends(debits: Iterable<Debit>, fees: ReadonlyMap<number, string>): SendGroups {
  const groups = new Map<string, Group>();
  for (const debit of debits) {
    const { paymentId, symbol, rate } = debit;
    const key = `${paymentId} ${symbol ?? ''}`;
    const group = groups.get(key) ?? { paymentId, symbol, count: 0, own: 0n, worth: 0n };
    const { own, worth } = boundsOf(symbol, mostOf(debit, fees.get(paymentId)), rate);
    group.count += 1;
    group.own = add(group.own, own);
    group.worth = add(group.worth, worth);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/**
 * The fee may be added to the amount; the gateway's API does not say. An unknown fee counts as twice the largest so far
 * and a hundredth of the amount.
 */
function mostOf({ amount, fee }: Debit, largestFee: string | undefined): bigint | undefined {
  const units = toUnits(amount);
  if (fee !== undefined) return units + positive(fee);
  return largestFee === undefined ? undefined : units + 2n * positive(largestFee) + units / 100n;
}

/** With a symbol, the amount may be in that currency or in its own: the larger of both readings bounds it. */
function boundsOf(
  symbol: string | undefined,
  most: bigint | undefined,
  rate: bigint | undefined,
): { readonly own: bigint | undefined; readonly worth: bigint | undefined } {
  const worth = most === undefined || rate === undefined ? undefined : (most * rate) / ONE + 1n;
  if (symbol === undefined) return { own: most, worth };
  if (symbol !== ACCOUNT_SYMBOL || most === undefined || worth === undefined || !rate) {
    return { own: undefined, worth: undefined };
  }
  const converted = (most * ONE) / rate + 1n;
  return { own: converted > most ? converted : most, worth: worth > most ? worth : most };
}

function positive(decimal: string): bigint {
  const units = toUnits(decimal);
  return units > 0n ? units : 0n;
}

function add(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

/** The gateway converts at its own rate, of another time than the rate read. */
const RATE_MARGIN_PERCENT = 10n;

type BalanceName = Pick<Balance, 'paymentId' | 'symbol'>;

interface BalanceView {
  readonly balance: BalanceName;
  /** All balances of the account at the gateway. */
  readonly all: readonly BalanceName[];
  readonly currencies: readonly Currency[];
}

/** The most that these sends can have taken from one balance. */
export function sumFor(view: BalanceView, groups: SendGroups): SendSum {
  const taken = groups.filter((group) => mayTakeFrom(view, group));
  const high = taken.reduce<bigint | undefined>((total, group) => add(total, mostFrom(view, group)), 0n);
  return {
    count: taken.reduce((total, { count }) => total + count, 0),
    high: high === undefined ? undefined : fromUnits(high),
  };
}

/** A send is converted if its own currency has no balance, or if it names another by its symbol. */
function mayTakeFrom({ balance, all, currencies }: BalanceView, { paymentId, symbol }: Group): boolean {
  if (isOfCurrency(balance, paymentId, currencies)) return true;
  if (symbol !== undefined && balance.symbol === symbol) return true;
  return !all.some(
    (other) => isOfCurrency(other, paymentId, currencies) || (symbol !== undefined && other.symbol === symbol),
  );
}

function mostFrom({ balance, currencies }: BalanceView, { paymentId, own, worth }: Group): bigint | undefined {
  if (isOfCurrency(balance, paymentId, currencies)) return own;
  const price = priceOf(balance, currencies);
  if (price === undefined || worth === undefined) return undefined;
  return (worth * (100n + RATE_MARGIN_PERCENT) * ONE) / (100n * price) + 1n;
}

function isOfCurrency(balance: BalanceName, paymentId: number, currencies: readonly Currency[]): boolean {
  if (balance.paymentId !== undefined) return balance.paymentId === paymentId;
  return currencies.some((currency) => currency.paymentId === paymentId && isNamed(currency, balance.symbol));
}

function isNamed({ name }: Currency, symbol: string | undefined): boolean {
  return symbol !== undefined && (name === symbol || name.startsWith(`${symbol} (`));
}

/** The least USD worth of one unit by any rate. Undefined if unknown. */
function priceOf({ paymentId, symbol }: BalanceName, currencies: readonly Currency[]): bigint | undefined {
  const named = currencies.filter((currency) =>
    paymentId === undefined ? isNamed(currency, symbol) : currency.paymentId === paymentId,
  );
  if (paymentId === undefined && named.length === 0) {
    return symbol === undefined || symbol === ACCOUNT_SYMBOL ? ONE : undefined;
  }
  const prices = named.flatMap(({ usdRate }) => (usdRate === undefined ? [] : [toUnits(usdRate)]));
  const [first, ...others] = prices.filter((price) => price > 0n);
  return first && others.reduce((least, price) => (price < least ? price : least), first);
}
