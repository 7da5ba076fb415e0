import { base58, base58xrp } from '@scure/base';
import { HASH_VERSIONS } from './base58-wallet.js';
import { checksum } from './untagged.js';

/**
 * Wallets that nobody has: of zeros, for burning, and the contracts of tokens, from which no one gets a token back.
 * None of them is the recipient of a payout.
 */

/** Burned by design. Their form is right, and their owner does not exist. */
const BURNED = [
  '0xdead000000000000000042069420694206942069',
  '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee',
  '0xffffffffffffffffffffffffffffffffffffffff',
  'TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy',
  '1BitcoinEaterAddressDontSendf59kuE',
  '1CounterpartyXXXXXXXXXXXXXXXUWLpVr',
  'LQL9pVH1LsMfKwt82Y2wGhNGkrjF8vwUst',
  'DDogepartyxxxxxxxxxxxxxxxxxxw1dfzr',
  'rrrrrrrrrrrrrrrrrrrrBZbvji',
  'rrrrrrrrrrrrrrrrrNAMEtxvNvQ',
  'rrrrrrrrrrrrrrrrrrrn5RM1rHd',
  '0:0000000000000000000000000000000000000000000000000000000000000000',
  '-1:0000000000000000000000000000000000000000000000000000000000000000',
  '1nc1nerator11111111111111111111111111111111',
  '11111111111111111111111111111111',
  'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF',
  'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAY5HFKQ',
];

/** By key. Those of the gateway's own list are found there. */
const CONTRACTS: Readonly<Record<string, string>> = {
  TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t: 'USDT on Tron',
  TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8: 'USDC on Tron',
  '0xdac17f958d2ee523a2206206994597c13d831ec7': 'USDT on Ethereum',
  '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48': 'USDC on Ethereum',
  '0x6b175474e89094c44da98b954eedeac495271d0f': 'DAI on Ethereum',
  '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2': 'WETH on Ethereum',
  '0x2260fac5e5542a773aa44fbcfedf7c193bc2c599': 'WBTC on Ethereum',
  '0x55d398326f99059ff775485246999027b3197955': 'USDT on BNB Smart Chain',
  '0x8ac76a51cc950d9822d68b83fe1ad97b32cd580d': 'USDC on BNB Smart Chain',
  '0xe9e7cea3dedca5984780bafc599bd69add087d56': 'BUSD on BNB Smart Chain',
  '0xc2132d05d31c914a87c6611c10748aeb04b58e8f': 'USDT on Polygon',
  '0x3c499c542cef5e3811e1192ce70d8cc03d5c3359': 'USDC on Polygon',
  '0x2791bca1f2de4661ed88a30c99a7a9449aa84174': 'USDC.e on Polygon',
  '0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9': 'USDT on Arbitrum',
  '0xaf88d065e77c8cc2239327c5edb3a432268e5831': 'USDC on Arbitrum',
  '0x0b2c639c533813f4aa9d7837caf62653d097ff85': 'USDC on Optimism',
  '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913': 'USDC on Base',
  '0x9702230a8ea53601f5cd2dc00fdbc13d4df4a8c7': 'USDT on Avalanche',
  '0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e': 'USDC on Avalanche',
  EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v: 'USDC on Solana',
  Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB: 'USDT on Solana',
  So11111111111111111111111111111111111111112: 'wrapped SOL on Solana',
  TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA: 'tokens on Solana',
  '0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe': 'USDT on TON',
};

/** The first addresses of EVM networks are programs of the network; `0x…dead` is for burning. */
const LOW_EVM = /^0x0{36}[0-9a-f]{4}$/;

const UNOWNED: ReadonlySet<string> = new Set([...BURNED, ...zeroWallets()]);

function* zeroWallets(): Generator<string> {
  for (const version of HASH_VERSIONS) {
    const body = Buffer.from(`${version}${'00'.repeat(20)}`, 'hex');
    yield base58.encode(Buffer.concat([body, checksum(body)]));
  }
  const account = Buffer.alloc(21);
  yield base58xrp.encode(Buffer.concat([account, checksum(account)]));
}

/**
 * @param key - of `parseWallet`
 * @returns the end of a sentence that begins with the address
 */
export function findUnpayable(key: string): string | undefined {
  const contract = Object.hasOwn(CONTRACTS, key) ? CONTRACTS[key] : undefined;
  if (contract !== undefined) return `is the contract of ${contract}, from which no one gets a payment back`;
  return UNOWNED.has(key) || LOW_EVM.test(key) ? 'is a wallet that no one owns, such as for burning' : undefined;
}
