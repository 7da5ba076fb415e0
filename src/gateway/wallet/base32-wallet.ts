import { createHash } from 'node:crypto';
import { base32nopad } from '@scure/base';
import { bothNets } from './chain.js';
import { crc16 } from '../../base/crc16.js';
import { type Untagged, wrong } from './untagged.js';

/** Addresses in the letters of Base32: those of Stellar and Algorand. */
export function parseBase32(text: string, isChecked: boolean): Untagged | undefined {
  if (!/^[A-Z2-7]{56,69}$/.test(text)) return undefined;
  if (/^(?:[GC].{55}|M.{68})$/.test(text)) return parseStellar(text, isChecked);
  return text.length === 58 ? parseAlgorand(text, isChecked) : undefined;
}

const STELLAR = bothNets('Stellar');
/** The first byte of an account, of one with an id of 64 bits, and of a contract. */
const STELLAR_VERSIONS: readonly (number | undefined)[] = [48, 96, 16];

/**
 * A muxed account is an account with an id, which is its tag here.
 * @see https://github.com/stellar/stellar-protocol/blob/master/ecosystem/sep-0023.md
 */
function parseStellar(text: string, isChecked: boolean): Untagged | undefined {
  const isMuxed = text.length === 69;
  if (!isChecked && !isMuxed) return { family: undefined, key: text };
  const bytes = decode(text);
  const isRight =
    bytes !== undefined &&
    STELLAR_VERSIONS.includes(bytes[0]) &&
    crc16(bytes.subarray(0, -2)) === bytes.readUInt16LE(bytes.length - 2);
  if (!isRight) return wrong('stellar', text, 'is a Stellar address whose checksum (CRC16) is wrong');
  if (!isMuxed) return { family: 'stellar', key: text, chains: STELLAR };
  const account = Buffer.concat([Buffer.of(48), bytes.subarray(1, 33), Buffer.of(0, 0)]);
  account.writeUInt16LE(crc16(account.subarray(0, -2)), 33);
  return {
    family: 'stellar',
    key: base32nopad.encode(account),
    chains: STELLAR,
    tag: String(bytes.readBigUInt64BE(33)),
  };
}

const ALGORAND = bothNets('Algorand');

/** @see https://dev.algorand.co/concepts/accounts/overview/ */
function parseAlgorand(text: string, isChecked: boolean): Untagged | undefined {
  if (!isChecked) return { family: undefined, key: text };
  const bytes = decode(text);
  const hash = createHash('sha512-256')
    .update(bytes?.subarray(0, 32) ?? '')
    .digest();
  const isRight = bytes !== undefined && hash.subarray(-4).equals(bytes.subarray(32));
  if (!isRight) return wrong('algorand', text, 'is an Algorand address whose checksum is wrong');
  return { family: 'algorand', key: text, chains: ALGORAND };
}

/** Spare bits must be 0, so that there is one text only. */
function decode(text: string): Buffer | undefined {
  try {
    return Buffer.from(base32nopad.decode(text));
  } catch {
    return undefined;
  }
}
