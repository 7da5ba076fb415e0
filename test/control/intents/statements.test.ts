import { createPublicKey } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ACT_NAMES, formatAct, type Act } from '../../../src/control/approvals/act.js';
import { formatIntent, intentOf, intentOfProof, proofOf, type Intent } from '../../../src/control/intents/intent.js';
import { formatReceipt, type Receipt } from '../../../src/control/intents/receipt.js';
import { StatementError } from '../../../src/control/intents/statement.js';
import { signText, verifyText } from '../../../src/control/keys/ed25519.js';
import { testKey } from '../support/keys.js';
import { PLATFORM } from '../support/signed.js';

/** What a forger would put into a value: names and signs of other lines, text that looks equal. */
const spice = fc.constantFrom(
  ...['=', '=amount=', 'amount', 'é', 'e\u0301', '💸', ' ', '\\n', '%0A', '0', '1', '.', 'symbol='],
);
const line = fc
  .array(fc.oneof(spice, fc.string({ unit: 'grapheme' })), { maxLength: 4 })
  .map((parts) => parts.join(''));
const value = line.filter((text) => !/[\p{Cc}\u2028\u2029\p{Surrogate}]/u.test(text));
const filled = value.filter((text) => text !== '');
const audience = fc.option(filled, { nil: undefined });
const number = fc.maxSafeNat();

const intents: fc.Arbitrary<Intent> = fc.record({
  ...{ audience, platformId: number, payoutId: value, paymentId: number, amount: value, addressTo: value },
  ...{ symbol: audience, reference: audience, metadata: fc.option(value, { nil: undefined }), notBefore: audience },
  ...{ requestedBy: audience, issuedAt: value, expiresAt: value },
});
const acts: fc.Arbitrary<Act> = fc.record({
  ...{ audience, act: fc.constantFrom(...ACT_NAMES), payoutId: value, intent: value },
  ...{ attempt: fc.option(number, { nil: undefined }), reason: value, by: value, at: value, expiresAt: value },
});
const receipts: fc.Arbitrary<Receipt> = fc.record({
  ...{ audience, payoutId: value, intent: value, state: value, attempt: number, txhash: value, at: value },
});

const privateKey = testKey(1);
const publicKey = createPublicKey(privateKey);
const isEqual = (one: object, other: object): boolean =>
  Object.keys(one).every((field) => Reflect.get(one, field) === Reflect.get(other, field));

describe.each([
  ['intent', intents, (fields: unknown) => formatIntent(fields as Intent)],
  ['act', acts, (fields: unknown) => formatAct(PLATFORM, fields as Act)],
  ['receipt', receipts, (fields: unknown) => formatReceipt(PLATFORM, fields as Receipt)],
] as const)('the bytes of an %s', (_, arbitrary, format) => {
  const fields = arbitrary as fc.Arbitrary<object>;

  it('change with every field, and the signature with them, and name the same fields in every case', () => {
    const names = (text: string): string[] => text.split('\n').map((entry) => entry.split('=', 1)[0] ?? '');
    fc.assert(
      fc.property(fields, fields, (one, other) => {
        const [text, signature] = [format(one), signText(format(one), privateKey)];
        expect(verifyText(text, signature, publicKey)).toBe(true);
        for (const field of Object.keys(one)) {
          const altered: object = { ...one, [field]: Reflect.get(other, field) as unknown };
          if (Reflect.get(one, field) === Reflect.get(altered, field)) continue;
          expect(verifyText(format(altered), signature, publicKey)).toBe(false);
          if (field !== 'audience') expect(names(format(altered))).toEqual(names(text));
        }
        expect(format(one) === format(other)).toBe(isEqual(one, other));
      }),
      { numRuns: 200 },
    );
  });

  it('do not exist where a value is more than one line, or has no bytes of its own', () => {
    const bad = fc.constantFrom(
      ...['\n', '\r', '\u0000', '\t', '\u001f', '\u007f', '\u0085', '\u009f', '\u2028', '\u2029'],
      ...['\ud800', '\udfff', '\udc00\ud800'],
    );
    fc.assert(
      fc.property(fields, bad, value, value, (one, character, before, behind) => {
        for (const [field, given] of Object.entries(one)) {
          if (typeof given !== 'string' || field === 'metadata') continue;
          expect(() => format({ ...one, [field]: before + character + behind })).toThrow(StatementError);
        }
      }),
    );
  });
});

it('an optional field that is there and empty is no intent: its bytes would be those of one without it', () => {
  const needed = { payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'w', issuedAt: '', expiresAt: '' };
  for (const field of ['symbol', 'reference', 'notBefore', 'requestedBy'])
    expect(() => formatIntent({ platformId: 1, ...needed, [field]: '' })).toThrow(StatementError);
});

it('what a journal keeps of a signature makes the very bytes again, however its times are written', () => {
  const start = '2030-01-31T09:00:00';
  const time = fc.constantFrom(...['.000Z', 'Z', '.5Z', '.12Z'].map((end) => start + end));
  const payment = fc.record({
    ...{ payoutId: filled, paymentId: fc.nat(), amount: filled, addressTo: filled },
    ...{ symbol: audience, reference: audience, notBefore: audience },
  });
  const signed = fc.record({ audience, metadata: audience, requestedBy: audience, issuedAt: time, expiresAt: time });
  fc.assert(
    fc.property(payment, signed, (fields, rest) => {
      const proof = proofOf(fields, { key: 'shop', signature: 's', ...rest });
      const times = { issuedAt: Date.parse(rest.issuedAt), expiresAt: Date.parse(rest.expiresAt) };
      const stored = JSON.parse(JSON.stringify(proof)) as typeof proof;
      const { payoutId, paymentId, amount, addressTo, symbol } = fields;
      const again = intentOfProof(PLATFORM, { payoutId, paymentId, amount, addressTo, symbol }, stored, times);
      expect(formatIntent(again)).toBe(formatIntent(intentOf(PLATFORM, fields, rest)));
    }),
  );
});
