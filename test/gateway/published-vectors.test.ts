import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { bech32, bech32m } from '@scure/base';
import { isSameAddress, parseWallet, walletAndTagKey, walletKey } from '../../src/gateway/wallet.js';
import { crc16 } from '../../src/base/crc16.js';

/** Every address of the files in `test/vectors`, which are as they were published. */

const read = (name: string) => readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8');
/** The groups of each match; of one that matched nothing an empty text. */
const rowsOf = (text: string, pattern: RegExp) =>
  Array.from(text.matchAll(pattern), ([, ...groups]: (string | undefined)[]) => groups.map((each) => each ?? ''));
const isTest = (chain: string) => chain.endsWith(' (test)');

/** Taken for an address of a network that this one is of. */
function isTakenFor(address: string, chain: RegExp) {
  const { chains = [], problem } = parseWallet(address);
  return problem === undefined && chains.some((each) => chain.test(each));
}

interface KeyIo {
  readonly isPrivkey: boolean;
  readonly chain: string;
  readonly tryCaseFlip?: boolean;
}

it('every address of key_io_valid.json is one of its network, and each script has one wallet', () => {
  const rows = JSON.parse(read('key_io_valid.json')) as [address: string, script: string, KeyIo][];
  const wallets = new Map<string, string>();
  for (const [address, script, { isPrivkey, chain, tryCaseFlip = false }] of rows) {
    const expected = isPrivkey ? undefined : chain === 'main' ? 'Bitcoin' : 'Bitcoin (test)';
    const { chains, problem, key } = parseWallet(address);
    expect([address, chains?.[0], problem]).toEqual([address, expected, undefined]);
    if (isPrivkey) continue;
    if (tryCaseFlip) expect(isSameAddress(address, address.toUpperCase())).toBe(true);
    expect([address, wallets.get(key)]).toEqual([address, undefined]);
    wallets.set(key, script);
  }
  expect(wallets.size).toBe(54);
});

it('no text of key_io_invalid.json is an address of Bitcoin', () => {
  const rows = JSON.parse(read('key_io_invalid.json')) as [text: string][];
  expect(rows).toHaveLength(70);
  expect(rows.flat().filter((text) => isTakenFor(text, /^Bitcoin/))).toEqual([]);
});

const BIPS = [
  { name: 'bip-0173.mediawiki', strings: 7, valid: 6, invalid: 10 },
  { name: 'bip-0350.mediawiki', strings: 7, valid: 8, invalid: 15 },
];

it.each(BIPS)('every string of $name is what it says, or what BIP-350 has made of it since', (bip) => {
  const [strings = '', addresses = ''] = read(bip.name).split('The following list gives valid segwit addresses');
  const [valid = '', invalid = ''] = addresses.split('The following list gives invalid segwit addresses');
  const [, listed = ''] = strings.split(/strings are valid Bech32m?:/);
  const [right = '', wrong = ''] = listed.split(/following string are not valid/);
  const isFormer = bip.name.includes('0173');
  const ofRight = rowsOf(right, /^\* <tt>(\S+)<\/tt>/gm).flat();
  expect(ofRight).toHaveLength(bip.strings);
  for (const text of ofRight)
    expect([text, parseWallet(text)]).toMatchObject([
      text,
      { family: 'bech32', problem: undefined, key: text.toLowerCase() },
    ]);
  const ofWrong = rowsOf(wrong, /^\* <tt>(\S+)<\/tt>: (.*)$/gm);
  expect(ofWrong.length).toBeGreaterThan(5);
  // Cardano's addresses are longer than the 90 letters of the standard.
  for (const [text = '', why = ''] of ofWrong)
    expect([text, parseWallet(text).family === 'bech32']).toEqual([text, why.includes('max length')]);

  const taken = rowsOf(valid, /^\* <tt>(\S+)<\/tt>: <tt>([0-9a-f]+)<\/tt>$/gm);
  expect(taken).toHaveLength(bip.valid);
  for (const [address = '', script = ''] of taken) {
    const isVersion0 = script.startsWith('00');
    expect([address, isTakenFor(address, /^Bitcoin/)]).toEqual([address, isVersion0 || !isFormer]);
  }
  const refused = rowsOf(invalid.split(/^==/m)[0] ?? '', /^\* <tt>(\S+)<\/tt>: /gm).flat();
  expect(refused).toHaveLength(bip.invalid);
  expect(refused.filter((text) => isTakenFor(text, /^Bitcoin/))).toEqual([]);
});

it('every CashAddr of its specification is valid, and so is each legacy address beside one', () => {
  const text = read('cashaddr.md');
  const rows = rowsOf(text, /^\|\d+\|\d+\|([a-z]+):([a-z0-9]+)\|[0-9A-F]+\|$/gm);
  expect(rows).toHaveLength(32);
  for (const [prefix = '', payload = ''] of rows) {
    const isKnown = prefix === 'bitcoincash' || prefix === 'bchtest';
    const { family, problem, chains } = parseWallet(`${prefix}:${payload}`);
    const chain = prefix === 'bchtest' ? 'Bitcoin Cash (test)' : 'Bitcoin Cash';
    const expected = isKnown ? ['cashaddr', undefined, [chain]] : [undefined, undefined, undefined];
    expect([payload, family, problem, chains]).toEqual([payload, ...expected]);
    if (isKnown)
      expect(parseWallet(`${prefix}:${payload.replace(/.$/, payload.endsWith('q') ? 'p' : 'q')}`).problem).toMatch(
        'checksum',
      );
  }
  const translations = rowsOf(text, /^\| *([13]\w+) *\| *(bitcoincash:\w+) *\|/gm);
  expect(translations).toHaveLength(6);
  for (const [legacy = '', cash = ''] of translations) {
    expect(isTakenFor(legacy, /^Bitcoin Cash$/)).toBe(true);
    expect(isTakenFor(cash, /^Bitcoin Cash$/)).toBe(true);
  }
});

it('every X-address of XLS-5 is its classic address with its tag', () => {
  const text = read('xls-0005.md');
  const classic = 'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf';
  expect(text).toContain(classic);
  const rows = rowsOf(text, /^\| *(<none>|_none_|\d+) *\| \*\*([XT]\w+)\*\* *\| `[0-9A-F]+` *\|$/gm);
  expect(rows).toHaveLength(20);
  for (const [tag = '', address = ''] of rows) {
    const whole = /^\d+$/.test(tag) ? `${classic}:${tag}` : classic;
    expect([walletAndTagKey(address), walletKey(address)]).toEqual([whole, classic]);
    const { chains = [], problem } = parseWallet(address);
    expect([problem, chains.every(isTest)]).toEqual([undefined, address.startsWith('T')]);
  }
});

it('every account of SEP-23 is one of Stellar, and no invalid text is', () => {
  const [valid = '', invalid = ''] = read('sep-0023-tests.md').split('### Invalid test cases');
  const accounts = rowsOf(valid, /`([GMC][A-Z2-7]{50,})`/g).flat();
  expect(new Set(accounts).size).toBe(4);
  for (const text of accounts) expect([text, isTakenFor(text, /^Stellar/)]).toEqual([text, true]);
  expect(new Set(accounts.filter((text) => !text.startsWith('C')).map(walletKey)).size).toBe(1);
  const refused = rowsOf(invalid, /^ *"([A-Z2-7=]+)",$/gm).flat();
  expect(refused).toHaveLength(15);
  expect(refused.filter((text) => isTakenFor(text, /^Stellar/))).toEqual([]);
});

it('every address of CIP-19 is one of its network, and a wallet of its own', () => {
  const [main = '', test = ''] = read('cip-0019.md').split(/^testnet:/m);
  const addressesOf = (text: string) => rowsOf(text, /^ *type-\d\d: (\S+)$/gm).flat();
  const [ofMain, ofTest] = [addressesOf(main), addressesOf(test)];
  expect([ofMain.length, ofTest.length, new Set([...ofMain, ...ofTest].map(walletKey)).size]).toEqual([10, 10, 20]);
  for (const address of ofMain) expect([address, parseWallet(address).chains]).toEqual([address, ['Cardano']]);
  for (const address of ofTest) expect([address, parseWallet(address).chains]).toEqual([address, ['Cardano (test)']]);
});

it('a prefix that SLIP-173 registers is taken for no network but its own', () => {
  const rows = rowsOf(read('slip-0173.md'), /^\| ([^|]+?) *\| `(\w+)` *\| (?:`(\w+)`)? *\| (?:`(\w+)`)? *\|$/gm);
  expect(rows.length).toBeGreaterThan(250);
  const data = bech32.toWords(new Uint8Array(32).fill(7));
  const words = (prefix: string) => (/^(bc|tb|bcrt|ltc|tltc|rltc)$/.test(prefix) ? [0, ...data] : data);
  const known: string[] = [];
  for (const [coin = '', ...prefixes] of rows) {
    for (const [index, prefix] of prefixes.entries()) {
      if (prefix === '') continue;
      const { family, chains, problem } = parseWallet(bech32.encode(prefix, words(prefix), false));
      expect([prefix, family, problem]).toEqual([prefix, 'bech32', undefined]);
      expect(parseWallet(bech32m.encode(prefix, [1, ...data], false)).problem).toBeUndefined();
      if (chains === undefined) continue;
      known.push(prefix);
      const mine =
        coin
          .replace(/^Binance Chain$/, 'BNB Beacon Chain')
          .split(' ')[0]
          ?.toLowerCase() ?? '';
      expect([prefix, chains.map((each) => each.toLowerCase().startsWith(mine))]).toEqual([
        prefix,
        chains.map(() => true),
      ]);
      if (index > 0) expect([prefix, chains.every(isTest)]).toEqual([prefix, true]);
    }
  }
  expect(known).toEqual(expect.arrayContaining(['bc', 'tb', 'bcrt', 'ltc', 'tltc', 'rltc', 'bnb', 'cosmos', 'osmo']));
});

it("the CRC-16 is that of TON's own test, and its addresses are one wallet", () => {
  const [[hex = ''] = []] = rowsOf(
    read('ton-crc16.spec.ts.txt'),
    /Buffer\.from\("123456789"\)\)\)\.toEqual\(\s*Buffer\.from\("(\w+)"/g,
  );
  expect(crc16(Buffer.from('123456789')).toString(16)).toBe(hex);
  const [spellings = ''] = read('ton-address.spec.ts.txt').split('should implement equals');
  const raw = '0:2cf55953e92efbeadab7ba725c3f93a0b23f842cbba72d7b8e6f510a70e422e3';
  const friendly = rowsOf(spellings, /"([EUk0]Q[\w+/-]{46})"/g).flat();
  expect(friendly).toHaveLength(10);
  expect(new Set(friendly.map(walletKey))).toEqual(new Set([raw]));
  for (const address of friendly) {
    const { chains = [], problem } = parseWallet(address);
    expect([address, problem, chains.every(isTest)]).toEqual([address, undefined, /^[k0]/.test(address)]);
  }
});
