/**
 * The networks whose wallets this package can tell from those of other networks. Networks that share their wallets,
 * such as Ethereum and BNB Smart Chain, are one.
 */
type Network =
  | 'Bitcoin'
  | 'Bitcoin Cash'
  | 'eCash'
  | 'Litecoin'
  | 'Dogecoin'
  | 'Dash'
  | 'Zcash'
  | 'Tron'
  | 'Ethereum (EVM)'
  | 'XRP'
  | 'TON'
  | 'Solana'
  | 'Cardano'
  | 'Stellar'
  | 'Algorand'
  | 'Polkadot'
  | 'Kusama'
  | 'Monero'
  | 'Tezos'
  | 'Kaspa'
  | 'Aptos'
  | 'Sui'
  | 'Starknet'
  | 'Cosmos Hub'
  | 'Osmosis'
  | 'Celestia'
  | 'dYdX'
  | 'THORChain'
  | 'Terra'
  | 'MultiversX'
  | 'BNB Beacon Chain';

/** A network, or its test nets. */
export type Chain = Network | `${Network} (test)`;

/** An address of such a network does not say whether it is of the main net. */
export function bothNets(...networks: readonly Network[]): readonly Chain[] {
  return networks.flatMap((network) => [network, testNet(network)]);
}

function testNet(network: Network): Chain {
  return `${network} (test)`;
}

/** @example Bitcoin or Bitcoin Cash */
export function listChains(chains: readonly Chain[]): string {
  const shown = chains.filter((chain) => !chains.some((other) => chain === `${other} (test)`));
  return shown.join(' or ');
}

/** What lists of currencies call each network: upper case, letters and digits alone. */
const NAMES: Readonly<Partial<Record<Network, string>>> = {
  Bitcoin: 'BTC BITCOIN XBT OMNI',
  'Bitcoin Cash': 'BCH BITCOINCASH BITCOINCASHBCH',
  eCash: 'XEC ECASH',
  Litecoin: 'LTC LITECOIN',
  Dogecoin: 'DOGE DOGECOIN',
  Dash: 'DASH',
  Zcash: 'ZEC ZCASH',
  Tron: 'TRX TRON TRC20 TRC10 TRONTRC20 TRC20TRON TRXTRC20 TRC20TRX',
  'Ethereum (EVM)': [
    'ETH ETHEREUM ETHER ERC20 ETHEREUMERC20 ERC20ETHEREUM ETHERC20 ETC ETHEREUMCLASSIC',
    'BEP20 BSC BSCBEP20 BEP20BSC BNBBEP20 BNBSMARTCHAIN BNBSMART BNBCHAIN BINANCESMARTCHAIN BINANCESMART BNBSMARTCHAINBEP20',
    'POLYGON MATIC POL POLYGONPOS POLYGONMATIC ARBITRUM ARBITRUMONE ARB OPTIMISM OPTIMISTICETHEREUM BASE',
    'AVAXC AVAXCCHAIN AVALANCHECCHAIN LINEA SCROLL ZKSYNC ZKSYNCERA FANTOM FTM CELO MANTLE BLAST OPBNB',
  ].join(' '),
  XRP: 'XRP RIPPLE XRPL XRPLEDGER RIPPLEXRP XRPRIPPLE',
  TON: 'TON TONCOIN THEOPENNETWORK THEOPEN OPENNETWORK JETTON TONJETTON',
  Solana: 'SOL SOLANA SPL SOLANASPL SPLTOKEN',
  Cardano: 'ADA CARDANO',
  Stellar: 'XLM STELLAR STELLARLUMENS',
  Algorand: 'ALGO ALGORAND',
  Polkadot: 'DOT POLKADOT',
  Kusama: 'KSM KUSAMA',
  Monero: 'XMR MONERO',
  Tezos: 'XTZ TEZOS',
  Kaspa: 'KAS KASPA',
  Aptos: 'APT APTOS',
  Sui: 'SUI',
  Starknet: 'STARKNET',
  'Cosmos Hub': 'ATOM COSMOSHUB COSMOSATOM ATOMCOSMOS',
  Osmosis: 'OSMO OSMOSIS',
  Celestia: 'TIA CELESTIA',
  dYdX: 'DYDXCHAIN',
  THORChain: 'RUNE THORCHAIN',
  Terra: 'TERRA LUNA',
  MultiversX: 'EGLD MULTIVERSX ELROND',
  'BNB Beacon Chain': 'BEP2 BNBBEP2 BNBBEACONCHAIN BEACONCHAIN',
};

const BY_NAME: ReadonlyMap<string, Network> = new Map(
  Object.entries(NAMES).flatMap(([network, names]) => names.split(' ').map((name) => [name, network as Network])),
);

const TEST_NET =
  /\b(test|testnet\d*|devnet|stagenet|regtest|signet|nile|shasta|sepolia|goerli|holesky|hoodi|amoy|mumbai|fuji|chapel|preprod|altnet)\b/i;

/** Words that name no network. */
const FILLERS = /\b(main|mainnet|network|chain|blockchain|protocol|native|coin|token|crypto|cryptocurrency)\b/gi;

/** A token's standard names its network wherever it is: `USDT-TRC20`, `usdttrc20`, `TRC-20 USDT`. */
const STANDARD = /(?:^|[^a-z0-9]|(?<=^[a-z]{2,6}))(trc|erc|bep)[-_ ]?(20|10|2)(?![0-9a-z])/i;

interface CurrencyTexts {
  /** What the gateway says of its network. */
  readonly networks: readonly string[];
  /** Its names and codes. */
  readonly names: readonly string[];
}

/**
 * Finds the network on which a currency is paid, by every text that the gateway's list has about it.
 * @returns undefined if no text names a network that is known here, or if texts contradict each other
 */
export function findChain({ networks, names }: CurrencyTexts): Chain | undefined {
  if ([...networks, ...names].some((text) => /\b(lightning|liquid)\b/i.test(text))) return undefined;
  const brackets = names.flatMap((name) => /\(([^()]+)\)/.exec(name)?.[1] ?? []);
  const stated = [...networks, ...brackets].filter((text) => squeeze(text) !== '');
  const isPlain = !names.some(isBridged);
  const tokens = isPlain ? names.flatMap((name) => /^[A-Z0-9]{3,6}[-_ :/.]+(.+)$/.exec(name)?.[1] ?? []) : [];
  const found = new Set([...stated, ...names.flatMap(findStandard), ...tokens].flatMap((text) => readNetwork(text)));
  // A network that is stated and not known here may be any: the coin's own would be a guess.
  const own = found.size === 0 && stated.length === 0 && isPlain ? names.flatMap(readNetwork) : [];
  const [network, ...others] = new Set([...found, ...own]);
  if (network === undefined || others.length > 0) return undefined;
  return [...networks, ...names].some((text) => TEST_NET.test(text)) ? testNet(network) : network;
}

function findStandard(name: string): string[] {
  const [, standard, number] = STANDARD.exec(name) ?? [];
  return standard === undefined || number === undefined ? [] : [`${standard}${number}`];
}

/** `TRON (TRC20)` is read as a whole, without its brackets, and by its standard. */
function readNetwork(text: string): Network[] {
  const outside = text.replace(/\([^()]*\)/g, ' ');
  const all = [text, outside, ...findStandard(text)].map((each) => BY_NAME.get(squeeze(each)));
  const [first] = all.filter((network) => network !== undefined);
  return first === undefined ? [] : [first];
}

function squeeze(text: string): string {
  return text
    .replace(FILLERS, ' ')
    .replace(new RegExp(TEST_NET, 'gi'), ' ')
    .replace(/[^a-z0-9]/gi, '')
    .toUpperCase();
}

/** Of another network than the coin's own. */
function isBridged(name: string): boolean {
  return /\b(wrapped|bridged|peg|pegged|runes?|brc-?20)\b/i.test(name);
}
