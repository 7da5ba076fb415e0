import type { Balance, Currency } from '../../ledger/gateway-facts.js';
import { lowerNames, parseId, parseName, parseNumber, pick } from './parse-currencies.js';

/** The gateway's API leaves open what `balance` looks like: docs/gateway-facts.md lists what is understood. */

const AMOUNT_NAMES = ['balance', 'amount', 'available', 'value', 'total'];
const CODE_NAMES = ['currency', 'code', 'symbol', 'ticker', 'coin', 'name'];

/**
 * @param currencies - a code that one of them alone has becomes its id
 * @returns undefined when the balance has a form that is not understood
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

/** An object with an amount, and what it is of. */
function parseEntry(value: unknown): Balance | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const fields = lowerNames(value as Record<string, unknown>);
  const entry = toBalance(parseAmount(pick(fields, AMOUNT_NAMES)));
  return entry && { ...entry, paymentId: parseId(fields), symbol: parseName(pick(fields, CODE_NAMES)) };
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
