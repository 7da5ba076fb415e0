/** What is known of wallets and their networks. Only codecs and comparisons, so that whatever has an address may ask. */
export { checkNetwork, compareNetworks, describeNetwork, type NetworkCheck } from './wallet/check-network.js';
export {
  type Chain,
  friendlyTon,
  isSameAddress,
  parseWallet,
  splitTag,
  type Wallet,
  walletAndTagKey,
  type WalletFamily,
  walletKey,
} from './wallet/parse-wallet.js';
export { isPrivateKey } from './wallet/private-key.js';
export { findUnpayable } from './wallet/unpayable.js';
