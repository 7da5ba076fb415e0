import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatIntent, intentOf, intentOfProof, proofOf } from '../../../src/control/intents/intent.js';

/** What a journal keeps of a signature is enough to make the very bytes again that were signed. */

const TIMES = ['2030-01-31T09:00:00.000Z', '2030-01-31T09:00:00Z', '2030-01-31T09:00:00.5Z', '2030-01-31T09:00:00.12Z'];
const text = fc.string({ minLength: 1, unit: 'grapheme' }).filter((value) => !/[\p{Cc}\u2028\u2029]/u.test(value));
const some = fc.option(text, { nil: undefined });

it('of every payment, whatever of it is there, and however its times are written', () => {
  const payment = fc.record({
    ...{ payoutId: text, paymentId: fc.nat(), amount: text, addressTo: text },
    ...{ symbol: some, reference: some, notBefore: some },
  });
  const time = fc.constantFrom(...TIMES);
  const signed = fc.record({ audience: some, metadata: some, requestedBy: some, issuedAt: time, expiresAt: time });
  fc.assert(
    fc.property(payment, signed, (fields, rest) => {
      const proof = proofOf(fields, { key: 'shop', signature: 's', ...rest });
      const { payoutId, paymentId, amount, addressTo, symbol } = fields;
      const times = { issuedAt: Date.parse(rest.issuedAt), expiresAt: Date.parse(rest.expiresAt) };
      const stored = JSON.parse(JSON.stringify(proof)) as typeof proof;
      const again = intentOfProof(4242, { payoutId, paymentId, amount, addressTo, symbol }, stored, times);
      expect(formatIntent(again)).toBe(formatIntent(intentOf(4242, fields, rest)));
    }),
  );
});
