import type { Balance, BalanceList, Currency } from './gateway.js';
import { lowerNames, parseId, parseName, parseNumber, pick } from './parse-currencies.js';

/** The gateway's API does not define `balance`. docs/gateway-facts.md lists the accepted forms. */

const AMOUNT_NAMES = ['balance', 'amount', 'available', 'value', 'total'];
const BALANCE_CODE_NAMES = ['currency', 'code', 'symbol', 'ticker', 'coin', 'name'];

export function toBalanceList(given: unknown, currencies: readonly Currency[]): BalanceList {
  return { balances: parseBalance(given, currencies), given };
}

/**
 * @param currencies - a code that only one of them has becomes its id
 * @returns undefined if the balance has an unknown form
 */
export function parseBalance(balance: unknown, currencies: readonly Currency[]): Balance[] | undefined {
  const found = parseAny(balance);
  return found?.map((entry) => nameById(entry, currencies));
}

function parseAny(value: unknown): Balance[] | undefined {
  const amount = parseAmount(value);
  if (amount !== undefined) return [{ paymentId: undefined, symbol: undefined, amount }];
  if (Array.isArray(value)) return all(value.map(parseEntry));
  if (typeof value !== 'object' || value === null) return undefined;
  const single = parseEntry(value);
  if (single !== undefined) return [single];
  return all(
    Object.entries(value).map(([key, each]) => {
      const entry = parseEntry(each) ?? toBalance(parseAmount(each));
      const id = /^\d{1,9}$/.test(key) ? Number(key) : undefined;
      return (
        entry && {
          ...entry,
          paymentId: entry.paymentId ?? id,
          symbol: entry.symbol ?? (id === undefined ? parseName(key) : undefined),
        }
      );
    }),
  );
}

function parseEntry(value: unknown): Balance | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const fields = lowerNames(value as Record<string, unknown>);
  const entry = toBalance(parseAmount(pick(fields, AMOUNT_NAMES)));
  return entry && { ...entry, paymentId: parseId(fields), symbol: parseName(pick(fields, BALANCE_CODE_NAMES)) };
}

/** An overdrawn account has nothing to pay out. */
function parseAmount(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text === 'string' && /^-\d/.test(text)) return '0';
  return parseNumber(text);
}

function toBalance(amount: string | undefined): Balance | undefined {
  return amount === undefined ? undefined : { paymentId: undefined, symbol: undefined, amount };
}

function all(entries: readonly (Balance | undefined)[]): Balance[] | undefined {
  return entries.every((entry) => entry !== undefined) ? [...entries] : undefined;
}

function nameById(entry: Balance, currencies: readonly Currency[]): Balance {
  const { symbol, paymentId } = entry;
  if (paymentId !== undefined || symbol === undefined) return entry;
  const [only, ...others] = currencies.filter(({ name }) => name.toUpperCase() === symbol.toUpperCase());
  return only !== undefined && others.length === 0 ? { ...entry, paymentId: only.paymentId, symbol: undefined } : entry;
}
