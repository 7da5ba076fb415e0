import { toUnits } from '../../decimal.js';
import type { Balance, Currency } from '../../ledger/gateway-facts.js';

/** Units are those of decimal.ts, 10⁻³⁶. */
const ONE = 10n ** 36n;

/** A send as far as it may have lowered a balance. */
export interface Debit {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  /** A decimal string. */
  readonly amount: string;
  /** A decimal string, where the gateway stated it. */
  readonly fee: string | undefined;
  /** The highest rate of the currency while the send was open, in USD; undefined where none was known. */
  readonly rate: bigint | undefined;
  /** Whether it is known to have been paid. */
  readonly isPaid: boolean;
}

/** What sends can have taken from a balance, in its unit. */
export interface DebitSum {
  readonly count: number;
  readonly low: bigint;
  /** Undefined where no most can be said. */
  readonly high: bigint | undefined;
}

export const NO_DEBITS: DebitSum = { count: 0, low: 0n, high: 0n };

export function addSums(a: DebitSum, b: DebitSum): DebitSum {
  const high = a.high === undefined || b.high === undefined ? undefined : a.high + b.high;
  return { count: a.count + b.count, low: a.low + b.low, high };
}

/** Sends whose sums are converted in the same way. */
interface Group extends Pick<Debit, 'paymentId' | 'symbol'> {
  /** Of amount and fee: a balance with fewer may round each of them. */
  readonly decimals: number;
  /** In the currency. */
  own: DebitSum;
  /** In USD. */
  worth: DebitSum;
}

/** Sends, ready to be summed for each balance. */
export type DebitGroups = readonly Group[];

/**
 * A fee that is not known yet is taken for twice the largest so far and a hundredth of the amount; without any so far, no
 * most can be said.
 * @param largestFee - of a currency, a decimal string
 */
export function groupDebits(
  debits: Iterable<Debit>,
  largestFee: (paymentId: number) => string | undefined,
): DebitGroups {
  const groups = new Map<string, Group>();
  for (const debit of debits) {
    const { paymentId, symbol, rate } = debit;
    const { decimals, sum } = toSum(debit, largestFee(paymentId));
    const key = `${paymentId} ${symbol ?? ''} ${decimals}`;
    const group = groups.get(key) ?? { paymentId, symbol, decimals, own: NO_DEBITS, worth: NO_DEBITS };
    group.own = addSums(group.own, sum);
    group.worth = addSums(group.worth, convert(sum, rate));
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** The fee may be taken from the account on top of the amount, or be in it: the gateway's API does not say. */
function toSum({ amount, fee, isPaid }: Debit, largestFee: string | undefined): { decimals: number; sum: DebitSum } {
  const units = toUnits(amount);
  const low = isPaid ? units : 0n;
  const known = fee ?? largestFee;
  if (known === undefined) return { decimals: Infinity, sum: { count: 1, low, high: undefined } };
  const feeUnits = max(0n, toUnits(known));
  if (fee !== undefined) {
    const decimals = Math.max(decimalsOf(amount), decimalsOf(fee));
    return { decimals, sum: { count: 1, low, high: units + feeUnits } };
  }
  return { decimals: Infinity, sum: { count: 1, low, high: units + 2n * feeUnits + units / 100n } };
}

function convert({ count, low, high }: DebitSum, rate: bigint | undefined): DebitSum {
  if (rate === undefined) return { count, low: 0n, high: undefined };
  return { count, low: (low * rate) / ONE, high: high === undefined ? undefined : (high * rate) / ONE + 1n };
}

/** The gateway converts at a rate of its own, of another time than the one that was read. */
const RATE_MARGIN_PERCENT = 10n;

/** What a balance without a currency, or in a symbol that is none of a currency, is taken for. */
const ACCOUNT_SYMBOL = 'USD';

export interface BalanceView {
  readonly balance: Pick<Balance, 'paymentId' | 'symbol'>;
  /** The most decimals that it was ever stated with. */
  readonly places: number;
  /** All that the gateway keeps for the account. */
  readonly all: readonly Pick<Balance, 'paymentId' | 'symbol'>[];
  readonly currencies: readonly Currency[];
}

/** What these sends can have taken from one balance. */
export function sumFor(view: BalanceView, groups: DebitGroups): DebitSum {
  return groups.reduce((total, group) => addSums(total, sumGroup(view, group)), NO_DEBITS);
}

function sumGroup(view: BalanceView, group: Group): DebitSum {
  const { balance, currencies, all, places } = view;
  const { own, worth, decimals } = group;
  if (isOfCurrency(balance, group.paymentId, currencies)) {
    const rounding = decimals > places ? BigInt(own.count) * unitOf(places) : 0n;
    const isSure = all.length === 1 || group.symbol === undefined;
    return { ...own, low: isSure ? own.low : 0n, high: own.high === undefined ? undefined : own.high + rounding };
  }
  if (!mayBeConverted(view, group)) return NO_DEBITS;
  const price = priceOf(balance, currencies);
  const isForeign = balance.symbol === undefined && balance.paymentId === undefined && !isAccountSymbol(group.symbol);
  if (price === undefined || isForeign || worth.high === undefined) {
    return { count: own.count, low: 0n, high: undefined };
  }
  const isOnly = all.length === 1;
  return {
    count: worth.count,
    low: isOnly ? (worth.low * (100n - RATE_MARGIN_PERCENT) * ONE) / (100n * price) : 0n,
    high: (worth.high * (100n + RATE_MARGIN_PERCENT) * ONE) / (100n * price) + 1n,
  };
}

/** A send is converted where its own currency has no balance, or where it names another by its symbol. */
function mayBeConverted({ balance, all, currencies }: BalanceView, { paymentId, symbol }: Group): boolean {
  if (symbol !== undefined && balance.symbol === symbol) return true;
  const hasOwn = all.some(
    (other) => isOfCurrency(other, paymentId, currencies) || (symbol !== undefined && other.symbol === symbol),
  );
  return !hasOwn;
}

function isAccountSymbol(symbol: string | undefined): boolean {
  return symbol === undefined || symbol === ACCOUNT_SYMBOL;
}

function isOfCurrency(
  balance: Pick<Balance, 'paymentId' | 'symbol'>,
  paymentId: number,
  currencies: readonly Currency[],
): boolean {
  if (balance.paymentId !== undefined) return balance.paymentId === paymentId;
  return currencies.some((currency) => currency.paymentId === paymentId && isNamed(currency, balance.symbol));
}

function isNamed({ name }: Currency, symbol: string | undefined): boolean {
  return symbol !== undefined && (name === symbol || name.startsWith(`${symbol} (`));
}

/** What one unit of a balance is worth in USD; undefined where that is not known. */
function priceOf(
  { paymentId, symbol }: Pick<Balance, 'paymentId' | 'symbol'>,
  currencies: readonly Currency[],
): bigint | undefined {
  const named = currencies.filter((currency) =>
    paymentId === undefined ? isNamed(currency, symbol) : currency.paymentId === paymentId,
  );
  if (paymentId === undefined && named.length === 0) return isAccountSymbol(symbol) ? ONE : undefined;
  const prices = named.flatMap(({ usdRate }) => (usdRate === undefined ? [] : [toUnits(usdRate)]));
  return prices
    .filter((price) => price > 0n)
    .reduce<bigint | undefined>((least, price) => min(least, price), undefined);
}

/** The smallest step in a number with so few decimals. */
export function unitOf(places: number): bigint {
  return 10n ** BigInt(36 - Math.min(36, places));
}

export function decimalsOf(decimal: string): number {
  return decimal.split('.')[1]?.length ?? 0;
}

function min(a: bigint | undefined, b: bigint): bigint {
  return a === undefined || b < a ? b : a;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
