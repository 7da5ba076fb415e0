import { describe, expect, it } from '@jest/globals';
import { bech32, bech32m } from '@scure/base';
import { isSameAddress, parseWallet, walletAndTagKey, walletKey } from '../../src/gateway/wallet.js';
import { checkWallets } from './support/check-wallets.js';

/** https://docs.ton.org/foundations/addresses/formats and the smart contract guidelines of TON. */
const TON = {
  raw: '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e',
  bounceable: 'EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF',
  other: 'UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA',
};
const MASTERCHAIN = '-1:fcb91a3a3816d0f7b8c2c76108b8a9bc5a6b7a55bd79f8ab101c52db29232260';
const CASH = 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const XRP = 'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59';
const BECH32_WRONG = 'is a bech32 address whose checksum is wrong';
const TON_WRONG = 'is a TON address whose checksum (CRC16) is wrong';
const CASH_WRONG = 'is a CashAddr address of bitcoincash whose checksum is wrong';
const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';

/** More of them, from the networks' own documents, are in wallet-vectors.test.ts. */
describe('parseWallet, one wallet in its spellings', () => {
  it.each([
    ['ton', TON.raw, [TON.raw.toUpperCase(), TON.bounceable, TON.other, TON.other.replace('-', '+'), `-${TON.raw}`]],
    [
      'ton',
      MASTERCHAIN,
      ['kf/8uRo6OBbQ97jCx2EIuKm8Wmt6Vb15+KsQHFLbKSMiYIny', 'kf_8uRo6OBbQ97jCx2EIuKm8Wmt6Vb15-KsQHFLbKSMiYIny'],
    ],
    // https://github.com/bitcoincashorg/bitcoincash.org/blob/master/spec/cashaddr.md
    ['cashaddr', CASH, [`bitcoincash:${CASH}`, CASH.toUpperCase(), `bitcoincash:${CASH}`.toUpperCase()]],
    ['cashaddr', 'bchtest:pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t', ['pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t']],
    ['cashaddr', 'ecash:qpm2qsznhks23z7629mms6s4cwef74vcwva87rkuu2', ['qpm2qsznhks23z7629mms6s4cwef74vcwva87rkuu2']],
    // With tokens: https://github.com/cashtokens/cashtokens#token-aware-cashaddresses
    [
      'cashaddr',
      'qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2',
      ['bitcoincash:zr6m7j9njldwwzlg9v7v53unlr4jkmx6eycnjehshe'],
    ],
    // BIP-173, BIP-350
    ['bech32', BTC, [BTC.toUpperCase()]],
    // EIP-55
    ['evm', EVM.toLowerCase(), [EVM, `0X${EVM.slice(2).toUpperCase()}`]],
    // Networks with 32 bytes, with and without leading zeros.
    ['hex', `0x00${'a1'.repeat(31)}`, [`0x${'A1'.repeat(31)}`]],
    ['base58', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', []],
    ['base58', 'r13CcKB3rx54kqMkCL3DqM7svxH6JkHUKf', []],
    // They begin as bech32 of Bitcoin does.
    ['base58', 'TB115BhpCAFbjPUgniZ36TZYxNB67fPKzr', []],
    ['base58', 'BC1LLYoE4mTCHTJhVYvLGxhRTwAHyWTQ49', []],
    // Solana has no checksum.
    ['base58', 'So11111111111111111111111111111111111111112', []],
  ])('%s %s', (family, key, spellings) => {
    for (const text of [key, ...spellings]) {
      expect([text, parseWallet(text)]).toEqual([text, { family, key, tag: undefined, problem: undefined }]);
    }
  });

  it.each(['osmo', 'ltcmweb', 'account_rdx', 'inj', 'zs'])('bech32 and bech32m of the prefix %s', (prefix) => {
    for (const codec of [bech32, bech32m]) {
      const text = codec.encode(prefix, codec.toWords(Buffer.alloc(66, prefix)), false);
      for (const spelling of [text, text.toUpperCase()]) {
        expect(parseWallet(spelling)).toEqual({ family: 'bech32', key: text, tag: undefined });
      }
      const wrong = `${text.slice(0, -1)}${text.endsWith('q') ? 'p' : 'q'}`;
      expect(parseWallet(wrong).problem).toBe(BECH32_WRONG);
    }
  });
});

describe('parseWallet, tags', () => {
  it.each([
    [`${XRP}:00123`, 'xrp', XRP, '123'],
    [`${XRP}:0`, 'xrp', XRP, '0'],
    [`${XRP}:000`, 'xrp', XRP, '0'],
    [`${XRP}:memo`, 'xrp', XRP, 'memo'],
    ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu', 'xrp', XRP, '1'],
    ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaLFuhLRuNXPrDeJd9A', 'xrp', XRP, '11747'],
    ['XVLhHMPHU98es4dbozjVtdWzVrDjtV18pX8yuPT7y4xaEHi', 'xrp', 'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf', '4294967295'],
    [`${TON.bounceable}:00123`, 'ton', TON.raw, '00123'],
    [`${TON.raw}:a:b`, 'ton', TON.raw, 'a:b'],
    ['rExchange:12345', undefined, 'rExchange', '12345'],
    ['sandboxTON4b45:a:b', undefined, 'sandboxTON4b45', 'a:b'],
    // Families that have no tag: the wallet still counts for a cap, and nobody takes it for known.
    [`${BTC.toUpperCase()}:5`, undefined, BTC, '5'],
    [`${EVM}:5`, undefined, EVM.toLowerCase(), '5'],
    [`bitcoincash:${CASH}:5`, undefined, CASH, '5'],
    // It says itself that it has no tag, or which.
    ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqZ:5', undefined, XRP, ':5'],
    ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu:5', undefined, XRP, '1:5'],
  ])('%s', (text, family, key, tag) => {
    expect(parseWallet(text)).toEqual({ family, key, tag, problem: undefined });
    expect(walletKey(text)).toBe(key);
    expect(walletAndTagKey(text)).toBe(`${key}:${tag}`);
    expect(walletAndTagKey(`${key}:${tag}`)).toBe(`${key}:${tag}`);
  });
});

describe('parseWallet, a wrong checksum', () => {
  it.each([
    [TON.bounceable.replace('EQDK', 'EQDL'), TON_WRONG],
    [`${TON.bounceable.replace('EQDK', 'EQDL')}:5`, TON_WRONG],
    [`bitcoincash:${CASH.replace('pm2', 'pm3')}`, CASH_WRONG],
    [`ecash:${CASH}`, 'is a CashAddr address of ecash whose checksum is wrong'],
    ['bitcoincash:qA', CASH_WRONG],
    [CASH.replace('pm2', 'pm3'), CASH_WRONG],
    [`bitcoincash:${CASH.toUpperCase()}`, 'is a CashAddr address of bitcoincash in mixed case'],
    // BIP-173, BIP-350: a wrong checksum, the checksum of the other version, a letter that is none, mixed case
    ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5', BECH32_WRONG],
    ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3tb', BECH32_WRONG],
    ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3', BECH32_WRONG],
    ['tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sL5k7', 'is a bech32 address in mixed case'],
    [EVM.replace('Aed', 'aed'), 'is an 0x address whose capitals are not its checksum (EIP-55)'],
    [XRP.replace('mLK', 'mLL'), 'is an XRP address whose checksum is wrong'],
    ['X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqY', 'is an X-address of XRP whose checksum is wrong'],
  ])('%s %s', (text, problem) => {
    expect(parseWallet(text).problem).toBe(problem);
  });

  it.each([
    // A key of 32 bytes whose letters happen to begin like another family.
    'bc1BoatSLRHtKNngkdXEeobR76b53LETtpyTzzzzzzz',
    'rExchange',
    'bc1q',
    // Liquid has a checksum of its own.
    `lq1${'q'.repeat(90)}`,
    // An account of NEAR
    'a1'.padEnd(64, 'b'),
    'a1'.padEnd(64, 'c'),
    'bc1'.padEnd(64, 'f'),
    `nano_x1${'3'.repeat(58)}`,
    `xrb_1${'3'.repeat(59)}`,
    '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
    // Of Stacks, Filecoin, XDC, Arweave and Kusama, or an account of NEAR with a name
    `SP1${'2J6ZY48GV1EZ5V2V5RB9MP66SW86PYKKNRV9EJ'.replaceAll(/[1B]/g, '0')}`,
    `f1a2j6zy4gvezv2vrmp66swpykknrvejxqanecuta`,
    `xdc1${'2'.repeat(39)}`,
    `EQ${'a-'.repeat(20)}b`,
    'EQ35BboxkgYqhMWfRtnG3KJ7UQRzqbfLxkEDvGrNYdMJtZw',
    'bc1alice.near',
    'ä',
    '',
  ])('is not said of %j', (text) => {
    expect(parseWallet(text).problem).toBeUndefined();
  });
});

describe('what cannot be parsed', () => {
  it.each([
    'bitcoincash:qA',
    'bitcoincash',
    '0',
    '0:HEXA',
    'rExchange',
    'rExchange:12345',
    '__proto__',
    'constructor:x',
    'ä:ö',
    'abc:',
    '',
    ':',
    'q'.repeat(256),
    '1'.repeat(256),
    `bc1${'q'.repeat(253)}`,
    ' ',
  ])('%j is its own spelling', (text) => {
    expect(walletAndTagKey(text)).toBe(text);
  });

  it('is no other wallet that begins alike', () => {
    const texts = [
      'bitcoincash',
      'bitcoincash:qA',
      'bitcoincash:qB',
      '0',
      '0:HEXA',
      '0:HEXB',
      '00',
      'rExchange',
      'rExchange:1',
      'rExchange:01',
    ];
    expect(new Set(texts.map(walletAndTagKey)).size).toBe(texts.length);
    expect(walletKey('bitcoincash:qA')).not.toBe(walletKey('bitcoincash:qB'));
  });
});

describe('isSameAddress', () => {
  it.each([
    [BTC, BTC.toUpperCase()],
    [CASH, `bitcoincash:${CASH}`],
    [TON.bounceable, TON.other],
    [`${TON.bounceable}:5`, `${TON.raw}:5`],
    [`${XRP}:123`, `${XRP}:00123`],
    [`${XRP}:1`, 'X7AcgcsBL6XDcUb289X4mJ8djcdyKaGZMhc9YTE92ehJ2Fu'],
    // The same account: EIP-55 puts a checksum into the case of the digits.
    ['0x52908400098527886E0F7030069857D2E4169EE7', '0x52908400098527886e0f7030069857d2e4169ee7'],
    ['0Xab', '0xAB'],
  ])('%s and %s', (one, other) => {
    expect(isSameAddress(one, other)).toBe(true);
    expect(isSameAddress(other, one)).toBe(true);
  });

  it.each([
    ['1BoatSLRHtKNngkdXEeobR76b53LETtpyT', '1boatslrhtknngkdxeeobr76b53lettpyt'],
    [`${XRP}:123`, XRP],
    [`${XRP}:123`, `${XRP}:124`],
    [`${XRP}:tag`, `${XRP}:TAG`],
    ['rEb8:123', 'rEb8:0123'],
    [`${TON.raw}:5`, `${TON.raw}:05`],
    [CASH, 'ecash:qpm2qsznhks23z7629mms6s4cwef74vcwva87rkuu2'],
    ['0xab:tag', '0xAB:TAG'],
    ['0xab', '0xac'],
    ['0xab', 'ab'],
    ['abc', 'abc '],
  ])('not %s and %s', (one, other) => {
    expect(isSameAddress(one, other)).toBe(false);
    expect(isSameAddress(other, one)).toBe(false);
  });
});

it('2,000 random wallets are known in all their spellings, and their wrong letters are refused', () => {
  expect(checkWallets(2_000)).toBeGreaterThan(1_000);
});
