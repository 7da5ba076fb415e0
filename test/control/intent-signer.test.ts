import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { PayoutSigner, signAllForLedger, signForLedger } from '../../src/control/intents/intent-signer.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { TEST_AUDIENCE } from './support/keys.js';

const NOW = Date.parse('2030-01-01T00:00:00.000Z');
const { privateKey } = generateKeyPairSync('ed25519');
const signer = new PayoutSigner({
  key: { name: 'shop', privateKey },
  platformId: 7,
  audience: TEST_AUDIENCE,
  clock: { wallNow: () => NOW },
});

const brought = signer.sign(aPayout('brought', { amount: '9' }));
const payouts = [
  aPayout('plain'),
  aPayout('full', { metadata: { a: ['ä', null] }, reference: 'r', requestedBy: 'Ann', batch: 'b' }),
  brought,
  ...Array.from({ length: 50 }, (_, index) => aPayout(`p${index}`)),
];

it('signing on other threads gives the signatures of signing on this one, in order', async () => {
  expect(await signer.signAll(payouts)).toEqual(payouts.map((payout) => signer.sign(payout)));
  const forLedger = await signAllForLedger(signer, payouts);
  expect(forLedger).toEqual(payouts.map((payout) => signForLedger(signer, payout)));
  // Only what this process signed may replace another signature.
  expect(forLedger.map(({ signed }) => signed?.isVerified)).toEqual(
    payouts.map((payout) => (payout === brought ? undefined : true)),
  );
});

it.each([
  ['that ends before the payout may be sent', { notBefore: new Date(NOW + 8 * 86_400_000).toISOString() }, 'notBefore'],
  ['of a text that is not one line', { reference: 'one\u2028line' }, 'reference'],
])('no signature is made %s, with the same error on other threads', async (_, field, name) => {
  const payout = { ...aPayout('p'), ...field };
  const error = { problems: [{ field: name, message: expect.any(String) }] };
  let refused: unknown;
  try {
    signer.sign(payout);
  } catch (reason) {
    refused = reason;
  }
  expect(refused).toMatchObject(error);
  await expect(signer.signAll([aPayout('first'), payout])).rejects.toEqual(refused);
});
