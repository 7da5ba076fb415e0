import { parseWallet, splitTag, type Wallet } from './parse-wallet.js';
import { type Chain, listChains } from './chain.js';

/** A currency of the gateway's list, as far as its network matters. */
interface ListedCurrency {
  readonly name: string;
  readonly chain?: Chain | undefined;
}

export type NetworkCheck =
  | { readonly kind: 'same'; readonly chain: Chain }
  /** `problem` ends a sentence that begins with the address. */
  | { readonly kind: 'differs'; readonly problem: string }
  | { readonly kind: 'unchecked'; readonly reason: string };

/**
 * Compares the networks of an address and of its currency. Every form of address of a known network is known, so what
 * has no form is no address of it. Names are not checked: of a gateway's own wallets, or of a service such as ENS.
 * @param currency - undefined if the gateway does not list it
 */
export function checkNetwork(addressTo: string, currency: ListedCurrency | undefined): NetworkCheck {
  const [address] = splitTag(addressTo);
  return compareNetworks(address, parseWallet(address), currency);
}

/** For operators. @param currencies - empty if the gateway's list is not known */
export function describeNetwork(
  { addressTo, paymentId }: { readonly addressTo: string; readonly paymentId: number },
  currencies: readonly (ListedCurrency & { readonly paymentId: number })[],
): string {
  if (currencies.length === 0) return "not checked: the gateway's list of currencies is not known";
  const currency = currencies.find((listed) => listed.paymentId === paymentId);
  const check = checkNetwork(addressTo, currency);
  if (check.kind === 'same') return `${check.chain}, as its address`;
  return check.kind === 'unchecked' ? `not checked: ${check.reason}` : `wrong: the address ${check.problem}`;
}

/** @param wallet - of the address, which is without its tag */
export function compareNetworks(
  address: string,
  { chains, problem }: Pick<Wallet, 'chains' | 'problem'>,
  currency: ListedCurrency | undefined,
): NetworkCheck {
  if (currency === undefined) return { kind: 'unchecked', reason: 'the gateway does not list its currency' };
  const { name, chain } = currency;
  if (chain === undefined) return { kind: 'unchecked', reason: `the network of ${name} is not known` };
  if (problem === undefined && chains?.includes(chain) === true) return { kind: 'same', chain };
  if (chains === undefined && NAME.test(address)) {
    return { kind: 'unchecked', reason: `it is a name, and no address of ${chain}` };
  }
  if (chains === undefined || chains.length === 0) {
    return { kind: 'differs', problem: `is no address of ${chain}, on which the gateway pays ${name}` };
  }
  return {
    kind: 'differs',
    problem: `is an address of ${listChains(chains)}, but the gateway pays ${name} on ${chain}`,
  };
}

/** Parts with hyphens, or the end of a domain. */
const NAME = /^[\w.*@]+(?:-[\w.*@]+)+$|^[\w*@]+(?:\.[\w-]+)*\.[a-z]{2,10}$/i;
