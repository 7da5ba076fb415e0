import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { base58, bech32, bech32m } from '@scure/base';
import fc from 'fast-check';
import { parseWallet } from '../../../src/gateway/wallet.js';
import { findBech32Checksum } from '../../../src/gateway/wallet/bech32-checksum.js';
import { decodeBase58 } from '../../../src/gateway/wallet/decode-base58.js';
import { checksum, decodeChecked } from '../../../src/gateway/wallet/untagged.js';

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

const bytes = fc.uint8Array({ maxLength: 90 });
const words = fc.array(fc.nat(31), { maxLength: 70 });
const prefixes = fc.constantFrom('bc', 'tb', 'ltc', 'cosmos', 'addr_test', 'x', 'a1b');

/** A text, or the same with one letter changed, lost, added, or swapped with its neighbour. */
function withMistake(texts: fc.Arbitrary<string>, letters: string): fc.Arbitrary<string> {
  const mistake = fc.constantFrom('none', 'change', 'drop', 'add', 'swap');
  const given = fc.tuple(texts, mistake, fc.nat(), fc.constantFrom(...Array.from(letters)));
  return given.map(([text, kind, place, letter]) => {
    const at = place % (text.length + 1);
    const [before, here, behind] = [text.slice(0, at), text.slice(at, at + 1), text.slice(at + 1)];
    if (kind === 'change') return before + letter + behind;
    if (kind === 'drop') return before + behind;
    if (kind === 'add') return before + letter + here + behind;
    return kind === 'swap' ? before + behind.slice(0, 1) + here + behind.slice(1) : text;
  });
}

it('Base58 is decoded to the bytes of another decoder', () => {
  const encoded = withMistake(
    bytes.map((each) => base58.encode(each)),
    BASE58,
  );
  const random = fc.string({ unit: fc.constantFrom(...Array.from(BASE58)), maxLength: 120 });
  const ones = fc.tuple(fc.nat(40), random).map(([count, text]) => '1'.repeat(count) + text);
  fc.assert(
    fc.property(fc.oneof(encoded, random, ones), (text) => {
      expect([...decodeBase58(text)]).toEqual([...base58.decode(text)]);
    }),
    { numRuns: 3_000 },
  );
});

it('the checksum of Base58Check is the beginning of SHA-256 twice', () => {
  const digest = (data: Uint8Array): Buffer => createHash('sha256').update(data).digest();
  fc.assert(
    fc.property(bytes, fc.boolean(), fc.nat(), (body, isAltered, place) => {
      const sum = digest(digest(body)).subarray(0, 4);
      expect(checksum(body).equals(sum)).toBe(true);
      const whole = Buffer.concat([body, sum]);
      const at = place % whole.length;
      if (isAltered) whole.writeUInt8(whole.readUInt8(at) ^ 1, at);
      const isRight = body.length > 0 && !isAltered;
      expect(decodeChecked(whole)).toEqual(isRight ? Buffer.from(body) : undefined);
    }),
    { numRuns: 2_000 },
  );
});

const codecs = fc.constantFrom(bech32, bech32m);
const bech32Texts = withMistake(
  fc.tuple(codecs, prefixes, words).map(([codec, prefix, data]) => codec.encode(prefix, data, false)),
  BECH32,
).filter((text) => /^[!-9;-~]+1[02-9ac-hj-np-z]{6,}$/.test(text));

it('a bech32 text has the checksum that another codec finds', () => {
  const found = new Set<string | undefined>();
  fc.assert(
    fc.property(bech32Texts, (text) => {
      const isFirst = bech32.decodeUnsafe(text, false) !== undefined;
      const isSecond = bech32m.decodeUnsafe(text, false) !== undefined;
      const checksumOf = findBech32Checksum(text);
      found.add(checksumOf);
      expect(checksumOf).toBe(isFirst ? 'bech32' : isSecond ? 'bech32m' : undefined);
    }),
    { numRuns: 3_000 },
  );
  expect(found).toEqual(new Set(['bech32', 'bech32m', undefined]));
});

it('an address of Bitcoin or Litecoin is right if BIP-173 and BIP-350 say so of the words that another codec decodes', () => {
  const programs = fc.oneof(
    fc
      .constantFrom(19, 20, 21, 31, 32, 33, 2, 1, 40, 41)
      .chain((length) => fc.uint8Array({ minLength: length, maxLength: length }).map((each) => bech32.toWords(each))),
    words,
  );
  const given = fc.tuple(codecs, fc.constantFrom('bc', 'tb', 'ltc'), fc.option(fc.nat(31)), programs);
  const verdicts = new Set<boolean>();
  fc.assert(
    fc.property(given, fc.boolean(), ([codec, prefix, version, program], isZero) => {
      const data = version === null ? program : [isZero ? 0 : version, ...program];
      const text = codec.encode(prefix, data, false);
      const isRight = isWitness(text);
      verdicts.add(isRight);
      // Of other letters and lengths it is no address of this form.
      const { family, problem } = parseWallet(text);
      expect([text, family === 'bech32' && problem === undefined]).toEqual([text, isRight]);
    }),
    { numRuns: 3_000 },
  );
  expect(verdicts).toEqual(new Set([true, false]));
});

function isWitness(text: string): boolean {
  const first = bech32.decodeUnsafe(text, false);
  const { words: [version = 32, ...program] = [] } = first ?? bech32m.decodeUnsafe(text, false) ?? {};
  const length = bech32.fromWordsUnsafe(program)?.length ?? 0;
  if (version === 0) return first !== undefined && (length === 20 || length === 32);
  return first === undefined && version <= 16 && length >= 2 && length <= 40;
}
