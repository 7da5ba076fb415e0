import { keccak_256 } from '@noble/hashes/sha3.js';
import { parseBase32 } from './base32-wallet.js';
import { isBase58, parseBase58 } from './base58-wallet.js';
import { bech32Value, findBech32Checksum } from './bech32-checksum.js';
import { bothNets, type Chain } from './chain.js';
import { toLegacy } from './legacy-cash.js';
import { crc16 } from '../../base/crc16.js';
import { type Untagged, type WalletFamily, wrong } from './untagged.js';

/**
 * Which wallet an address names. A wallet has many spellings, and an address may include a destination tag. Every
 * comparison of addresses uses `walletKey` or `walletAndTagKey`, to decide whether the tag counts.
 */

export type { Chain, WalletFamily };

export interface Wallet {
  /** The address format. Undefined if no family has this form, or if a tag follows a family without tags. */
  readonly family: WalletFamily | undefined;
  /** One text for each wallet, without a tag. It is itself a spelling of the wallet. */
  readonly key: string;
  /** The destination tag; of XRP without leading zeros. */
  readonly tag: string | undefined;
  /** The networks that have such a wallet; undefined if the form does not show it. */
  readonly chains?: readonly Chain[] | undefined;
  /** The problem, if the form names the family: the end of a sentence that begins with the address. */
  readonly problem?: string | undefined;
}

/**
 * Parses an address with its tag; never throws. An unknown form is its own key.
 * @param addressTo - see docs/gateway-api-v1.md#fields
 */
export function parseWallet(addressTo: string): Wallet {
  return parse(addressTo, true);
}

/** @param isChecked - whether to verify checksums that change no key, which takes most of the time */
function parse(addressTo: string, isChecked: boolean): Wallet {
  const [address, tag] = splitTag(addressTo);
  const untagged = parseUntagged(address, isChecked);
  const { family, key, problem, chains } = untagged;
  if (tag === undefined) return { family, key, tag: untagged.tag, chains, problem };
  // An X-address already includes its tag, or states that there is none.
  if (untagged.tag !== undefined || (family === 'xrp' && address !== key)) {
    return { family: undefined, key, tag: `${untagged.tag ?? ''}:${tag}` };
  }
  if (family === 'xrp') return { family, key, tag: tag.replace(/^0+(?=\d+$)/, ''), chains, problem };
  if (family === 'ton') return { family, key, tag, chains, problem };
  return { family: undefined, key, tag };
}

/** Splits at the colon before a tag. The colon of a CashAddr or of raw TON begins no tag. */
export function splitTag(addressTo: string): readonly [address: string, tag: string | undefined] {
  const colon = addressTo.indexOf(':', OWN_COLON.exec(addressTo)?.[0].length ?? 0);
  return colon === -1 ? [addressTo, undefined] : [addressTo.slice(0, colon), addressTo.slice(colon + 1)];
}

/** Ignores the tag: for caps and deny lists. */
export function walletKey(addressTo: string): string {
  return parse(addressTo, false).key;
}

/** Includes the tag: for allow lists and seen addresses. */
export function walletAndTagKey(addressTo: string): string {
  const { key, tag } = parse(addressTo, false);
  return tag === undefined ? key : `${key}:${tag}`;
}

export function isSameAddress(one: string, other: string): boolean {
  return one === other || walletAndTagKey(one) === walletAndTagKey(other);
}

/** CashAddr prefixes, with the network that has the same wallets. */
const CASH_PREFIXES = new Map([
  ['bitcoincash', 'bitcoincash'],
  ['simpleledger', 'bitcoincash'],
  ['bchtest', 'bchtest'],
  ['slptest', 'bchtest'],
  ['bchreg', 'bchreg'],
  ['ecash', 'ecash'],
  ['etoken', 'ecash'],
  ['ectest', 'ectest'],
  ['kaspa', 'kaspa'],
  ['kaspatest', 'kaspatest'],
]);

const CASH_CHAINS: Readonly<Record<string, readonly Chain[]>> = {
  bitcoincash: ['Bitcoin Cash'],
  bchtest: ['Bitcoin Cash (test)'],
  bchreg: ['Bitcoin Cash (test)'],
  ecash: ['eCash'],
  ectest: ['eCash (test)'],
  kaspa: ['Kaspa'],
  kaspatest: ['Kaspa (test)'],
};

/** Texts before a colon that begins no tag: a CashAddr prefix, or raw TON's workchain, even with digits missing. */
const OWN_COLON = new RegExp(
  String.raw`^(?:(?:${[...CASH_PREFIXES.keys()].join('|')}):|[-+]?\d{1,3}:(?=[0-9a-f]{48,80}(?::|$)))`,
  'i',
);

/** An address with such a beginning can be nothing else, so a wrong or missing letter is an error. */
const KNOWN_BECH32 = /^(bc|tb|bcrt|ltc|tltc|ltcmweb|addr|addr_test|stake|cosmos|osmo|bnb)1[a-z0-9]{6,}$/i;
/** Of any other prefix. Liquid has another checksum, and Nano's letters may look like this. */
const LIKELY_BECH32 = new RegExp(
  String.raw`^(?!(?:lq|tlq|el)1|(?:nano|xrb|ban)_|${[
    // Stacks, Filecoin and XDC have other letters and checksums.
    's[pmtn][0-9a-z]{38,39}$',
    '[ft]1[a-z2-7]{39}$',
    'xdc[0-9a-f]{40}$',
  ].join('|')})[a-z_]{1,20}1[02-9ac-hj-np-z]{38,}$`,
  'i',
);

function parseUntagged(text: string, isChecked: boolean): Untagged {
  if (text.length > 400) return ownSpelling(text);
  const isPlain = /^[!-~]+$/.test(text);
  if (!isPlain) return (OWN_COLON.test(text) ? parseCash(text) : undefined) ?? ownSpelling(text);
  return (
    parseEvm(text, isChecked) ??
    parseTon(text) ??
    parseCash(text) ??
    parseBech32(text) ??
    parseBase58(text, isChecked) ??
    parseBase32(text, isChecked) ??
    findBroken(text) ??
    ownSpelling(text)
  );
}

/** Such a beginning and about this length, but with letters that no such address has, or too many or too few. */
const BROKEN_BECH32 = /^(?=.*[^a-z0-9])(bc|tb|bcrt|ltc|tltc|ltcmweb|addr|addr_test|stake|cosmos|osmo|bnb)1[!-~]{25,}$/i;
const BROKEN_EVM = /^0x[!-~]{36,44}$/i;
/** Base58 addresses (Polkadot, Kusama) and hexadecimal digits may begin alike; Arweave's are shorter. */
const BROKEN_TON = /^(?![0-9a-f]+$|[1-9A-HJ-NP-Za-km-z]+$)[EUk0][Qf][!-~]{43,50}$/;

function findBroken(text: string): Untagged | undefined {
  if (BROKEN_TON.test(text)) return wrong('ton', text, 'is a TON address of other letters than the 48 that one has');
  if (BROKEN_BECH32.test(text)) return wrong('bech32', text, 'is a bech32 address whose checksum is wrong');
  return findBrokenEvm(text, text);
}

function findBrokenEvm(text: string, key: string): Untagged | undefined {
  return BROKEN_EVM.test(text)
    ? wrong('evm', key, 'is an 0x address of other digits than the 40 that one has')
    : undefined;
}

function ownSpelling(text: string): Untagged {
  return { family: undefined, key: text };
}

const EVM = bothNets('Ethereum (EVM)');
/** Polkadot and Kusama read an account's bytes, too. */
const HEX = bothNets('Aptos', 'Sui', 'Starknet', 'Polkadot', 'Kusama');

/** From here on an address is one of 32 bytes, of which networks leave out leading zeros. */
const LEAST_HEX_DIGITS = 45;

function parseEvm(text: string, isChecked: boolean): Untagged | undefined {
  if (!/^0x[0-9a-f]{1,64}$/i.test(text))
    return /^0x[0-9a-f]+$/i.test(text) ? ownSpelling(text.toLowerCase()) : undefined;
  const digits = text.slice(2);
  const lower = digits.toLowerCase();
  // One text for any number of leading zeros.
  const significant = lower.replace(/^0+/, '');
  const key = `0x${significant.padStart(significant.length > 40 ? 64 : 40, '0')}`;
  if (digits.length >= LEAST_HEX_DIGITS) return { family: 'hex', key, chains: HEX };
  if (digits.length !== 40) return findBrokenEvm(text, key) ?? { family: undefined, key };
  const hasChecksum = digits !== lower && digits !== digits.toUpperCase();
  if (!isChecked || !hasChecksum || hasCaseOfHash(digits, lower)) return { family: 'evm', key, chains: EVM };
  return wrong('evm', key, 'is an 0x address whose capitals are not its checksum (EIP-55)');
}

/** @see https://eips.ethereum.org/EIPS/eip-55 */
function hasCaseOfHash(digits: string, lower: string): boolean {
  const hash = Buffer.from(keccak_256(Buffer.from(lower))).toString('hex');
  return Array.from(digits).every((digit, at) => /\d/.test(digit) || (digit !== lower[at]) === hash.charAt(at) >= '8');
}

const TON = bothNets('TON');

/** @see https://docs.ton.org/foundations/addresses/formats */
function parseTon(text: string): Untagged | undefined {
  const [, workchain, hash] = /^([-+]?\d{1,3}):([0-9a-f]{48,80})$/i.exec(text) ?? [];
  if (hash !== undefined) {
    const isWhole = hash.length === 64 && Number(workchain) >= -128 && Number(workchain) < 128;
    if (!isWhole) return wrong('ton', text, 'is a raw TON address of other digits than a workchain and 64');
    // Adding 0 turns -0 into 0.
    return { family: 'ton', key: `${Number(workchain) + 0}:${hash.toLowerCase()}`, chains: TON };
  }
  if (!/^[EUk0][Q-Za-f][\w+/-]{46}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  if (crc16(bytes.subarray(0, 34)) !== bytes.readUInt16BE(34)) {
    return wrong('ton', text, 'is a TON address whose checksum (CRC16) is wrong');
  }
  const isTestOnly = (bytes.readUInt8(0) & 0x80) !== 0;
  const key = `${bytes.readInt8(1)}:${bytes.toString('hex', 2, 34)}`;
  return { family: 'ton', key, chains: isTestOnly ? ['TON (test)'] : TON };
}

/** The form for a TON wallet that may not exist yet. @param key - from {@link parseWallet} */
export function friendlyTon(key: string): string {
  const [workchain, hash = ''] = key.split(':');
  const bytes = Buffer.from(`5100${hash}0000`, 'hex');
  bytes.writeUInt8(Number(workchain) & 0xff, 1);
  bytes.writeUInt16BE(crc16(bytes.subarray(0, 34)), 34);
  return bytes.toString('base64url');
}

const CHARSET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

/** @see https://github.com/bitcoincashorg/bitcoincash.org/blob/master/spec/cashaddr.md */
function parseCash(text: string): Untagged | undefined {
  const [, given, payload = ''] = /^(?:([a-z]+):)?([^:]*)$/.exec(text.toLowerCase()) ?? [];
  const isKnown = given !== undefined && CASH_PREFIXES.has(given);
  if (!isKnown && (given !== undefined || !/^[qpzr][02-9ac-hj-np-z]{41}(?:.{19})?$/.test(payload))) return undefined;
  const symbols = Array.from(payload, (letter) => CHARSET.indexOf(letter));
  const prefix = symbols.includes(-1)
    ? undefined
    : (isKnown ? [given] : [...CASH_PREFIXES.keys()]).find((each) => cashChecksum(each, symbols) === 0n);
  const problem = `is a CashAddr address of ${given ?? 'bitcoincash'}`;
  if (prefix === undefined) return wrong('cashaddr', text, `${problem} whose checksum is wrong`);
  const network = CASH_PREFIXES.get(prefix) ?? prefix;
  const canonical = toPlainCash(prefix, network, symbols);
  const plain = spell(canonical);
  const key = toLegacy(network, canonical.slice(0, -8)) ?? (network === 'bitcoincash' ? plain : `${network}:${plain}`);
  const isMixed = text !== text.toLowerCase() && text !== text.toUpperCase();
  if (isMixed) return wrong('cashaddr', key, `${problem} in mixed case`);
  return { family: 'cashaddr', key, chains: CASH_CHAINS[network] };
}

/** A wallet that takes tokens as well, or a form for tokens alone, is the same wallet. */
function toPlainCash(prefix: string, network: string, symbols: readonly number[]): readonly number[] {
  const [first = 0, ...rest] = symbols.slice(0, -8);
  // Types 2 and 3 are types 0 and 1 with tokens.
  const plain = [network.startsWith('bch') || network === 'bitcoincash' ? first & ~2 : first, ...rest];
  if (prefix === network && plain[0] === first) return symbols;
  const sum = cashChecksum(network, [...plain, 0, 0, 0, 0, 0, 0, 0, 0]);
  return [...plain, ...Array.from({ length: 8 }, (_, at) => Number((sum >> BigInt(5 * (7 - at))) & 31n))];
}

function spell(symbols: readonly number[]): string {
  return symbols.map((symbol) => CHARSET.charAt(symbol)).join('');
}

const CASH_GENERATORS = [0x98f2bc8e61, 0x79b76d99e2, 0xf33e5fb3c4, 0xae2eabe2a8, 0x1e4f43e470].map((generator) => ({
  high: Math.floor(generator / 2 ** 32),
  low: generator % 2 ** 32,
}));

/** The 40 bits as two halves, many times faster than a bigint. */
function cashChecksum(prefix: string, symbols: readonly number[]): bigint {
  let [high, low] = [0, 1];
  for (const symbol of [...Array.from(prefix, (letter) => letter.charCodeAt(0) & 31), 0, ...symbols]) {
    let top = high >>> 3;
    high = ((high & 7) << 5) | (low >>> 27);
    low = (low << 5) ^ symbol;
    for (let bit = 0; top !== 0; bit += 1, top >>>= 1) {
      if ((top & 1) === 0) continue;
      high ^= CASH_GENERATORS[bit]?.high ?? 0;
      low ^= CASH_GENERATORS[bit]?.low ?? 0;
    }
  }
  return ((BigInt(high) << 32n) | BigInt(low >>> 0)) ^ 1n;
}

/** BIP-173 and BIP-350, of any prefix and length: Cardano's and Zcash's are longer than 90. */
function parseBech32(text: string): Untagged | undefined {
  const lower = text.toLowerCase();
  const isMixed = text !== lower && text !== text.toUpperCase();
  const isKnown = KNOWN_BECH32.test(text);
  // Base58 often looks like bech32 in mixed case, and the codec is slow to reject it.
  const isCoded = /^[!-9;-~]+1[02-9ac-hj-np-z]{6,}$/.test(lower) && (!isMixed || isKnown || LIKELY_BECH32.test(text));
  const isRight = isCoded && hasBech32Checksum(lower);
  if (isRight) {
    if (isMixed) return wrong('bech32', lower, 'is a bech32 address in mixed case');
    return { family: 'bech32', key: lower, chains: BECH32_CHAINS.get(lower.slice(0, lower.lastIndexOf('1'))) };
  }
  // Such as an account of NEAR.
  if (/^[0-9a-f]{40,}$/i.test(text)) return undefined;
  const isNamed = isKnown ? !isMixed || !isBase58(text) : !isMixed && LIKELY_BECH32.test(text);
  return isNamed ? wrong('bech32', text, 'is a bech32 address whose checksum is wrong') : undefined;
}

/** By the part before the last `1`; of other networks it is not known here. */
const BECH32_CHAINS: ReadonlyMap<string, readonly Chain[]> = new Map<string, readonly Chain[]>([
  ...(['bc', 'sp'] as const).map((prefix) => [prefix, ['Bitcoin']] as const),
  ...(['tb', 'bcrt', 'tsp'] as const).map((prefix) => [prefix, ['Bitcoin (test)']] as const),
  ...(['ltc', 'ltcmweb'] as const).map((prefix) => [prefix, ['Litecoin']] as const),
  ...(['tltc', 'rltc', 'tmweb'] as const).map((prefix) => [prefix, ['Litecoin (test)']] as const),
  ...(['addr', 'stake'] as const).map((prefix) => [prefix, ['Cardano']] as const),
  ...(['addr_test', 'stake_test'] as const).map((prefix) => [prefix, ['Cardano (test)']] as const),
  ...(['zs', 'u', 'tex'] as const).map((prefix) => [prefix, ['Zcash']] as const),
  ...(['ztestsapling', 'utest', 'textest'] as const).map((prefix) => [prefix, ['Zcash (test)']] as const),
  ['bnb', ['BNB Beacon Chain']],
  ['tbnb', ['BNB Beacon Chain (test)']],
  ['cosmos', bothNets('Cosmos Hub')],
  ['osmo', bothNets('Osmosis')],
  ['celestia', bothNets('Celestia')],
  ['dydx', bothNets('dYdX')],
  ['thor', ['THORChain']],
  ['sthor', ['THORChain (test)']],
  ['terra', bothNets('Terra')],
  ['erd', bothNets('MultiversX')],
]);

/** With a number of the witness and its program (BIP-141). */
const SEGWIT = /^(?:bc|tb|bcrt|ltc|tltc|rltc)1/;

function hasBech32Checksum(lower: string): boolean {
  const checksum = findBech32Checksum(lower);
  if (checksum === undefined || !SEGWIT.test(lower)) return checksum !== undefined;
  // Bitcoin's first version has one checksum, all later ones the other. A mix-up pays no one.
  const first = lower.lastIndexOf('1') + 1;
  const count = lower.length - BECH32_CHECKSUM_LETTERS - first;
  // Without a version.
  if (count === 0) return false;
  const version = bech32Value(lower, first);
  const bytes = countBytes(count - 1, count === 1 ? 0 : bech32Value(lower, first + count - 1));
  if (version === 0) return checksum === 'bech32' && (bytes === 20 || bytes === 32);
  return checksum === 'bech32m' && version <= 16 && bytes >= 2 && bytes <= 40;
}

const BECH32_CHECKSUM_LETTERS = 6;

/** 0 if the words of 5 bits have more padding than they need, or padding that is not zero. */
function countBytes(words: number, last: number): number {
  const spareBits = (words * 5) % 8;
  const isPadded = spareBits < 5 && (last & ((1 << spareBits) - 1)) === 0;
  return isPadded ? Math.floor((words * 5) / 8) : 0;
}
