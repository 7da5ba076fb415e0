import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { isSameAddress, parseWallet, walletAndTagKey, walletKey, type WalletFamily } from '../../src/gateway/wallet.js';

/** Addresses that the networks' own documents and programs are tested with. */
const vectors = JSON.parse(readFileSync(new URL('wallet-vectors.json', import.meta.url), 'utf8')) as {
  /** Of xrpl.js: the classic address, its tag or `-`, and the X-addresses of the main and the test network. */
  readonly xrp: readonly string[][];
  /** Raw, then friendly: the documents of TON, ton-core, tongo. */
  readonly ton: readonly string[][];
  /** The specification of CashAddr, with hashes of every size. */
  readonly cashaddr: readonly string[];
  /** BIP-173, BIP-350, BIP-84, BIP-86; the other networks' own. */
  readonly bech32: readonly string[];
  /** EIP-55. */
  readonly evm: readonly string[];
  /** What other networks' programs are tested with. Some begin like addresses of a family that they are not of. */
  readonly others: readonly string[];
  /** BIP-350, and an X-address with a tag of 64 bits. */
  readonly wrong: readonly string[];
};

const TON = {
  raw: '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e',
  bounceable: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF',
  other: 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA',
};
const MASTERCHAIN = '-1:fcb91a3a3816d0f7b8c2c76108b8a9bc5a6b7a55bd79f8ab101c52db29232260';
const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const XRP = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59';
const X_TAG_1 = 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu';
const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
const BECH32_WRONG = 'is a bech32 address whose checksum is wrong';
const TON_WRONG = 'is a TON address whose checksum (CRC16) is wrong';
const CASH_WRONG = 'is a CashAddr address of bitcoincash whose checksum is wrong';

it.each<[WalletFamily, key: string, spellings: readonly string[]]>([
  ['ton', TON.raw, [TON.raw.toUpperCase(), TON.bounceable, TON.other, TON.other.replace('-', '+'), `-${TON.raw}`]],
  ['ton', MASTERCHAIN, ['kf/8uRo6OBbQ97jCx2EIuKm8Wmt6Vb15+KsQHFLbKSMiYIny']],
  ...vectors.ton.map(([raw = '', ...friendly]): [WalletFamily, string, string[]] => ['ton', raw, friendly]),
  ...vectors.bech32.map((key): [WalletFamily, string, string[]] => ['bech32', key, [key.toUpperCase()]]),
  ['evm', EVM.toLowerCase(), [EVM, `0X${EVM.slice(2).toUpperCase()}`]],
  // Networks with 32 bytes, with and without leading zeros.
  ['hex', `0x00${'a1'.repeat(31)}`, [`0x${'A1'.repeat(31)}`]],
  // The account of a network has another spelling on each, and one for all.
  [
    'ss58',
    '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
    ['15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5', 'HNZata7iMYWmk5RvZRTiAsSDhV8366zq2YGb3tLH5Upf74F'],
  ],
  ['base58', 'r13CcKB3rx54kqMkCL3DqM7svxH6JkHUKf', []],
  // They begin as bech32 of Bitcoin does.
  ['base58', 'TB115BhpCAFbjPUgniZ36TZYxNB67fPKzr', []],
  ['base58', 'BC1LLYoE4mTCHTJhVYvLGxhRTwAHyWTQ49', []],
  // Solana has no checksum.
  ['base58', 'So11111111111111111111111111111111111111112', []],
])('one wallet in its spellings %s %s', (family, key, spellings) => {
  for (const text of [key, ...spellings]) {
    expect([text, parseWallet(text)]).toMatchObject([text, { family, key, tag: undefined, problem: undefined }]);
    expect([text, walletKey(text)]).toEqual([text, key]);
  }
});

it.each(vectors.xrp)('one wallet in its spellings xrp %s with tag %s', (classic = '', tag = '', ...extended) => {
  const whole = tag === '-' ? classic : `${classic}:${tag}`;
  for (const address of [whole, ...extended]) {
    expect([parseWallet(address), walletAndTagKey(address)]).toMatchObject([{ family: 'xrp', key: classic }, whole]);
    expect(parseWallet(address).problem).toBeUndefined();
  }
});

/** The hash of the specification's table has this legacy address in all networks. */
const LEGACY = '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu';

it.each([
  [LEGACY, [CASH, CASH.toUpperCase(), `bitcoincash:${CASH}`.toUpperCase()]],
  [LEGACY, ['ecash:qpm2qsznhks23z7629mms6s4cwef74vcwva87rkuu2', 'qpm2qsznhks23z7629mms6s4cwef74vcwva87rkuu2']],
  ['3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC', ['ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq']],
  [
    '2NFecgvisbwjgiLnwnbdwfNMj8fhrm9Fbqe',
    ['bchtest:pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t', 'pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t'],
  ],
  // With tokens: https://github.com/cashtokens/cashtokens#token-aware-cashaddresses
  [
    '1PQPheJQSauxRPTxzNMUco1XmoCyPoEJCp',
    ['qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2', 'bitcoincash:zr6m7j9njldwwzlg9v7v53unlr4jkmx6eycnjehshe'],
  ],
])('one wallet in its first form %s and as CashAddr', (legacy, spellings) => {
  expect(parseWallet(legacy)).toMatchObject({ family: 'base58', key: legacy, problem: undefined });
  for (const text of spellings) {
    expect(parseWallet(text)).toMatchObject({ family: 'cashaddr', key: legacy, tag: undefined, problem: undefined });
    expect([text, walletKey(text), isSameAddress(text, legacy)]).toEqual([text, legacy, true]);
  }
});

it.each(vectors.cashaddr)('one wallet in its spellings cashaddr %s with its prefix', (address) => {
  const key = walletKey(`bitcoincash:${address}`);
  expect(walletKey(key)).toBe(key);
  // Hashes of other sizes have no other form.
  expect(key === address).toBe(address.length !== 42);
  for (const text of [`bitcoincash:${address}`, `bitcoincash:${address}`.toUpperCase()])
    expect(parseWallet(text)).toMatchObject({ family: 'cashaddr', key, tag: undefined, problem: undefined });
});

it.each([...vectors.evm, ...vectors.others])('one wallet in its spellings of any network: %s', (address) => {
  const key = address.startsWith('0x') ? address.toLowerCase() : address;
  expect(parseWallet(address)).toMatchObject({ tag: undefined, problem: undefined });
  expect([address, walletKey(address)]).toEqual([address, parseWallet(address).key]);
  if (!address.startsWith('1iQ')) expect(walletKey(address)).toBe(key);
});

it.each([
  [`${XRP}:00123`, 'xrp', XRP, '123'],
  [`${XRP}:000`, 'xrp', XRP, '0'],
  [`${XRP}:memo`, 'xrp', XRP, 'memo'],
  [X_TAG_1, 'xrp', XRP, '1'],
  ['XVLhHMPHU98es4dbozjVtdWzVrDjtV18pX8yuPT7y4xaEHi', 'xrp', 'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf', '4294967295'],
  [`${TON.bounceable}:00123`, 'ton', TON.raw, '00123'],
  ['rExchange:12345', undefined, 'rExchange', '12345'],
  // Families that have no tag: the wallet still counts for a cap, and nobody takes it for known.
  [`${BTC.toUpperCase()}:5`, undefined, BTC, '5'],
  [`bitcoincash:${CASH}:5`, undefined, '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu', '5'],
  // It says itself that it has no tag, or which.
  [`${X_TAG_1}:5`, undefined, XRP, '1:5'],
])('the tag of %s', (text, family, key, tag) => {
  expect(parseWallet(text)).toMatchObject({ family, key, tag });
  expect(parseWallet(text).problem).toBeUndefined();
  expect([walletKey(text), walletAndTagKey(text)]).toEqual([key, `${key}:${tag}`]);
  expect(walletAndTagKey(`${key}:${tag}`)).toBe(`${key}:${tag}`);
});

it.each([
  [`${TON.bounceable.replace('EQDK', 'EQDL')}:5`, TON_WRONG],
  [`bitcoincash:${CASH.replace('pm2', 'pm3')}`, CASH_WRONG],
  [`ecash:${CASH}`, 'is a CashAddr address of ecash whose checksum is wrong'],
  ['bitcoincash:qA', CASH_WRONG],
  [CASH.replace('pm2', 'pm3'), CASH_WRONG],
  [`bitcoincash:${CASH.toUpperCase()}`, 'is a CashAddr address of bitcoincash in mixed case'],
  ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3tb', BECH32_WRONG],
  ['tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sL5k7', 'is a bech32 address in mixed case'],
  [EVM.replace('Aed', 'aed'), 'is an 0x address whose capitals are not its checksum (EIP-55)'],
  [XRP.replace('mLK', 'mLL'), 'is an XRP address whose checksum is wrong'],
  ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqY', 'is an X-address of XRP whose checksum is wrong'],
])('a wrong checksum %s %s', (text, problem) => {
  expect(parseWallet(text).problem).toBe(problem);
});

it('a wrong checksum is found wherever one letter of an address is another', () => {
  const addresses: [first: number, address: string][] = [
    ...vectors.bech32.map((text): [number, string] => [text.indexOf('1') + 1, text]),
    ...vectors.cashaddr.map((text): [number, string] => [12, `bitcoincash:${text}`]),
    ...vectors.ton.flatMap(([, ...friendly]) => friendly.map((text): [number, string] => [2, text])),
    ...vectors.xrp.map(([text = '']): [number, string] => [1, text]),
  ];
  const taken = addresses.flatMap(([first, address]) =>
    Array.from({ length: address.length - first }, (_, index) => {
      const at = first + index;
      // Letters that each of these alphabets has.
      const other = address[at] === '8' ? '9' : '8';
      return address.slice(0, at) + other + address.slice(at + 1);
    }).filter((text) => parseWallet(text).problem === undefined),
  );
  expect(addresses.length).toBeGreaterThan(30);
  for (const address of vectors.wrong)
    expect([address, parseWallet(address).problem]).toEqual([address, expect.any(String)]);
  expect(taken).toEqual([]);
});

it.each([
  // A key of 32 bytes whose letters happen to begin like another family.
  'bc1BoatSLRHtKNngkdXEeobR76b53LETtpyTzzzzzzz',
  'rExchange',
  'bc1q',
  // Liquid has a checksum of its own.
  `lq1${'q'.repeat(90)}`,
  // An account of NEAR
  'bc1'.padEnd(64, 'f'),
  `nano_x1${'3'.repeat(58)}`,
  // Of Stacks, Filecoin, XDC, Arweave and Kusama, or an account of NEAR with a name
  `SP1${'2J6ZY48GV1EZ5V2V5RB9MP66SW86PYKKNRV9EJ'.replaceAll(/[1B]/g, '0')}`,
  `f1a2j6zy4gvezv2vrmp66swpykknrvejxqanecuta`,
  `xdc1${'2'.repeat(39)}`,
  `EQ${'a-'.repeat(20)}b`,
  'EQ35BboxkgYqhMWfRtnG3KJ7UQRzqbfLxkEDvGrNYdMJtZw',
  'bc1alice.near',
])('a wrong checksum is not said of %j', (text) => {
  expect(parseWallet(text).problem).toBeUndefined();
});

it('what cannot be parsed is its own spelling, and no other wallet that begins alike', () => {
  const texts = [
    ...['bitcoincash', 'bitcoincash:qA', 'bitcoincash:qB', '0', '0:HEXA', '0:HEXB', '00', 'rExchange', 'rExchange:1'],
    ...['rExchange:01', '__proto__', 'constructor:x', 'ä:ö', 'abc:', '', ':', ' ', `bc1${'q'.repeat(253)}`],
    ...['q'.repeat(256), '1'.repeat(256), '1'.repeat(401)],
  ];
  expect(texts.map(walletAndTagKey)).toEqual(texts);
  expect(walletKey('bitcoincash:qA')).not.toBe(walletKey('bitcoincash:qB'));
});

it.each([
  [BTC, BTC.toUpperCase(), true],
  [`${XRP}:1`, X_TAG_1, true],
  ['1BoatSLRHtKNngkdXEeobR76b53LETtpyT', '1boatslrhtknngkdxeeobr76b53lettpyt', false],
  [`${TON.raw}:5`, `${TON.raw}:05`, false],
  [`${XRP}:tag`, `${XRP}:TAG`, false],
  ['0xab', 'ab', false],
  ['abc', 'abc ', false],
])('%s and %s are the same address: %s', (one, other, isSame) => {
  expect([isSameAddress(one, other), isSameAddress(other, one)]).toEqual([isSame, isSame]);
});
