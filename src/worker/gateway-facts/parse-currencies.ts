import { parseDecimal } from '../../gateway/plain-decimal.js';
import type { Currency } from '../../ledger/gateway-facts.js';

/** The gateway's API leaves open what an item of `/currencies` looks like: docs/gateway-facts.md lists what is understood. */

const ID_NAMES = ['payment_id', 'paymentid', 'id', 'currency_id', 'currencyid'];
const CODE_NAMES = ['currency', 'code', 'symbol', 'ticker', 'coin', 'name', 'title'];
const NETWORK_NAMES = ['network', 'chain', 'blockchain', 'protocol'];
const RATE_NAMES = ['rate_usd', 'usd_rate', 'rateusd', 'usdrate', 'usd', 'rate', 'price_usd', 'price'];

const MAX_NAME_LENGTH = 40;

type Item = Readonly<Record<string, unknown>>;

interface Parsed extends Currency {
  readonly code: string;
  readonly variant: string | undefined;
}

/** @returns those that have an id and a name; of two with the same id the first */
export function parseCurrencies(list: readonly Item[]): Currency[] {
  const parsed = list.flatMap((item) => parseCurrency(item) ?? []);
  const unique = parsed.filter(
    ({ paymentId }, index) => parsed.findIndex((one) => one.paymentId === paymentId) === index,
  );
  return unique.map(({ paymentId, code, variant, usdRate }) => {
    const isShared = unique.some((other) => other.code === code && other.paymentId !== paymentId);
    return { paymentId, name: isShared && variant !== undefined ? `${code} (${variant})` : code, usdRate };
  });
}

function parseCurrency(item: Item): Parsed | undefined {
  const fields = lowerNames(item);
  const id = Number(parseNumber(pick(fields, ID_NAMES)));
  const code = parseName(pick(fields, CODE_NAMES));
  if (!Number.isSafeInteger(id) || code === undefined) return undefined;
  const rate = parseNumber(pick(fields, RATE_NAMES));
  // A name such as "Tether (TRC-20)" says it in the word that users know.
  const variant = /\(([^()]+)\)/.exec(parseName(fields['name']) ?? '')?.[1] ?? parseName(pick(fields, NETWORK_NAMES));
  const usdRate = rate === undefined || rate === '0' ? undefined : rate;
  return { paymentId: id, name: code, usdRate, code, variant };
}

/** A number as exact decimal digits, without a sign and of the length of an amount. */
export function parseNumber(value: unknown): string | undefined {
  const decimal = parseDecimal(typeof value === 'number' ? String(value) : value);
  return decimal !== undefined && /^\d{1,30}(\.\d{1,18})?$/.test(decimal) ? decimal : undefined;
}

/** A short text on one line. */
export function parseName(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const name = value.replace(/\p{C}+/gu, ' ').trim();
  return name === '' ? undefined : name.slice(0, MAX_NAME_LENGTH);
}

export function lowerNames(item: Item): Item {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name.toLowerCase(), value]));
}

/** The first field of these names that has a value. */
export function pick(fields: Item, names: readonly string[]): unknown {
  const name = names.find((each) => fields[each] !== undefined && fields[each] !== null && fields[each] !== '');
  return name === undefined ? undefined : fields[name];
}

/** The field in which an item names its currency by number. */
export function parseId(fields: Item): number | undefined {
  const id = Number(parseNumber(pick(fields, ID_NAMES)));
  return Number.isSafeInteger(id) ? id : undefined;
}
