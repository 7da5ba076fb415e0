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
function sign(given: PaidPayout, keyring: BoundKeyring | undefined): ReceiptResult {
  const key = { name: 'worker-1', privateKey: testKey(2) };
  const clock = { wallNow: () => NOW + 30 * DAY_MS };
  const signer = new ReceiptSigner({ key, platformId: PLATFORM, audience: TEST_AUDIENCE, keyring, clock });
  return signer.sign(given, 'completed');
}

function verdictOf(given: PaidPayout, result: ReceiptResult, change: object = {}, platformId = PLATFORM) {
  if (result.kind === 'refused') throw new Error(result.message);
  const receipt = { ...result.receipt, ...change };
  return verifyReceipt(platformId, { ...given, state: 'completed', receipt }, KEYRING);
}

it('a worker signs for a payout whose own signature was good when it was sent, also after that ended', () => {
  const receipt = sign(payout, KEYRING);
  expect(verdictOf(payout, receipt).kind).toBe('verified');
  // For one account and one environment.
  expect(verdictOf(payout, receipt, {}, PLATFORM + 1).kind).toBe('refused');
  for (const audience of ['staging', undefined]) expect(verdictOf(payout, receipt, { audience }).kind).toBe('refused');
});

const signedFor = (audience: string | undefined): PaidPayout => ({
  ...{ ...unsigned, signed: signIntent(fields, { audience }) },
});
it('a worker with a keyring signs nothing for a payout that was not signed, or whose signature does not count', () => {
  const revoked = keyringOf(keyEntry(testKey(1), { revoked: true }), WORKER);
  for (const [given, message, keyring = KEYRING] of [
    [unsigned, 'it is not signed'],
    [{ ...payout, amount: '13' }, 'is not over this payout'],
    [{ ...payout, addressTo: 'a\nb' }, 'addressTo'],
    [{ ...payout, txhash: 'a\nb' }, 'txhash'],
    [signedFor('staging'), 'signed for "staging"'],
    [signedFor(undefined), 'no audience'],
    [payout, 'is revoked', revoked],
  ] as const)
    expect(sign(given, keyring)).toEqual({ kind: 'refused', message: expect.stringContaining(message) });
});

it('a worker without a keyring signs for any payout, and the receipt names no intent where there is none', () => {
  const result = sign(unsigned, undefined);
  expect([verdictOf(unsigned, result).kind, verdictOf(payout, result).kind]).toEqual(['verified', 'refused']);
});
