import { bech32 } from '@scure/base';

/** Payouts that a producer's key signs, to get around a list or a cap by another spelling, or another tag, of an address. */

export const TON = {
  raw: '0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E',
  bounceable: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF',
  other: 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA',
};
export const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const CASH_2 = 'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy';
export const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
export const XRP = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59';
/** Its X-addresses without a tag, and with the tag 1. */
const X_ADDRESSES = [
  'X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqZ',
  'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu',
] as const;
export const OSMO = bech32.encode('osmo', bech32.toWords(Buffer.alloc(20, 7)));

/**
 * The rules that hold them, and which currency each is about: a list that denies the wallet, one that does not have it,
 * the wallet's own cap, a new address, one that cannot be read.
 */
export const ALIAS_CURRENCIES = { denied: 6, default: 7, 'per-address': 8, 'cool-down': 9, unparsed: 10 } as const;

const TON_PLUS = TON.bounceable.replace('-', '+');
const CASH_CAPS = CASH.toUpperCase();

type Rule = keyof typeof ALIAS_CURRENCIES;
const ROWS: Readonly<Record<Rule, readonly (readonly [name: string, addressTo: string])[]>> = {
  denied: [
    ['a denied TON wallet in its bounceable form', TON.bounceable],
    ['in the other alphabet of base64', TON_PLUS],
    ['in its other form, with a tag', `${TON.other}:7`],
    ['a denied CashAddr with its prefix', `bitcoincash:${CASH}`],
    ['in capitals', CASH_CAPS],
    ['as it takes tokens', 'bitcoincash:zpm2qsznhks23z7629mms6s4cwef74vcwvrqekrq9w'],
    ['a denied bech32 address in capitals', OSMO.toUpperCase()],
    ['with a tag that it cannot have', `${OSMO}:7`],
    ['a denied 0x address in its checksum’s case', EVM],
    ['in capitals, with a tag', `0X${EVM.slice(2).toUpperCase()}:7`],
    ['a denied XRP account with a tag', `${XRP}:7`],
    ['as an X-address', X_ADDRESSES[0]],
    ['as an X-address with a tag', X_ADDRESSES[1]],
  ],
  default: [
    ['another tag of an allowed exchange', 'rExchange:66666'],
    ['an allowed exchange without a tag', 'rExchange'],
    ['an allowed tag with a zero before it, where nobody knows that it is a number', 'rExchange:012345'],
    ['another CashAddr than the allowed one, with its prefix', CASH_2],
    ['the prefix of the allowed CashAddr alone', 'bitcoincash'],
    ['another tag of an allowed XRP account', `${XRP}:2`],
    ['an allowed XRP account without a tag, as an X-address', X_ADDRESSES[0]],
    ['an allowed TON wallet with a tag', `${TON.other}:7`],
    ['an allowed bech32 address with a tag', `${OSMO}:7`],
  ],
  'per-address': [
    ['a TON wallet that has used up its cap, in its other form', TON.other],
    ['with a tag', `${TON.bounceable}:7`],
    ['in the other alphabet of base64', TON.other.replace('-', '+')],
  ],
  'cool-down': [
    ['another tag of an exchange that was seen long ago', 'rExchange:66666'],
    ['another CashAddr than the one that was seen', CASH_2],
    ['another XRP tag than the one that was seen', `${XRP}:2`],
  ],
  unparsed: [
    ['a wrong checksum', CASH_2.replace('qr95', 'qr96')],
    ['mixed case', `bitcoincash:${CASH_CAPS}`],
    ['a tag behind a 0x address', `${EVM}:7`],
    ['a scheme before it', `ethereum:${EVM}`],
  ],
};

export const ALIASES = Object.entries(ROWS).flatMap(([rule, rows]) =>
  rows.map(([name, addressTo]) => ({ name, addressTo, rule: rule as Rule })),
);
