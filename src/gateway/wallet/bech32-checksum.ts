const LETTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

/** By the code of the letter. */
const VALUE = new Uint8Array(128);
for (const [value, letter] of Array.from(LETTERS).entries()) VALUE[letter.charCodeAt(0)] = value;

/** By bit of the five that leave the register. */
const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
/** What the register adds, for each value of these five bits. */
const ADDED = Int32Array.from({ length: 32 }, (_, top) =>
  GENERATORS.reduce((sum, generator, bit) => (((top >> bit) & 1) === 0 ? sum : sum ^ generator), 0),
);

const BECH32 = 1;
const BECH32M = 0x2bc830a3;

/**
 * Which of the two checksums a text has, in one pass: a codec decodes the text for each.
 * @param lower - a prefix, `1`, and at least six letters of bech32
 * @returns undefined if it has neither
 */
export function findBech32Checksum(lower: string): 'bech32' | 'bech32m' | undefined {
  const separator = lower.lastIndexOf('1');
  let register = 1;
  const add = (value: number): void => {
    register = ((register & 0x1ffffff) << 5) ^ value ^ (ADDED[register >>> 25] ?? 0);
  };
  for (let at = 0; at < separator; at += 1) add(lower.charCodeAt(at) >> 5);
  add(0);
  for (let at = 0; at < separator; at += 1) add(lower.charCodeAt(at) & 31);
  for (let at = separator + 1; at < lower.length; at += 1) add(bech32Value(lower, at));
  if (register === BECH32) return 'bech32';
  return register === BECH32M ? 'bech32m' : undefined;
}

/** The five bits of a letter. */
export function bech32Value(text: string, at: number): number {
  return VALUE[text.charCodeAt(at)] ?? 0;
}
