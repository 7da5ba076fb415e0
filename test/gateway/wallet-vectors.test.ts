import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parseWallet, walletAndTagKey, type WalletFamily } from '../../src/gateway/wallet.js';

/** Addresses that the networks' own documents and programs are tested with. */
const vectors = JSON.parse(readFileSync(new URL('wallet-vectors.json', import.meta.url), 'utf8')) as {
  /** Of xrpl.js: the classic address, its tag or `-`, and the X-addresses of the main and the test network. */
  readonly xrp: readonly string[][];
  /** Raw, then friendly: the documents of TON, ton-core, tongo. */
  readonly ton: readonly string[][];
  /** The specification of CashAddr, with hashes of every size. */
  readonly cashaddr: readonly string[];
  /** BIP-173, BIP-350, BIP-84, BIP-86; the other networks' own. */
  readonly bech32: readonly string[];
  /** EIP-55. */
  readonly evm: readonly string[];
  /** What other networks' programs are tested with. Some begin like addresses of a family that they are not of. */
  readonly others: readonly string[];
  /** BIP-350, and an X-address with a tag of 64 bits. */
  readonly wrong: readonly string[];
};

describe('an address of', () => {
  it.each(vectors.xrp)('XRP: %s with tag %s', (classic = '', tag = '', ...extended) => {
    const whole = tag === '-' ? classic : `${classic}:${tag}`;
    for (const address of [whole, ...extended]) {
      expect([parseWallet(address), walletAndTagKey(address)]).toMatchObject([{ family: 'xrp', key: classic }, whole]);
      expect(parseWallet(address).problem).toBeUndefined();
    }
  });

  it.each(vectors.ton)('TON: %s', (raw = '', ...friendly) => {
    for (const address of [raw, ...friendly]) {
      expect(parseWallet(address)).toEqual({ family: 'ton', key: raw, tag: undefined, problem: undefined });
    }
  });

  const coded: [WalletFamily, string][] = [
    ...vectors.cashaddr.map((payload): [WalletFamily, string] => ['cashaddr', `bitcoincash:${payload}`]),
    ...vectors.bech32.map((address): [WalletFamily, string] => ['bech32', address]),
  ];
  it.each(coded)('%s: %s, also in capitals', (family, address) => {
    const key = address.replace('bitcoincash:', '');
    for (const spelling of [address, address.toUpperCase()]) {
      expect(parseWallet(spelling)).toEqual({ family, key, tag: undefined, problem: undefined });
    }
  });

  it.each([...vectors.evm, ...vectors.others])('any network: %s', (address) => {
    const { key, tag, problem } = parseWallet(address);
    const whole = address.startsWith('0x') ? address.toLowerCase() : address;
    expect([problem, tag, key]).toEqual([undefined, undefined, whole]);
  });

  it.each(vectors.wrong)('no network: %s', (address) => {
    expect(parseWallet(address).problem).toBeDefined();
  });
});
