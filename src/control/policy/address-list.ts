import { parseWallet, walletAndTagKey, walletKey } from '../../gateway/wallet.js';

/** Rejects commas and quotes, which come from spreadsheets: such a line would never equal an address. */
const LINE = /^(?!:)[^\s,;"'\p{Cc}\u0080-\u{10ffff}]{1,256}$/u;

export interface AddressList {
  readonly wallet: ReadonlySet<string>;
  readonly recipient: ReadonlySet<string>;
  readonly tagged: string | undefined;
}

/**
 * Reads a list of addresses, one a line. `#` begins a comment; lines may be empty.
 * @throws RangeError with the first invalid line and the number of others
 */
export function parseAddressList(text: string): AddressList {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim());
  const wrong = lines.flatMap((line, index) => (findRule(line) === undefined ? [] : [index]));
  const [first] = wrong;
  if (first !== undefined) {
    const others = wrong.length === 1 ? '' : `, and ${wrong.length - 1} more of its lines cannot be used`;
    const { [first]: line = '' } = lines;
    throw new RangeError(`line ${first + 1} ${findRule(line)} (got ${JSON.stringify(line.slice(0, 80))})${others}`);
  }
  const addresses = lines.filter((line) => line !== '');
  const tagged = lines.findIndex((line) => parseWallet(line).tag !== undefined);
  return {
    wallet: new Set(addresses.map(walletKey)),
    recipient: new Set(addresses.map(walletAndTagKey)),
    tagged: tagged === -1 ? undefined : `line ${tagged + 1} (${JSON.stringify(lines[tagged])})`,
  };
}

/** The rule that a line breaks. A line that never equals an address would neither hold nor pass a payout. */
function findRule(line: string): string | undefined {
  if (line === '') return undefined;
  if (!LINE.test(line)) return 'must be one address, without spaces, commas and quotes';
  const { family, key, tag, problem } = parseWallet(line);
  if (problem !== undefined) return problem;
  if (family !== undefined || tag === undefined) return undefined;
  if (parseWallet(key).family !== undefined)
    return 'must be an address alone: no destination tag follows one of its kind';
  return parseWallet(tag).family === undefined
    ? undefined
    : 'must be an address alone, without what is before its colon';
}
