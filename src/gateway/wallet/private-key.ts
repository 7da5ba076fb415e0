import { base32nopad, base58xrp } from '@scure/base';
import { decodeBase58 } from './decode-base58.js';
import { crc16 } from '../../base/crc16.js';
import { decodeChecked } from './untagged.js';

/**
 * Whether a text is a private key in a form of its own. No such form is an address, and none may be shown: who reads it
 * can spend what its wallet has.
 */
export function isPrivateKey(text: string): boolean {
  if (/^S[A-Z2-7]{55}$/.test(text)) return isStellarSeed(text);
  if (/^s[1-9A-HJ-NP-Za-km-z]{20,35}$/.test(text) && isXrpSeed(text)) return true;
  if (!/^[1-9A-HJ-NP-Za-km-z]{50,115}$/.test(text)) return false;
  const body = decodeChecked(decodeBase58(text));
  return body !== undefined && (isWif(body) || isEncrypted(body) || isExtended(body) || isTezos(body));
}

/** Of Bitcoin and its relatives: the version of their addresses and 0x80, 32 bytes, and 1 if the public key is compressed. */
function isWif(body: Buffer): boolean {
  const isCompressed = body.length === 34 && body[33] === 1;
  return (body[0] ?? 0) >= 0x80 && (body.length === 33 || isCompressed);
}

/** @see https://github.com/bitcoin/bips/blob/master/bip-0038.mediawiki */
function isEncrypted(body: Buffer): boolean {
  return body.length === 39 && /^014[23]/.test(body.toString('hex', 0, 2));
}

/** `xprv…` and its like: a public key begins with another byte. @see https://github.com/bitcoin/bips/blob/master/bip-0032.mediawiki */
function isExtended(body: Buffer): boolean {
  return body.length === 78 && body[45] === 0;
}

/** `edsk`, `spsk`, `p2sk`, and the longer `edsk`. */
function isTezos(body: Buffer): boolean {
  const version = body.toString('hex', 0, 4);
  return (body.length === 36 && /^(0d0f3a07|11a2e0c9|1051eebd)/.test(version)) || version === '2bf64e07';
}

/** For secp256k1, or for Ed25519 (`sEd…`). */
function isXrpSeed(text: string): boolean {
  const body = decodeChecked(base58xrp.decode(text));
  if (body === undefined) return false;
  return (body.length === 17 && body[0] === 0x21) || (body.length === 19 && body.toString('hex', 0, 3) === '01e14b');
}

function isStellarSeed(text: string): boolean {
  try {
    const bytes = Buffer.from(base32nopad.decode(text));
    return bytes[0] === 144 && crc16(bytes.subarray(0, -2)) === bytes.readUInt16LE(33);
  } catch {
    return false;
  }
}
