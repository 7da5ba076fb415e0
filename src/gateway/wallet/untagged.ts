import { hash } from 'node:crypto';
import type { Chain } from './chain.js';

export type WalletFamily =
  'ton' | 'cashaddr' | 'bech32' | 'base58' | 'evm' | 'hex' | 'xrp' | 'ss58' | 'monero' | 'stellar' | 'algorand';

/** What one form of address says, without what follows its colon. */
export interface Untagged {
  readonly family: WalletFamily | undefined;
  readonly key: string;
  /** Networks that have such a wallet; absent if the form does not show it. */
  readonly chains?: readonly Chain[] | undefined;
  /** A tag in the address itself. */
  readonly tag?: string | undefined;
  readonly problem?: string | undefined;
}

export function wrong(family: WalletFamily, key: string, problem: string): Untagged {
  return { family, key, problem };
}

/** @returns what is before the checksum of Base58Check, if that is right */
export function decodeChecked(decoded: Uint8Array): Buffer | undefined {
  const bytes = Buffer.from(decoded.buffer, decoded.byteOffset, decoded.byteLength);
  if (bytes.length <= 4) return undefined;
  const body = bytes.subarray(0, -4);
  return doubleHash(body).startsWith(bytes.toString('hex', bytes.length - 4)) ? body : undefined;
}

export function checksum(bytes: Uint8Array): Buffer {
  return Buffer.from(doubleHash(bytes), 'hex').subarray(0, 4);
}

/** Twice SHA-256, as hexadecimal digits: node:crypto makes a Buffer of a hash in twice the time of a text. */
function doubleHash(bytes: Uint8Array): string {
  return hash('sha256', Buffer.from(hash('sha256', bytes), 'hex'));
}
