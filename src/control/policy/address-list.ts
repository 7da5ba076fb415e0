import { addressKey } from './address-key.js';

/** Commas and quotes come from spreadsheets: with them a line would never be equal to an address. */
const LINE = /^(?!:)[^\s,;"'\p{Cc}\u0080-\u{10ffff}]{1,256}$/u;
const RULE = 'must be one address, without spaces, commas and quotes';

/**
 * Reads a list of addresses: one a line, `#` begins a comment, lines may be empty.
 * @returns the keys by which addresses are compared
 * @throws RangeError that names the first line that is none, and how many others are none
 */
export function parseAddressList(text: string): Set<string> {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim());
  const wrong = lines.flatMap((line, index) => (line === '' || LINE.test(line) ? [] : [index]));
  const [first] = wrong;
  if (first !== undefined) {
    const others = wrong.length === 1 ? '' : `, and so must ${wrong.length - 1} more of its lines`;
    throw new RangeError(`line ${first + 1} ${RULE} (got ${JSON.stringify(lines[first]?.slice(0, 80))})${others}`);
  }
  return new Set(lines.filter((line) => line !== '').map(addressKey));
}
