import { base58 } from '@scure/base';
import { checksum } from './untagged.js';

/** Versions of the first form of addresses, by the type of a CashAddr: for a key's hash and a script's. */
const VERSIONS: Readonly<Record<string, readonly number[]>> = {
  bitcoincash: [0x00, 0x05],
  ecash: [0x00, 0x05],
  bchtest: [0x6f, 0xc4],
  bchreg: [0x6f, 0xc4],
  ectest: [0x6f, 0xc4],
};

/**
 * The first form of an address, with the same hash: wallets of Bitcoin Cash and eCash have both, and so has the Bitcoin
 * wallet of the same key.
 * @param symbols - values of 5 bits, without the checksum
 * @returns undefined if there is none, such as for a hash of 32 bytes
 */
export function toLegacy(network: string, symbols: readonly number[]): string | undefined {
  const bytes = toBytes(symbols);
  const [type = 0] = bytes;
  const version = VERSIONS[network]?.[type >> 3];
  // The lowest three bits are the size: 0 for 20 bytes.
  if (version === undefined || (type & 7) !== 0 || bytes.length !== 21) return undefined;
  const body = Buffer.from([version, ...bytes.slice(1)]);
  return base58.encode(Buffer.concat([body, checksum(body)]));
}

function toBytes(symbols: readonly number[]): number[] {
  const bits = symbols.map((symbol) => symbol.toString(2).padStart(5, '0')).join('');
  return (bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2));
}
