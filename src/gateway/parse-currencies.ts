import { parseDecimal } from './exchange/responses.js';
import type { Currency, CurrencyList } from './gateway.js';
import { findChain } from './wallet/chain.js';

/** The gateway's API does not define an item of `/currencies`. docs/gateway-facts.md lists the accepted forms. */

const ID_NAMES = ['payment_id', 'paymentid', 'id', 'currency_id', 'currencyid'];
const CODE_NAMES = ['currency', 'code', 'symbol', 'ticker', 'coin', 'name', 'title'];
const NETWORK_NAMES = [
  ...['network', 'network_name', 'networkname', 'chain', 'chain_name', 'chainname', 'blockchain', 'platform'],
  ...['protocol', 'token_standard', 'tokenstandard', 'standard', 'token_type', 'tokentype'],
];
const CONTRACT_NAMES = [
  ...['contract', 'contract_address', 'contractaddress', 'token_address', 'tokenaddress'],
  ...['token_contract', 'tokencontract', 'smart_contract', 'smartcontract'],
];
const MINIMUM_NAMES = [
  ...['min_withdraw', 'minwithdraw', 'withdraw_min', 'withdrawmin', 'min_withdrawal', 'withdrawal_min'],
  ...['minimum_withdrawal', 'min_payout', 'min_amount', 'minamount', 'minimum_amount', 'minimum', 'min'],
];
const MAXIMUM_NAMES = MINIMUM_NAMES.map((name) => name.replace('min', 'max'));
const DECIMALS_NAMES = ['decimals', 'decimal_places', 'decimalplaces', 'precision', 'scale'];
const FEE_NAMES = [
  ...[
    'withdraw_fee',
    'withdrawfee',
    'withdrawal_fee',
    'withdrawalfee',
    'payout_fee',
    'network_fee',
    'networkfee',
    'fee',
  ],
];
const RATE_NAMES = ['rate_usd', 'usd_rate', 'rateusd', 'usdrate', 'usd', 'rate', 'price_usd', 'price'];

const MAX_NAME_LENGTH = 40;
const MAX_CONTRACT_LENGTH = 128;

type Item = Readonly<Record<string, unknown>>;

interface Parsed extends Currency {
  readonly code: string;
}

export function toCurrencyList(given: readonly Item[]): CurrencyList {
  const currencies = parseCurrencies(given);
  const isWhole = currencies.length > 0 && given.every((item) => parseCurrency(item) !== undefined);
  return { currencies, isWhole, given };
}

/** @returns those with an id and a name; the first for each id */
export function parseCurrencies(list: readonly Item[]): Currency[] {
  const parsed = list.flatMap((item) => parseCurrency(item) ?? []);
  const unique = parsed.filter(
    ({ paymentId }, index) => parsed.findIndex((one) => one.paymentId === paymentId) === index,
  );
  return unique.map(({ code, ...currency }) => {
    const { paymentId, network } = currency;
    const isShared = unique.some((other) => other.code === code && other.paymentId !== paymentId);
    return { ...currency, name: isShared && network !== undefined ? `${code} (${network})` : code };
  });
}

function parseCurrency(item: Item): Parsed | undefined {
  const fields = lowerNames(item);
  const id = Number(parseNumber(pick(fields, ID_NAMES)));
  const code = parseName(pick(fields, CODE_NAMES));
  if (!Number.isSafeInteger(id) || code === undefined) return undefined;
  const rate = parseNumber(pick(fields, RATE_NAMES));
  const usdRate = rate === undefined || rate === '0' ? undefined : rate;
  const optional = { ...parseNetwork(fields), ...parseLimits(fields) };
  return { paymentId: id, name: code, usdRate, code, ...optional };
}

function parseNetwork(fields: Item): Pick<Currency, 'network' | 'chain' | 'contract'> {
  const networks = namesIn(fields, NETWORK_NAMES);
  const names = namesIn(fields, CODE_NAMES);
  // A name such as "Tether (TRC-20)" has the word that users know.
  const network = /\(([^()]+)\)/.exec(parseName(fields['name']) ?? '')?.[1] ?? networks[0];
  const chain = findChain({ networks, names });
  const contract = parseName(pick(fields, CONTRACT_NAMES), MAX_CONTRACT_LENGTH);
  return {
    ...((network ?? chain) && { network: network ?? chain }),
    ...(chain && { chain }),
    ...(contract !== undefined && /^[!-~]{20,}$/.test(contract) && { contract }),
  };
}

/** A limit of 0 is none. */
function parseLimits(fields: Item): Pick<Currency, 'minimum' | 'maximum' | 'decimals' | 'fee'> {
  const [minimum, maximum] = [MINIMUM_NAMES, MAXIMUM_NAMES].map((names) => parseNumber(pick(fields, names)));
  const fee = parseNumber(pick(fields, FEE_NAMES));
  const decimals = parseNumber(pick(fields, DECIMALS_NAMES));
  return {
    ...(minimum !== undefined && minimum !== '0' && { minimum }),
    ...(maximum !== undefined && maximum !== '0' && { maximum }),
    ...(decimals !== undefined && /^(?:\d|1[0-8])$/.test(decimals) && { decimals: Number(decimals) }),
    ...(fee !== undefined && { fee }),
  };
}

function namesIn(fields: Item, names: readonly string[]): string[] {
  return names.flatMap((name) => parseName(fields[name]) ?? []);
}

/** Unsigned exact decimal digits, at most as long as an amount. */
export function parseNumber(value: unknown): string | undefined {
  const decimal = parseDecimal(typeof value === 'number' ? String(value) : value);
  return decimal !== undefined && /^\d{1,30}(\.\d{1,18})?$/.test(decimal) ? decimal : undefined;
}

export function parseName(value: unknown, maxLength = MAX_NAME_LENGTH): string | undefined {
  if (typeof value !== 'string') return undefined;
  const name = value.replace(/\p{C}+/gu, ' ').trim();
  return name === '' ? undefined : name.slice(0, maxLength);
}

export function lowerNames(item: Item): Item {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name.toLowerCase(), value]));
}

export function pick(fields: Item, names: readonly string[]): unknown {
  const name = names.find((each) => fields[each] !== undefined && fields[each] !== null && fields[each] !== '');
  return name === undefined ? undefined : fields[name];
}

export function parseId(fields: Item): number | undefined {
  const id = Number(parseNumber(pick(fields, ID_NAMES)));
  return Number.isSafeInteger(id) ? id : undefined;
}
