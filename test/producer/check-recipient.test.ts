import { expect, it } from '@jest/globals';
import { walletKey } from '../../src/gateway/wallet.js';
import { checkRecipient } from '../../src/producer/parse-payouts.js';

const RAW_TON = '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e';
const TON = 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA';
const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
const XRP = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59';
const X_ADDRESS = 'XV5sbjUmgPpvXv4ixFWZ5ptAYZ6PD28Sq49uo34VyjnmK5H';
const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const WRONG = TRON.replace('opY', 'opZ');

interface Given {
  readonly checksums?: boolean;
}

function check(addressTo: string, { checksums = true }: Given = {}) {
  try {
    checkRecipient(addressTo, { checksums });
    return 'taken';
  } catch (error) {
    return (error as Error).message;
  }
}

it.each<[string, readonly string[], Given?]>([
  ['with a right checksum', [BTC, `${TON}:memo`, CASH, EVM, XRP, TRON]],
  ['of Base58, whose network is not known here', [WRONG]],
  ['that is a name', ['some-wallet', 'alice.eth', 'X-avax1example', 'wallet-1', 'TXYZ9']],
  ['that is no payment link', [`${TON}:paid?`, 'some-wallet:12', `bitcoincash:${CASH}`]],
  ['of XRP with a tag of 32 bits', [...['0', '00123', '4294967295'].map((tag) => `${XRP}:${tag}`), X_ADDRESS]],
  [
    'of TON with a comment',
    '12e45|a1b2-1e5|1.5|-1001234567890|付款：甲|nullable|Order 17, 2nd part'.split('|').map((tag) => `${TON}:${tag}`),
  ],
])('takes an address %s', (_, addresses, given = {}) => {
  for (const addressTo of addresses) expect([addressTo, check(addressTo, given)]).toEqual([addressTo, 'taken']);
});

it.each([
  [`${TON.replace('Icf', 'Icg')}:hello`, /TON address whose checksum \(CRC16\) is wrong/],
  // A letter too few or too many, another one than the family has, or what was copied with it.
  [TON.slice(0, -1), /TON address of other letters than the 48/],
  [`${TON}=`, /TON address of other letters than the 48/],
  [EVM.replace('6053', '6O53'), /0x address of other digits than the 40/],
  [`bitcoincash:${CASH.slice(0, 9)} ${CASH.slice(9)}`, /CashAddr address of bitcoincash whose checksum is wrong/],
])('refuses a wrong checksum, and names it with both: %s', (addressTo, problem) => {
  const message = check(addressTo);
  expect(message).toMatch(problem);
  expect(message).toMatch(/^addressTo: is an? /);
  expect(message).toContain(`(got ${JSON.stringify(addressTo)})`);
  expect(check(addressTo, { checksums: false })).toBe('taken');
});

it.each([true, false])('refuses what means no address, whatever the currency, with checksums %s', (checksums) => {
  for (const addressTo of ['undefined', 'null', 'None', 'NaN', '0', '0x', '00', 'x', 'xxx', '-', 'n/a', 'null:5']) {
    expect(check(addressTo, { checksums })).toMatch(/^addressTo: is no address, but stands for a missing one/);
  }
});

// Published: the wiki of Bitcoin, BIP-38, BIP-32, xrpl.org and SEP-23.
it.each([
  '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ',
  'KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617',
  'cMzLdeGd5vEqxB8B6VFQoRopQ3sLAAvEzDAoQgvX54xwofSWj1fx',
  '6PRVWUbkzzsbcVac2qwfssoUJAN1Xhrg6bNk8J7Nzm5H7kxEbn2Nh2ZoGg',
  'xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi',
  'sn259rEFXrQrWyx3Q7XneWcwV6dfL',
  'sEdTM1uX8pu2do5XvTnutH6HsouMaM2',
  'SBU2RRGLXH3E5CQHTD3ODLDF2BWDCYUSSBLLZ5GNW7JXHDIYKXZWHOKR',
])('refuses a private key, and does not show it: %s', (key) => {
  for (const addressTo of [key, `${key}:5`]) {
    const message = check(addressTo, { checksums: false });
    expect(message).toMatch(/^addressTo: is a private key/);
    expect(message).not.toContain(key);
  }
  // With a wrong letter it is none, and an extended public key is none either.
  expect(check(key.slice(0, -1), { checksums: false })).not.toMatch(/private key/);
});

it.each([true, false])('refuses a wallet that no one owns, and contracts, with checksums %s', (checksums) => {
  for (const addressTo of [
    '0x0',
    `0x${'0'.repeat(40)}`,
    'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
    'rrrrrrrrrrrrrrrrrrrrrhoLvTp:5',
  ]) {
    expect(check(addressTo, { checksums })).toMatch(/^addressTo: is a wallet that no one owns/);
  }
  const contract = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
  expect(check(contract, { checksums })).toBe(
    `addressTo: is the contract of USDT on Tron, from which no one gets a payment back (got "${contract}")`,
  );
});

it.each([`=${TRON}`, `${TRON};`, `'${TRON}'`, `"${BTC}"`, `${EVM}.`, `(${XRP})`, `,${TON}`])(
  'refuses an address with something before or behind it: %s',
  (addressTo) => {
    expect(check(addressTo)).toMatch(
      /^addressTo: has other characters before or behind the address|other digits|other letters/,
    );
  },
);

it.each([true, false])('refuses raw TON with the form that it stands for, with checksums %s', (checksums) => {
  expect(check(RAW_TON, { checksums })).toBe(
    `addressTo: is a raw TON address, which the gateway would read as a wallet with a tag: write "${TON}" (got "${RAW_TON}")`,
  );
  expect(check(`${RAW_TON.toUpperCase()}:memo 1`, { checksums })).toContain(`write "${TON}:memo 1"`);
  const masterchain = '-1:fcb91a3a3816d0f7b8c2c76108b8a9bc5a6b7a55bd79f8ab101c52db29232260';
  const [, friendly = ''] = /write "(.*?)"/.exec(check(masterchain)) ?? [];
  expect([friendly.length, walletKey(friendly)]).toEqual([48, masterchain]);
});

const NOTHING = String.raw`NULL #REF! (none) "null" -1`.split(' ');
const REWRITTEN = '1e+22 1,5E+12 123456,00 123,456.00 123.456,00'.split(' ');
const FOREIGN = ['\u0661\u0662\u0663', 'ID\uff17'];
const behind = (tags: readonly string[], ...addresses: readonly string[]) =>
  addresses.flatMap((address) => tags.map((tag) => `${address}:${tag}`));

it.each<[string, RegExp, readonly string[], Given?]>([
  [
    'broken raw TON, instead of reading it as the wallet 0 with a tag',
    /raw TON address of other digits/,
    [RAW_TON.slice(0, -1), `${RAW_TON}0:5`, RAW_TON.replace('0:', '200:')],
    { checksums: false },
  ],
  [
    'a payment link',
    /^addressTo: is a payment link/,
    [
      ...[`BITCOIN:${BTC.toUpperCase()}?amount=0.5`, `ton://transfer/${TON}`, `xrpl:${XRP}?dt=5`],
      ...[`${BTC}?amount=1`, `bitcoincash:${CASH}?amount=1`],
      'Stellar:GBBM6BKZPEHWYO3E3YKREDPQXMS4VK35YLNU7NFBRI26RAN7GI5POFBB',
    ],
    { checksums: false },
  ],
  ['a tag of no value', /tag that means "none"/, behind(NOTHING, XRP, 'some-wallet')],
  ['a tag that is a rewritten number', /spreadsheet has rewritten/, behind(REWRITTEN, XRP, 'some-wallet')],
  ['a tag of other digits', /other digits or letters/, behind(FOREIGN, XRP, 'some-wallet')],
  ['a tag of XRP that is no number of 32 bits', /a number up to 4294967295/, behind(['4294967296', '12a', ' 12'], XRP)],
  ['a tag behind an X-address', /behind an X-address/, [`${X_ADDRESS}:5`]],
  [
    'a tag that begins with a space, which hides what it is',
    /space between the colon and the destination tag/,
    behind([' nan', '\u00a0null', ' memo'], TON),
  ],
  ['a tag of a network without tags', /tag, which its network does not have/, behind(['4711'], EVM, CASH, BTC, TRON)],
])('refuses %s', (_, problem, addresses, given = {}) => {
  for (const addressTo of addresses) expect(check(addressTo, given)).toMatch(problem);
});

it.each(['\u200b', '\u00ad'])('refuses the invisible %j anywhere, and shows its code', (hidden) => {
  const code = `\\u{${hidden.codePointAt(0)?.toString(16) ?? ''}}`;
  for (const addressTo of [`${TON}:12${hidden}3`, `${TRON}${hidden}`, `${hidden}${XRP}:7`]) {
    const message = check(addressTo, { checksums: false });
    expect(message).toMatch(/^addressTo: contains an invisible character/);
    expect(message).toContain(code);
    expect(message).not.toContain(hidden);
  }
});
