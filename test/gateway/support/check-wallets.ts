import fc from 'fast-check';
import { parseWallet, walletAndTagKey } from '../../../src/gateway/wallet.js';
import { NETWORKS, type Network } from './spell-wallets.js';

const LONGEST = Math.max(...NETWORKS.map(({ size }) => size));
const numbers = fc.nat(0x7fffffff);
const bytes = fc.uint8Array({ minLength: LONGEST, maxLength: LONGEST });

/**
 * A wallet in two of its spellings has one key. It is no wallet with one bit changed, and none of another network with the same
 * bytes, unless the two share their wallets. A wrong letter is refused wherever a checksum covers it.
 * @param runs - how many wallets
 * @returns how many wrong letters were refused
 * @throws Error of fast-check, with the wallet
 */
export function checkWallets(runs: number): number {
  let refused = 0;
  const property = fc.property(bytes, numbers, numbers, numbers, (material, which, choice, place) => {
    const network = NETWORKS[which % NETWORKS.length];
    const other = NETWORKS[(which + 1 + (choice % (NETWORKS.length - 1))) % NETWORKS.length];
    if (network === undefined || other === undefined) throw new Error('There is no such network');
    const wallet = material.subarray(0, network.size);
    const spell = (of: Network, as: Uint8Array, form: number): string => of.spell(as, form % of.forms, choice);
    const first = spell(network, wallet, which >>> 8);
    const second = spell(network, wallet, place);
    const { key, tag, problem } = parseWallet(first);
    if (problem !== undefined) throw new Error(`${first} ${problem}`);
    const again = parseWallet(second);
    if (again.key !== key || again.tag !== tag) throw new Error(`${first} and ${second} are different wallets`);
    const whole = tag === undefined ? key : `${key}:${tag}`;
    if (walletAndTagKey(second) !== whole) throw new Error(`${second} has another key`);
    const near =
      choice % 2 === 0
        ? spell(other, material.subarray(0, other.size), place)
        : spell(network, change(wallet, place), place);
    const isSame = choice % 2 === 0 && network.shares !== undefined && network.shares === other.shares;
    if ((parseWallet(near).key === key) !== isSame)
      throw new Error(`${first} and ${near} are${isSame ? ' not' : ''} one wallet`);
    const garbled = network.garble?.(first, place, choice);
    if (garbled === undefined) return;
    const wrong = parseWallet(garbled);
    const isRefused = wrong.problem !== undefined || (network.isUnnamed === true && wrong.family === undefined);
    if (!isRefused) throw new Error(`${garbled} is taken, after ${first}`);
    const isOther = garbled.toLowerCase() !== first.toLowerCase();
    if (isOther && wrong.key === key) throw new Error(`${garbled} is taken for ${first}`);
    refused += 1;
  });
  fc.assert(property, { numRuns: runs });
  return refused;
}

/** With another bit in one place. */
function change(wallet: Uint8Array, place: number): Uint8Array {
  const changed = Uint8Array.from(wallet);
  const at = (place >>> 3) % changed.length;
  changed[at] = (changed[at] ?? 0) ^ (1 << (place & 7));
  return changed;
}
