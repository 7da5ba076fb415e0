import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { parseWallet, walletAndTagKey, walletKey } from '../../src/gateway/wallet.js';
import { findUnpayable } from '../../src/gateway/wallet/unpayable.js';

/** Addresses by their network, as its own documents and programs have them. */
const vectors = JSON.parse(readFileSync(new URL('chain-vectors.json', import.meta.url), 'utf8')) as {
  readonly valid: Readonly<Record<string, readonly string[]>>;
  readonly invalid: Readonly<Record<string, readonly string[]>>;
};

const rows = Object.entries(vectors.valid).flatMap(([chain, addresses]) =>
  addresses.map((address): [string, string] => [chain, address]),
);

it.each(rows)('the network %s of %s', (chain, address) => {
  const { chains, problem, key } = parseWallet(address);
  expect(problem).toBeUndefined();
  expect(chains).toContain(chain);
  expect([walletKey(address), walletKey(key), findUnpayable(key)]).toEqual([key, key, undefined]);
});

it.each(Object.entries(vectors.invalid).flatMap(([chain, all]) => all.map((text): [string, string] => [chain, text])))(
  'no address of %s: %s',
  (chain, text) => {
    const { chains = [], problem } = parseWallet(text);
    expect(chains.filter((each) => each.startsWith(chain)).length === 0 || problem !== undefined).toBe(true);
  },
);

it.each([
  ['Monero', vectors.valid['Monero']?.[0]],
  ['Monero', vectors.valid['Monero']?.[2]],
  ['Stellar', vectors.valid['Stellar']?.[0]],
  ['Stellar', vectors.valid['Stellar']?.[1]],
  ['Polkadot', vectors.valid['Polkadot']?.[0]],
  ['Polkadot', vectors.valid['Polkadot']?.[1]],
  ['Cardano', vectors.valid['Cardano']?.[3]],
  ['Cardano', vectors.valid['Cardano']?.[4]],
  ['Algorand', vectors.valid['Algorand']?.[0]],
])('another letter anywhere in an address of %s is found: %s', (_, address = '') => {
  const taken = Array.from({ length: address.length - 2 }, (__, index) => {
    const at = index + 2;
    const other = ['7', '3', 'A', 'B'].find((letter) => letter !== address[at]) ?? '';
    return address.slice(0, at) + other + address.slice(at + 1);
  }).filter((text) => {
    const { chains, problem } = parseWallet(text);
    return problem === undefined && chains !== undefined;
  });
  expect(address.length).toBeGreaterThan(40);
  expect(taken).toEqual([]);
});

it('one key for a wallet whose address may include an id', () => {
  const [account = '', muxed = '', other = ''] = vectors.valid['Stellar'] ?? [];
  expect([muxed, other].map(walletKey)).toEqual([account, account]);
  expect([muxed, other].map(walletAndTagKey)).toEqual([`${account}:0`, `${account}:9223372036854775808`]);
  const integrated = vectors.valid['Monero']?.[2] ?? '';
  const standard = '49Xgwx3RfyV3ZMEVyrUNuUMzgQ1WHjkWL5T6Xk7QaTszggbtPbRPEkZQau9yACYEmUCHPNrU2MBdnJf4s4xLK5AyLDP5ucd';
  expect([walletKey(integrated), walletAndTagKey(integrated)]).toEqual([standard, `${standard}:2b1a3c54591708cb`]);
});

it('one key for an 0x address of 32 bytes, however many leading zeros it has', () => {
  const significant = 'b1'.padStart(50, 'c');
  const spellings = Array.from({ length: 15 }, (_, zeros) => `0x${'0'.repeat(zeros)}${significant}`);
  expect(new Set(spellings.map(walletKey)).size).toBe(1);
  expect(new Set(['0x1', '0x01', `0x${'1'.padStart(63, '0')}`, `0x${'1'.padStart(64, '0')}`].map(walletKey)).size).toBe(
    1,
  );
  expect(walletKey(`0x${'c'.repeat(65)}`)).not.toBe(walletKey(`0x${'c'.repeat(64)}`));
});

it.each([
  ['zeros of an EVM network', `0x${'0'.repeat(40)}`],
  ['for burning', '0x000000000000000000000000000000000000dEaD'],
  ['zeros of Tron', 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'],
  ['for burning', 'TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy'],
  ['zeros of Bitcoin', '1111111111111111111114oLvT2'],
  ['for burning', '1BitcoinEaterAddressDontSendf59kuE'],
  ['zeros of XRP', 'rrrrrrrrrrrrrrrrrrrrrhoLvTp'],
  ['zeros of TON', 'EQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAM9c'],
  ['the system program of Solana', '11111111111111111111111111111111'],
])('no one owns the wallet %s: %s', (_, address) => {
  const { key, problem } = parseWallet(address);
  expect([problem, findUnpayable(key)]).toEqual([undefined, expect.stringContaining('no one owns')]);
});

it.each([
  ['USDT', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
  ['USDC', 'TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8'],
  ['USDT', '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
  ['USDC', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'],
  ['DAI', '0x6B175474E89094C44Da98b954EedeAC495271d0F'],
  ['WETH', '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'],
  ['WBTC', '0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599'],
  ['USDT', '0x55d398326f99059fF775485246999027B3197955'],
  ['USDC', '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d'],
  ['BUSD', '0xe9e7CEA3DedcA5984780Bafc599bD69ADd087D56'],
  ['USDT', '0xc2132D05D31c914a87C6611C10748AEb04B58e8F'],
  ['USDC', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'],
  ['USDC', '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174'],
  ['USDT', '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9'],
  ['USDC', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'],
  ['USDC', '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85'],
  ['USDC', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'],
  ['USDT', '0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7'],
  ['USDC', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E'],
  ['USDT', 'EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs'],
])('the contract of %s is no recipient: %s', (token, address) => {
  // The checksum shows that no letter of the table is wrong.
  const { key, problem } = parseWallet(address);
  expect([problem, findUnpayable(key)]).toEqual([undefined, expect.stringContaining(`the contract of ${token}`)]);
});
