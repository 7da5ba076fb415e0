import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { checkNetwork } from '../../src/gateway/wallet/check-network.js';
import { CURRENCIES } from '../../src/sandbox/currency.js';
import { parseCurrencies } from '../../src/gateway/parse-currencies.js';

type Item = Readonly<Record<string, unknown>>;

const chainOf = (item: Item) => parseCurrencies([{ id: 1, rate: '1', ...item }])[0]?.chain;

/** How lists of gateways and exchanges name a currency and its network. */
const NAMED: Readonly<Record<string, readonly Item[]>> = {
  Tron: [
    { currency: 'USDT', network: 'Tron' },
    { currency: 'USDT', platform: 'TRC20' },
    { currency: 'USDT', networkName: 'Tron (TRC20)' },
    { currency: 'USDT', token_standard: 'TRC-20' },
    { currency: 'USDT', name: 'Tether (TRC-20)' },
    { currency: 'USDT TRC20' },
    { code: 'USDT-TRC20' },
    { code: 'USDT_TRON' },
    { code: 'usdttrc20', name: 'Tether USD' },
    { code: 'USDT', name: 'TRC20 USDT' },
    { code: 'USDT', name: 'TRON (TRC20)' },
    { code: 'USDT', chain: 'TRX' },
    { code: 'TRX', name: 'TRON' },
    { code: 'TRX' },
  ],
  'Ethereum (EVM)': [
    { code: 'USDT', network: 'ERC20' },
    { code: 'USDT', chain: 'BSC (BEP20)' },
    { code: 'USDC', platform: 'Polygon' },
    { code: 'USDC', blockchain: 'Arbitrum One' },
    { code: 'USDC BEP20' },
    { code: 'BNB', network: 'BNB Smart Chain' },
    { code: 'ETH', name: 'Ethereum' },
    { code: 'BTC', name: 'Bitcoin BEP20' },
  ],
  Bitcoin: [{ code: 'BTC' }, { code: 'BTC', name: 'Bitcoin', network: 'Bitcoin mainnet' }, { title: 'Bitcoin (BTC)' }],
  'Bitcoin Cash': [{ code: 'BCH', name: 'Bitcoin Cash' }],
  Litecoin: [{ code: 'LTC', network: 'Litecoin Network' }],
  XRP: [{ code: 'XRP', name: 'Ripple XRP', network: 'Ripple' }],
  TON: [{ code: 'TON' }, { code: 'USDT', network: 'TON' }, { code: 'USDT', name: 'Tether (TON)' }],
  Solana: [
    { code: 'USDC', network: 'SPL' },
    { code: 'SOL', name: 'Solana' },
  ],
  Dogecoin: [{ code: 'DOGE' }],
  Cardano: [{ code: 'ADA', name: 'Cardano' }],
  Stellar: [{ code: 'XLM' }],
  Algorand: [{ code: 'ALGO' }],
  Polkadot: [{ code: 'DOT' }],
  Monero: [{ code: 'XMR' }],
  Zcash: [{ code: 'ZEC' }],
  Dash: [{ code: 'DASH' }],
  'Bitcoin (test)': [{ code: 'BTC', network: 'Bitcoin Testnet' }],
  'Tron (test)': [{ code: 'USDT', network: 'Tron Nile' }],
};

it.each(Object.entries(NAMED).flatMap(([chain, items]) => items.map((item) => [chain, item] as const)))(
  'a currency is of %s: %j',
  (chain, item) => {
    expect(chainOf(item)).toBe(chain);
  },
);

it.each<Item>([
  { code: 'USDT' },
  { code: 'USDT', name: 'Tether USD' },
  { code: 'BTC', network: 'Lightning' },
  { code: 'BTC', name: 'Bitcoin Lightning', network: 'Bitcoin' },
  { code: 'BTC', name: 'Wrapped BTC' },
  { code: 'BTC', network: 'Liquid Network' },
  { code: 'BTC', network: 'Something new' },
  { code: 'USDT', network: 'Tron', token_standard: 'ERC20' },
  { code: 'BNB' },
  { code: 'OSMO', network: 'Cosmos' },
  { code: 'AVAX', network: 'Avalanche X-Chain' },
])('the network of a currency is not known: %j', (item) => {
  expect(chainOf(item)).toBeUndefined();
});

it("the network is kept in the gateway's words, also where one currency has the code", () => {
  const [usdt] = parseCurrencies([{ id: 6, code: 'USDT', platform: 'TRC-20' }]);
  expect(usdt).toMatchObject({ name: 'USDT', network: 'TRC-20', chain: 'Tron' });
  expect(parseCurrencies([{ id: 6, code: 'USDT', network: 'Something new' }])).toMatchObject([
    { name: 'USDT', network: 'Something new' },
  ]);
});

it('limits, a fee and a contract are read where the list has them', () => {
  const item = { id: 6, code: 'USDT', min_withdraw: '5', maxWithdraw: 1000, decimals: 6, withdrawal_fee: '1.50' };
  const contract = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
  expect(parseCurrencies([{ ...item, contract_address: contract }])).toMatchObject([
    { minimum: '5', maximum: '1000', decimals: 6, fee: '1.5', contract },
  ]);
  const none = { id: 6, code: 'USDT', min: 0, max: '-1', decimals: 'many', fee: null, contract: 'x' };
  const [currency = {}] = parseCurrencies([none]);
  expect(Object.keys(currency).toSorted()).toEqual(['name', 'paymentId', 'usdRate']);
});

const { valid } = JSON.parse(readFileSync(new URL('../gateway/chain-vectors.json', import.meta.url), 'utf8')) as {
  readonly valid: Readonly<Record<string, readonly string[]>>;
};

/** Addresses of the first network that are also addresses of the others, by their beginning. */
const SHARED: readonly (readonly [from: string, beginning: RegExp, also: readonly string[]])[] = [
  ['Bitcoin', /^1/, ['Bitcoin Cash']],
  ['Bitcoin', /^3/, ['Bitcoin Cash', 'Litecoin']],
  ['Bitcoin Cash', /^1/, ['Bitcoin']],
  ['Bitcoin Cash', /^3/, ['Bitcoin', 'Litecoin']],
  ['Bitcoin (test)', /^2/, ['Bitcoin Cash (test)', 'Litecoin (test)']],
  ['Bitcoin (test)', /^[mn]/, ['Bitcoin Cash (test)', 'Litecoin (test)']],
  ['Litecoin (test)', /^m/, ['Bitcoin (test)']],
  ['Polkadot', /^5/, ['Kusama']],
];
/** The same wallets on main and test nets. */
const ONE_FORM = /^(Tron|Ethereum|Solana|Stellar|Algorand|Tezos|Cosmos Hub|Osmosis)/;

const EVERY: readonly Item[] = [
  ...CURRENCIES.map(({ code, name, network }) => ({ code, name, network })),
  ...Object.values(NAMED).flat(),
];

it.each(EVERY.map((item) => [JSON.stringify(item), item] as const))(
  'every address is right for a currency or refused, of all networks: %s',
  (_, item) => {
    const [currency] = parseCurrencies([{ id: 1, ...item }]);
    expect(currency?.chain).toBeDefined();
    for (const [chain, addresses] of Object.entries(valid)) {
      for (const address of addresses) {
        const also = SHARED.filter(([from, beginning]) => from === chain && beginning.test(address)).flatMap(
          ([, , to]) => to,
        );
        const isOneForm =
          ONE_FORM.test(chain) ||
          (chain === 'XRP' && address.startsWith('r')) ||
          (chain === 'TON' && /^[EU]/.test(address));
        const right = [chain, ...also, ...(isOneForm ? [`${chain} (test)`] : [])];
        const kind = right.includes(currency?.chain ?? '') ? 'same' : 'differs';
        expect([address, checkNetwork(address, currency).kind]).toEqual([address, kind]);
      }
    }
  },
);

it.each([
  ...['T', 'TXYZop', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeB', '=TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', 'TXYZ9', 'x', '0'],
  ...[
    'undefined',
    "'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'",
    'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf;',
    'TXYZ.opYRdj2D9XRtbG411XZZ3kM5VkAeBf',
  ],
])('what is cut or copied wrongly is no address of Tron: %s', (address) => {
  const [currency] = parseCurrencies([{ id: 6, code: 'USDT', network: 'TRC20' }]);
  expect(checkNetwork(address, currency).kind).toBe('differs');
});

it.each([
  'alice.eth',
  'alice.sol',
  'alice.ton',
  'some-wallet',
  'wallet-1',
  'X-avax1qx2fxv2umyhttkxyxp8x0d',
  'alice*example.com',
])('the name of a wallet is not checked: %s', (address) => {
  const [currency] = parseCurrencies([{ id: 6, code: 'USDT', network: 'TRC20' }]);
  expect(checkNetwork(address, currency)).toMatchObject({ kind: 'unchecked' });
});

it('a refusal names both networks', () => {
  const [currency] = parseCurrencies([{ id: 6, code: 'USDT', network: 'TRC20' }]);
  expect(checkNetwork('1BoatSLRHtKNngkdXEeobR76b53LETtpyT', currency)).toEqual({
    kind: 'differs',
    problem: 'is an address of Bitcoin or Bitcoin Cash or eCash, but the gateway pays USDT on Tron',
  });
  expect(checkNetwork('tb1qcrh3yqn4nlleplcez2yndq2ry8h9ncg3qh7n54', { name: 'BTC', chain: 'Bitcoin' })).toMatchObject({
    problem: 'is an address of Bitcoin (test), but the gateway pays BTC on Bitcoin',
  });
});
