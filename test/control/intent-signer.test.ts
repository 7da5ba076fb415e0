import { expect, it } from '@jest/globals';
import { PayoutSigner, signAllForLedger } from '../../src/control/intents/intent-signer.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { TEST_AUDIENCE, testKey, testSigner } from './support/keys.js';
import { IntentSigner } from './support/sign-at-once.js';

const NOW = Date.parse('2030-01-01T00:00:00.000Z');
const signing = { platformId: 7, audience: TEST_AUDIENCE, clock: { wallNow: () => NOW } };
const signer = new PayoutSigner({ signer: testSigner('shop', 1), ...signing });
const atOnce = new IntentSigner({ key: { name: 'shop', privateKey: testKey(1) }, ...signing });

const metadata = { a: ['ä', null] };
const brought = { ...aPayout('brought', { amount: '9' }), signed: atOnce.sign(aPayout('brought', { amount: '9' })) };
const payouts = [
  aPayout('plain'),
  aPayout('full', { metadata, reference: 'r', requestedBy: 'Ann', batch: 'b' }),
  brought,
  ...Array.from({ length: 50 }, (_, index) => aPayout(`p${index}`)),
];

it('signs payouts in their order, and leaves the signature that one brings', async () => {
  const signed = await signer.signAll(payouts);
  expect(signed.map(({ payoutId }) => payoutId)).toEqual(payouts.map(({ payoutId }) => payoutId));
  const given = { metadata: JSON.stringify(metadata), requestedBy: 'Ann' };
  expect(signed.slice(0, 3).map(({ signed: each }) => each)).toEqual([
    atOnce.sign(aPayout('plain')),
    atOnce.sign(aPayout('full', { reference: 'r' }), given),
    brought.signed,
  ]);
  // Only what this process signed may replace another signature.
  const forLedger = await signAllForLedger(signer, payouts);
  expect(forLedger.map(({ signed: each }) => each?.isVerified)).toEqual(
    payouts.map((payout) => (payout === brought ? undefined : true)),
  );
});

it.each([
  ['that ends before the payout may be sent', { notBefore: new Date(NOW + 8 * 86_400_000).toISOString() }, 'notBefore'],
  ['of a text that is not one line', { reference: 'one\u2028line' }, 'reference'],
])('no signature is made %s', async (_, field, name) => {
  const error = { problems: [{ field: name, message: expect.any(String) }] };
  await expect(signer.signAll([aPayout('first'), { ...aPayout('p'), ...field }])).rejects.toMatchObject(error);
});
