import { bech32 } from '@scure/base';

/**
 * Payouts that a producer's key signs, to get around a list or a cap by another spelling, or another tag, of an address.
 * test/gateway/wallet.test.ts has all spellings.
 */

export const TON = {
  raw: '0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E',
  bounceable: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF',
  other: 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA',
};
export const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const CASH_2 = 'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy';
export const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
export const XRP = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59';
/** Its X-address with the tag 1. */
const X_ADDRESS = 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu';
export const OSMO = bech32.encode('osmo', bech32.toWords(Buffer.alloc(20, 7)));

/**
 * The rules that hold them, and which currency each is about: a list that denies the wallet, one that does not have it,
 * the wallet's own cap, a new address, one that cannot be read.
 */
export const ALIAS_CURRENCIES = { denied: 6, default: 7, 'per-address': 8, 'cool-down': 9, unparsed: 10 } as const;

type Rule = keyof typeof ALIAS_CURRENCIES;
const ROWS: Readonly<Record<Rule, readonly (readonly [name: string, addressTo: string])[]>> = {
  denied: [
    ['a denied TON wallet in its bounceable form', TON.bounceable],
    ['in its other form, with a tag', `${TON.other}:7`],
    ['a denied CashAddr with its prefix', `bitcoincash:${CASH}`],
    ['a denied bech32 address in capitals', OSMO.toUpperCase()],
    ['a denied 0x address in its checksum’s case', EVM],
    ['a denied XRP account as an X-address with a tag', X_ADDRESS],
  ],
  default: [
    ['another tag of an allowed exchange', 'rExchange:66666'],
    ['an allowed exchange without a tag', 'rExchange'],
    ['the prefix of the allowed CashAddr alone', 'bitcoincash'],
    ['another tag of an allowed XRP account', `${XRP}:2`],
    ['an allowed TON wallet with a tag', `${TON.other}:7`],
  ],
  'per-address': [['a TON wallet that has used up its cap, in its other form', TON.other]],
  'cool-down': [
    ['another tag of an exchange that was seen long ago', 'rExchange:66666'],
    ['another CashAddr than the one that was seen', CASH_2],
  ],
  unparsed: [
    ['a wrong checksum', CASH_2.replace('qr95', 'qr96')],
    ['a tag behind a 0x address', `${EVM}:7`],
  ],
};

export const ALIASES = Object.entries(ROWS).flatMap(([rule, rows]) =>
  rows.map(([name, addressTo]) => ({ name, addressTo, rule: rule as Rule })),
);
