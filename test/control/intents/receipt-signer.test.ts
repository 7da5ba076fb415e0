import { expect, it } from '@jest/globals';
import {
  ReceiptSigner,
  verifyReceipt,
  type PaidPayout,
  type ReceiptResult,
} from '../../../src/control/intents/receipt.js';
import type { BoundKeyring } from '../../../src/control/keys/keyring.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import { DAY_MS, entryOf, NOW, PLATFORM, signIntent } from '../support/signed.js';

const WORKER = entryOf(2, 'worker-1', 'worker');
const KEYRING = keyringOf(keyEntry(testKey(1)), WORKER);
const fields = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const unsigned: PaidPayout = { ...fields, attempt: 1, txhash: 'h-1' };
const payout: PaidPayout = { ...unsigned, signed: signIntent(fields) };

/** As a worker signs a month after the payout was signed. */
function sign(given: PaidPayout, keyring: BoundKeyring | undefined = KEYRING): ReceiptResult {
  const key = { name: 'worker-1', privateKey: testKey(2) };
  const clock = { wallNow: () => NOW + 30 * DAY_MS };
  const signer = new ReceiptSigner({ key, platformId: PLATFORM, audience: TEST_AUDIENCE, keyring, clock });
  return signer.sign(given, 'completed');
}

function verdictOf(
  given: PaidPayout,
  result: ReceiptResult,
  change: object = {},
  platformId = PLATFORM,
  keyring = KEYRING,
) {
  if (result.kind === 'refused') throw new Error(result.message);
  return verifyReceipt(
    platformId,
    { ...given, state: 'completed', receipt: { ...result.receipt, ...change } },
    keyring,
  );
}

it('a worker signs for a payout whose own signature was good when it was sent, also after that ended', () => {
  expect(verdictOf(payout, sign(payout)).kind).toBe('verified');
});

it('a receipt is for one account and one environment', () => {
  const receipt = sign(payout);
  expect(verdictOf(payout, receipt, {}, PLATFORM + 1).kind).toBe('refused');
  for (const audience of ['staging', undefined]) expect(verdictOf(payout, receipt, { audience }).kind).toBe('refused');
  const staging = KEYRING.for({ audience: 'staging', acceptsUnbound: () => true });
  const message = expect.stringContaining('it is signed for "test", and this is "staging"');
  expect(verdictOf(payout, receipt, {}, PLATFORM, staging)).toMatchObject({ message });
});

const revoked = keyringOf(keyEntry(testKey(1), { revoked: true }), WORKER);
it.each<[string, PaidPayout, string, BoundKeyring?]>([
  ['is not signed', unsigned, 'it is not signed'],
  ['was altered since', { ...payout, amount: '13' }, 'is not over this payout'],
  ['holds a text of two lines', { ...payout, addressTo: 'a\nb' }, 'addressTo'],
  ['has a txhash of two lines', { ...payout, txhash: 'a\nb' }, 'txhash'],
  [
    'is of another environment',
    { ...unsigned, signed: signIntent(fields, { audience: 'staging' }) },
    'signed for "staging"',
  ],
  [
    'is of none, as earlier versions signed',
    { ...unsigned, signed: signIntent(fields, { audience: undefined }) },
    'no audience',
  ],
  ['was signed with a key that was revoked', payout, 'is revoked', revoked],
])('a worker with a keyring signs nothing for a payout that %s', (_, given, message, keyring = KEYRING) => {
  expect(sign(given, keyring)).toEqual({ kind: 'refused', message: expect.stringContaining(message) });
});

it('a worker without a keyring signs for any payout, and the receipt names no intent where there is none', () => {
  const key = { name: 'worker-1', privateKey: testKey(2) };
  const options = { key, platformId: PLATFORM, audience: TEST_AUDIENCE, keyring: undefined };
  const result = new ReceiptSigner({ ...options, clock: { wallNow: () => NOW } }).sign(unsigned, 'completed');
  expect([verdictOf(unsigned, result).kind, verdictOf(payout, result).kind]).toEqual(['verified', 'refused']);
});
