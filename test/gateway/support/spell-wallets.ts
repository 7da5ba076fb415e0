import { createHash } from 'node:crypto';
import { keccak_256 } from '@noble/hashes/sha3.js';

/**
 * Addresses of every family, made from bytes by encoders of their own: nothing here comes from `src` or from the codecs that it
 * uses. Only the hash of EIP-55 is shared.
 */

export interface Network {
  readonly name: string;
  /** How many of the bytes the wallet is. */
  readonly size: number;
  /** How many ways there are to write a wallet. */
  readonly forms: number;
  /** One of them. @param choice - any number: a tag follows from it, where the network has tags */
  spell(wallet: Uint8Array, form: number, choice: number): string;
  /**
   * The same with another letter in one place, where its checksum covers it; undefined where nothing can tell, or if the text would
   * say the same.
   */
  garble?(text: string, at: number, letter: number): string | undefined;
  /** Its form does not name it: with a wrong letter it is of no family, which is refused once the currency is known. */
  readonly isUnnamed?: true;
  /** Networks with the same word have the same wallets. */
  readonly shares?: string;
}

const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const BITCOIN = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const RIPPLE = 'rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz';
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

export const NETWORKS: readonly Network[] = [
  ...(['bc', 'tb', 'ltc', 'bcrt'] as const).flatMap((prefix) => [
    segwit(prefix, 0, 20),
    segwit(prefix, 0, 32),
    segwit(prefix, 1, 32),
  ]),
  ...(['cosmos', 'osmo', 'inj', 'thor', 'zs', 'account_rdx'] as const).map((prefix) => coded(prefix, 32)),
  coded('addr', 57),
  coded('addr_test', 57),
  coded('stake', 29),
  coded('ltcmweb', 66),
  ...(['bitcoincash', 'ecash', 'bchtest'] as const).flatMap((prefix) => [
    cash(prefix, 0, 20),
    cash(prefix, 1, 20),
    cash(prefix, 1, 32),
  ]),
  ton(0),
  ton(-1),
  { name: 'evm', size: 20, forms: 4, spell: spellEvm, garble: garbleEvm },
  { name: 'hex', size: 32, forms: 4, spell: spellHex },
  { name: 'xrp', size: 20, forms: 4, spell: spellXrp, garble: garbleXrp },
  { name: 'stellar', size: 32, forms: 1, spell: spellStellar, garble: garbleAfter(1, BASE32) },
  // The first byte is the version: Bitcoin's, Tron's, and whatever others have.
  {
    ...{ name: 'base58check', size: 21, forms: 1, isUnnamed: true },
    spell: (wallet) => checked(BITCOIN, wallet),
    garble: garbleAfter(0, BITCOIN),
  },
  { name: 'solana', size: 32, forms: 1, spell: (wallet) => base58(BITCOIN, wallet) },
  // Whose checksum nobody here knows: they are taken as they are, whatever they begin with.
  letters('nano_', '13456789abcdefghijkmnopqrstuwxyz', 60),
  letters('', '0123456789abcdef', 64),
];

function segwit(prefix: string, version: number, size: number): Network {
  return {
    name: `${prefix} version ${version} of ${size} bytes`,
    size,
    forms: 2,
    spell: (wallet, form) =>
      inCase(form, bech32(prefix, [version, ...regroup(wallet, 5)], version === 0 ? 1 : 0x2bc830a3)),
    garble: garbleAfter(prefix.length + 1, BECH32),
  };
}

function coded(prefix: string, size: number): Network {
  return {
    name: `${prefix} of ${size} bytes`,
    size,
    forms: 2,
    spell: (wallet, form) => inCase(form, bech32(prefix, regroup(wallet, 5), 1)),
    garble: garbleAfter(prefix.length + 1, BECH32),
  };
}

/** Two letters a byte. */
function letters(prefix: string, alphabet: string, count: number): Network {
  const pair = (byte: number): string => {
    const [first, second] = [byte % alphabet.length, byte + 5 * Math.floor(byte / alphabet.length)];
    return alphabet.charAt(first) + alphabet.charAt(second % alphabet.length);
  };
  return {
    name: `${prefix} and ${count} letters`,
    size: count / 2,
    forms: 1,
    spell: (wallet) => prefix + Array.from(wallet, pair).join(''),
  };
}

function inCase(form: number, text: string): string {
  return form % 2 === 0 ? text : text.toUpperCase();
}

/** BIP-173. */
function bech32(prefix: string, data: readonly number[], constant: number): string {
  const expanded = Array.from(prefix, (letter) => letter.charCodeAt(0) >> 5);
  const all = [...expanded, 0, ...Array.from(prefix, (letter) => letter.charCodeAt(0) & 31), ...data, 0, 0, 0, 0, 0, 0];
  let sum = 1;
  for (const value of all) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    if (top & 1) sum ^= 0x3b6a57b2;
    if (top & 2) sum ^= 0x26508e6d;
    if (top & 4) sum ^= 0x1ea119fa;
    if (top & 8) sum ^= 0x3d4233dd;
    if (top & 16) sum ^= 0x2a1462b3;
  }
  sum ^= constant;
  const check = [25, 20, 15, 10, 5, 0].map((shift) => (sum >>> shift) & 31);
  return `${prefix}1${[...data, ...check].map((value) => BECH32.charAt(value)).join('')}`;
}

function regroup(bytes: Uint8Array, bits: number): number[] {
  const groups: number[] = [];
  let [value, held] = [0, 0];
  for (const byte of bytes) {
    value = (value << 8) | byte;
    held += 8;
    for (; held >= bits; held -= bits) groups.push((value >>> (held - bits)) & ((1 << bits) - 1));
    value &= (1 << held) - 1;
  }
  if (held > 0) groups.push((value << (bits - held)) & ((1 << bits) - 1));
  return groups;
}

const CASH_GENERATORS = [0x98f2bc8e61n, 0x79b76d99e2n, 0xf33e5fb3c4n, 0xae2eabe2a8n, 0x1e4f43e470n];

/** The specification of CashAddr, and of CashTokens, whose types 2 and 3 are the same wallets. */
function cash(prefix: string, type: number, size: 20 | 32): Network {
  const encode = (wallet: Uint8Array, as: number): string => {
    const data = regroup(Uint8Array.of((as << 3) | (size === 20 ? 0 : 3), ...wallet), 5);
    let sum = 1n;
    for (const value of [
      ...Array.from(prefix, (letter) => letter.charCodeAt(0) & 31),
      0,
      ...data,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
    ]) {
      const top = sum >> 35n;
      sum = ((sum & 0x07ffffffffn) << 5n) ^ BigInt(value);
      for (const [bit, generator] of CASH_GENERATORS.entries()) if ((top >> BigInt(bit)) & 1n) sum ^= generator;
    }
    sum ^= 1n;
    const check = Array.from({ length: 8 }, (_, at) => Number((sum >> BigInt(35 - 5 * at)) & 31n));
    return [...data, ...check].map((value) => BECH32.charAt(value)).join('');
  };
  const versions = prefix === 'bchtest' ? [0x6f, 0xc4] : [0x00, 0x05];
  const legacy = size === 20 ? versions[type] : undefined;
  return {
    name: `${prefix} type ${type} of ${size} bytes`,
    size,
    ...(legacy !== undefined && { shares: `${legacy}` }),
    forms: (prefix === 'ecash' ? 4 : 8) + (legacy === undefined ? 0 : 1),
    spell(wallet, form) {
      if (form === (prefix === 'ecash' ? 4 : 8)) return checked(BITCOIN, Uint8Array.of(legacy ?? 0, ...wallet));
      const payload = encode(wallet, form < 4 ? type : type + 2);
      return inCase(form, form % 4 < 2 ? `${prefix}:${payload}` : payload);
    },
    // Without its prefix an address names its family by its first letter and its length.
    // Nothing of the first form names it.
    garble: (text, at, letter) =>
      /^[123mn]/.test(text)
        ? undefined
        : garbleAfter(text.includes(':') ? prefix.length + 1 : 1, BECH32)(text, at, letter),
  };
}

/** The friendly form of TON: flags, workchain, hash and CRC16 (XMODEM). */
function ton(workchain: 0 | -1): Network {
  return {
    name: `ton ${workchain}`,
    size: 32,
    forms: 10,
    spell(wallet, form) {
      if (form > 7) return inCase(form, `${workchain}:${Buffer.from(wallet).toString('hex')}`);
      const body = Uint8Array.of([0x11, 0x51, 0x91, 0xd1][form >> 1] ?? 0, workchain & 255, ...wallet);
      const crc = crc16(body);
      const values = regroup(Uint8Array.of(...body, crc >> 8, crc & 255), 6);
      const text = values.map((value) => BASE64.charAt(value)).join('');
      return form % 2 === 0 ? text : text.replaceAll('+', '-').replaceAll('/', '_');
    },
    garble(text, at, letter) {
      if (text.includes(':')) return undefined;
      // The first two letters say what it is.
      const garbled = garbleAfter(2, BASE64)(text, at, letter);
      const plain = (form: string): string => form.replaceAll('-', '+').replaceAll('_', '/');
      return garbled === undefined || plain(garbled) === plain(text) ? undefined : garbled;
    },
  };
}

function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    let mixed = (crc >> 8) ^ byte;
    mixed ^= mixed >> 4;
    crc = ((crc << 8) ^ (mixed << 12) ^ (mixed << 5) ^ mixed) & 0xffff;
  }
  return crc;
}

/** SEP-23: an account, whose CRC16 is little-endian. */
function spellStellar(wallet: Uint8Array): string {
  const body = Uint8Array.of(6 << 3, ...wallet);
  const crc = crc16(body);
  return regroup(Uint8Array.of(...body, crc & 255, crc >> 8), 5)
    .map((value) => BASE32.charAt(value))
    .join('');
}

function spellEvm(wallet: Uint8Array, form: number): string {
  const digits = Buffer.from(wallet).toString('hex');
  if (form === 0) return toChecksumCase(digits);
  return `${form === 3 ? '0X' : '0x'}${form === 1 ? digits : digits.toUpperCase()}`;
}

/** EIP-55. @param digits - lower case */
function toChecksumCase(digits: string): string {
  const hash = keccak_256(new TextEncoder().encode(digits));
  const cased = Array.from(digits, (digit, at) =>
    (((hash[at >> 1] ?? 0) >> (at % 2 === 0 ? 4 : 0)) & 15) > 7 ? digit.toUpperCase() : digit,
  );
  return `0x${cased.join('')}`;
}

/** The case of a few letters is a weak checksum, and where all letters are alike there is none. */
function garbleEvm(text: string, at: number, letter: number): string | undefined {
  const garbled = garbleAfter(2, '0123456789abcdefABCDEF')(text, at, letter);
  const digits = garbled?.slice(2) ?? '';
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return undefined;
  return toChecksumCase(digits.toLowerCase()).slice(2) === digits ? undefined : garbled;
}

/** Networks of 32 bytes leave leading zeros out, as numbers do. */
function spellHex(wallet: Uint8Array, form: number): string {
  const digits = inCase(form, Buffer.from(wallet).toString('hex'));
  return form < 2 ? `0x${digits}` : `0X${digits.replace(/^0{1,4}/, '')}`;
}

/** With a tag behind the classic form, within the X-address (XLS-5) of the main and the test network, or with none. */
function spellXrp(wallet: Uint8Array, form: number, choice: number): string {
  const tag = choice % 2 === 0 ? undefined : choice >>> 0;
  if (form < 2) {
    const account = checked(RIPPLE, Uint8Array.of(0, ...wallet));
    return tag === undefined ? account : `${account}:${form === 0 ? '' : '000'}${tag}`;
  }
  const bytes = [0, 8, 16, 24].map((shift) => ((tag ?? 0) >>> shift) & 255);
  const prefix = form === 2 ? [0x05, 0x44] : [0x04, 0x93];
  return checked(RIPPLE, Uint8Array.of(...prefix, ...wallet, tag === undefined ? 0 : 1, ...bytes, 0, 0, 0, 0));
}

/** The first letter names the family. That of the test network names it to nobody: Bitcoin's keys begin with it too. */
function garbleXrp(text: string, at: number, letter: number): string | undefined {
  if (text.startsWith('T')) return undefined;
  const [address = '', tag] = text.split(':');
  const garbled = garbleAfter(1, RIPPLE)(address, at, letter);
  return garbled === undefined || tag === undefined ? garbled : `${garbled}:${tag}`;
}

function checked(alphabet: string, body: Uint8Array): string {
  const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
  return base58(alphabet, Uint8Array.of(...body, ...sha256(sha256(body)).subarray(0, 4)));
}

function base58(alphabet: string, bytes: Uint8Array): string {
  const digits: number[] = [];
  for (const byte of bytes) {
    let carry = byte;
    for (let at = 0; at < digits.length || carry > 0; at += 1) {
      carry += (digits[at] ?? 0) << 8;
      digits[at] = carry % 58;
      carry = Math.floor(carry / 58);
    }
  }
  const zeros = bytes.findIndex((byte) => byte !== 0);
  const leading = alphabet.charAt(0).repeat(zeros === -1 ? bytes.length : zeros);
  return (
    leading +
    digits
      .reverse()
      .map((digit) => alphabet.charAt(digit))
      .join('')
  );
}

/** Puts another letter of an alphabet behind the first few letters, in the text's own case. */
function garbleAfter(start: number, alphabet: string) {
  return (text: string, at: number, letter: number): string | undefined => {
    const place = start + (at % (text.length - start));
    const other = alphabet.charAt(letter % alphabet.length);
    const isUpper = alphabet === BECH32 && text === text.toUpperCase();
    const put = isUpper ? other.toUpperCase() : other;
    return put === text.charAt(place) ? undefined : text.slice(0, place) + put + text.slice(place + 1);
  };
}
