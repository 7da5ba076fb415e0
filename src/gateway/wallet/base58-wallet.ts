import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58, base58xmr, base58xrp } from '@scure/base';
import { bothNets, type Chain } from './chain.js';
import { decodeBase58 } from './decode-base58.js';
import { checksum, decodeChecked, type Untagged, wrong } from './untagged.js';

/** Addresses in the letters of Base58: most are their own spelling, those of XRP, Polkadot and Monero have several. */
export function parseBase58(text: string, isChecked: boolean): Untagged | undefined {
  if (!/^[1-9A-HJ-NP-Za-km-z]{25,120}$/.test(text)) return undefined;
  if (text.length > 60) return parseLong(text, isChecked);
  if (text.startsWith('r') && text.length <= 35) {
    const isXrp = !isChecked || decodeChecked(base58xrp.decode(text))?.length === 21;
    if (isXrp) return { family: 'xrp', key: text, chains: XRP };
    // Ravencoin's begin with it as well.
    if (!isBase58(text)) return wrong('xrp', text, 'is an XRP address whose checksum is wrong');
  }
  if (text.length === 47 && /^[XT]/.test(text)) {
    const account = parseXAddress(text);
    if (account !== undefined) return account;
    if (text.startsWith('X')) return wrong('xrp', text, 'is an X-address of XRP whose checksum is wrong');
  }
  if (text.length >= 45 && text.length <= 50) {
    const account = parseSs58(text);
    if (account !== undefined) return account;
  }
  if (!isChecked) return { family: undefined, key: text };
  const bytes = decodeBase58(text);
  if (bytes.length === 32) return { family: 'base58', key: text, chains: SOLANA };
  const body = decodeChecked(bytes);
  if (body !== undefined) return { family: 'base58', key: text, chains: VERSIONS.get(versionOf(body)) };
  return parseByron(text, bytes);
}

/** Bytes with a checksum, or 32 bytes without one, such as Solana's. Tron's may begin with `TB1`, like bech32. */
export function isBase58(text: string): boolean {
  if (!/^[1-9A-HJ-NP-Za-km-z]{25,60}$/.test(text)) return false;
  const bytes = decodeBase58(text);
  return bytes.length === 32 || decodeChecked(bytes) !== undefined;
}

const XRP = bothNets('XRP');
const SOLANA = bothNets('Solana');

const BITCOIN_TESTS = ['Bitcoin (test)', 'Bitcoin Cash (test)', 'eCash (test)', 'Litecoin (test)'] as const;

/** The bytes before the hash of 20, in hexadecimal digits. Other networks are not known here. */
const VERSIONS: ReadonlyMap<string, readonly Chain[]> = new Map<string, readonly Chain[]>([
  ['00', ['Bitcoin', 'Bitcoin Cash', 'eCash']],
  ['05', ['Bitcoin', 'Bitcoin Cash', 'eCash', 'Litecoin']],
  ['6f', BITCOIN_TESTS],
  ['c4', [...BITCOIN_TESTS, 'Dogecoin (test)']],
  ['1c', ['Bitcoin Cash']],
  ['28', ['Bitcoin Cash']],
  ['30', ['Litecoin']],
  ['32', ['Litecoin']],
  ['3a', ['Litecoin (test)']],
  ['1e', ['Dogecoin']],
  ['16', ['Dogecoin']],
  ['71', ['Dogecoin (test)']],
  ['4c', ['Dash']],
  ['10', ['Dash']],
  ['8c', ['Dash (test)']],
  ['13', ['Dash (test)']],
  ['41', bothNets('Tron')],
  ['1cb8', ['Zcash']],
  ['1cbd', ['Zcash']],
  ['1d25', ['Zcash (test)']],
  ['1cba', ['Zcash (test)']],
  // tz1, tz2, tz3, tz4, KT1
  ...['06a19f', '06a1a1', '06a1a4', '06a1a6', '025a79'].map((version) => [version, bothNets('Tezos')] as const),
]);

function versionOf(body: Buffer): string {
  return body.toString('hex', 0, Math.max(1, body.length - 20));
}

/** Those before a hash of 20 bytes, for the wallets whose hash is zeros. */
export const HASH_VERSIONS: readonly string[] = [...VERSIONS.keys()].filter((version) => version.length <= 4);

/** @see https://github.com/XRPLF/XRPL-Standards/tree/master/XLS-0005-x-address */
function parseXAddress(text: string): Untagged | undefined {
  const bytes = decodeChecked(base58xrp.decode(text));
  if (bytes?.length !== 31 || !/^(0544|0493)/.test(bytes.toString('hex', 0, 2))) return undefined;
  const hasTag = bytes.readUInt8(22) === 1;
  if (bytes.readUInt8(22) > 1 || bytes.readUInt32LE(27) !== 0) return undefined;
  if (!hasTag && bytes.readUInt32LE(23) !== 0) return undefined;
  const account = Buffer.concat([Buffer.of(0), bytes.subarray(2, 22)]);
  const key = base58xrp.encode(Buffer.concat([account, checksum(account)]));
  const chains: readonly Chain[] = [bytes[1] === 0x44 ? 'XRP' : 'XRP (test)'];
  return { family: 'xrp', key, chains, tag: hasTag ? String(bytes.readUInt32LE(23)) : undefined };
}

/** The generic prefix of Substrate, which every network reads. */
const GENERIC = 42;
const SS58_CHAINS = new Map<number, readonly Chain[]>([
  [0, ['Polkadot']],
  [2, ['Kusama']],
  [GENERIC, ['Polkadot', 'Kusama', 'Polkadot (test)', 'Kusama (test)']],
]);

/**
 * The same account has another spelling on each network.
 * @see https://docs.polkadot.com/polkadot-protocol/parachain-basics/accounts/
 */
function parseSs58(text: string): Untagged | undefined {
  const bytes = decodeBase58(text);
  const isLong = bytes.length === 36 && ((bytes[0] ?? 0) & 0xc0) === 0x40;
  if (!isLong && (bytes.length !== 35 || (bytes[0] ?? 0) >= 64)) return undefined;
  const account = bytes.subarray(isLong ? 2 : 1, -2);
  if (!hasSs58Checksum(bytes)) {
    // Only letters that nothing else of this length begins with.
    const isNamed = (bytes[0] === 0 || bytes[0] === GENERIC) && decodeChecked(bytes) === undefined;
    return isNamed && !isLong ? wrong('ss58', text, 'is a Polkadot address (SS58) whose checksum is wrong') : undefined;
  }
  const body = Uint8Array.of(GENERIC, ...account);
  const key = bytes[0] === GENERIC ? text : base58.encode(Uint8Array.of(...body, ...ss58Checksum(body)));
  return { family: 'ss58', key, chains: isLong ? undefined : SS58_CHAINS.get(bytes[0] ?? 0) };
}

function hasSs58Checksum(bytes: Uint8Array): boolean {
  return Buffer.from(ss58Checksum(bytes.subarray(0, -2))).equals(bytes.subarray(-2));
}

function ss58Checksum(body: Uint8Array): Uint8Array {
  return blake2b(Buffer.concat([Buffer.from('SS58PRE'), body])).subarray(0, 2);
}

function parseLong(text: string, isChecked: boolean): Untagged | undefined {
  if (text.length === 95 || text.length === 106) return parseMonero(text, isChecked);
  return isChecked ? parseByron(text, decodeBase58(text)) : { family: undefined, key: text };
}

/** Standard, integrated and subaddresses. */
const MONERO_CHAINS = new Map<number, Chain>([
  ...[18, 19, 42].map((prefix) => [prefix, 'Monero'] as const),
  ...[53, 54, 63, 24, 25, 36].map((prefix) => [prefix, 'Monero (test)'] as const),
]);

/**
 * An integrated address is a standard one with a payment id, which is its tag here.
 * @see https://docs.getmonero.org/public-address/standard-address/
 */
function parseMonero(text: string, isChecked: boolean): Untagged | undefined {
  const isIntegrated = text.length === 106;
  if (!isChecked && !isIntegrated) return { family: undefined, key: text };
  const bytes = decodeMonero(text);
  const body = bytes?.subarray(0, -4);
  if (body === undefined || !moneroChecksum(body).equals(bytes?.subarray(-4) ?? Buffer.of())) {
    const isNamed = /^[48]/.test(text);
    return isNamed ? wrong('monero', text, 'is a Monero address whose checksum is wrong') : undefined;
  }
  const prefix = body[0] ?? 0;
  const chain = MONERO_CHAINS.get(prefix);
  const chains = chain && [chain];
  if (!isIntegrated) return { family: 'monero', key: text, chains };
  const standard = Buffer.from([prefix - 1, ...body.subarray(1, 65)]);
  const key = base58xmr.encode(Buffer.concat([standard, moneroChecksum(standard)]));
  return { family: 'monero', key, chains, tag: body.toString('hex', 65) };
}

function decodeMonero(text: string): Buffer | undefined {
  try {
    return Buffer.from(base58xmr.decode(text));
  } catch {
    return undefined;
  }
}

function moneroChecksum(body: Uint8Array): Buffer {
  return Buffer.from(keccak_256(body)).subarray(0, 4);
}

/**
 * Of Cardano before Shelley: CBOR of a payload and its CRC-32. Test nets have their number in it.
 * @see https://cips.cardano.org/cip/CIP-19
 */
function parseByron(text: string, bytes: Uint8Array): Untagged | undefined {
  const all = Buffer.from(bytes);
  const end = 5 + all.readUInt8(4);
  const payload = all.subarray(5, end);
  const isByron = all.toString('hex', 0, 4) === '82d81858' && all.length > end + 1;
  // A CRC that begins with zeros is shorter.
  const crc = (all[end] ?? 0) < 24 ? all[end] : parseInt(all.toString('hex', end + 1), 16);
  if (!isByron || crc !== crc32(payload)) {
    const isNamed = /^(Ae2tdPw|DdzFF|37btj|2cWKM)/.test(text);
    return isNamed ? wrong('base58', text, 'is a Byron address of Cardano whose checksum is wrong') : undefined;
  }
  return { family: 'base58', key: text, chains: [hasNetworkNumber(payload) ? 'Cardano (test)' : 'Cardano'] };
}

/** Behind three bytes and a hash of 28 is a map; key 2 is the network. */
function hasNetworkNumber(payload: Buffer): boolean {
  const entries = (payload[31] ?? 0) & 0x1f;
  let at = 32;
  for (let entry = 0; entry < entries; entry += 1) {
    if (payload[at] === 2) return true;
    const head = payload[at + 1] ?? 0;
    at += head === 0x58 ? 3 + (payload[at + 2] ?? 0) : 2 + (head & 0x1f);
  }
  return false;
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
