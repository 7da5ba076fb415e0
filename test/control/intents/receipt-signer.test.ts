import { describe, expect, it } from '@jest/globals';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { ReceiptSigner, type ReceiptResult } from '../../../src/control/intents/receipt.js';
import { type PaidPayout, verifyReceipt } from '../../../src/control/intents/receipt.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';

const PLATFORM_ID = 4242;
const [SHOP, WORKER] = [testKey(1), testKey(2)];
const workerEntry = keyEntry(WORKER, { name: 'worker-1', role: 'worker', person: 'Host 1' });
const KEYRING = keyringOf(keyEntry(SHOP), workerEntry);
const SENT_AT = Date.parse('2030-01-01T00:00:00Z');
const MONTH_MS = 30 * 86_400_000;
const fields = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const unsigned: PaidPayout = { ...fields, attempt: 1, txhash: 'h-1' };
const payout: PaidPayout = {
  ...unsigned,
  signed: new IntentSigner({
    key: { name: 'shop', privateKey: SHOP },
    platformId: PLATFORM_ID,
    audience: TEST_AUDIENCE,
    clock: { wallNow: () => SENT_AT },
  }).sign(fields),
};

function sign(given: PaidPayout, keyring: typeof KEYRING | undefined = KEYRING): ReceiptResult {
  const key = { name: 'worker-1', privateKey: WORKER };
  const clock = { wallNow: () => SENT_AT + MONTH_MS };
  return new ReceiptSigner({ key, platformId: PLATFORM_ID, audience: TEST_AUDIENCE, keyring, clock }).sign(
    given,
    'completed',
  );
}

function verifies(given: PaidPayout, result: ReceiptResult, platformId = PLATFORM_ID): boolean {
  if (result.kind === 'refused') throw new Error(result.message);
  return (
    verifyReceipt(platformId, { ...given, state: 'completed', receipt: result.receipt }, KEYRING).kind === 'verified'
  );
}

describe('a worker with a keyring', () => {
  it('signs for a payout whose own signature was good when it was sent, also after that ended', () => {
    expect(verifies(payout, sign(payout))).toBe(true);
  });

  it('signs for one environment only', () => {
    const result = sign(payout);
    if (result.kind === 'refused') throw new Error(result.message);
    for (const audience of ['staging', undefined]) {
      const receipt = { ...result.receipt, audience };
      expect(verifyReceipt(PLATFORM_ID, { ...payout, state: 'completed', receipt }, KEYRING).kind).toBe('refused');
    }
    const staging = KEYRING.for({ audience: 'staging', acceptsUnbound: () => true });
    expect(
      verifyReceipt(PLATFORM_ID, { ...payout, state: 'completed', receipt: result.receipt }, staging),
    ).toMatchObject({
      message: expect.stringContaining('it is signed for "test", and this is "staging"'),
    });
  });

  it('signs nothing for a payout of another environment, nor of none, as earlier versions signed', () => {
    for (const audience of ['staging', undefined]) {
      const clock = { wallNow: () => SENT_AT };
      const key = { name: 'shop', privateKey: SHOP };
      const foreign = new IntentSigner({ key, platformId: PLATFORM_ID, audience: audience as string, clock }).sign(
        fields,
      );
      expect(sign({ ...unsigned, signed: foreign })).toMatchObject({ kind: 'refused' });
    }
  });

  it('signs for one account only', () => {
    expect(verifies(payout, sign(payout), PLATFORM_ID + 1)).toBe(false);
  });

  it.each([
    ['is not signed', unsigned, 'it is not signed'],
    ['was altered since', { ...payout, amount: '13' }, 'is not over this payout'],
    ['holds a text of two lines', { ...payout, addressTo: 'a\nb' }, 'addressTo'],
    ['has a txhash of two lines', { ...payout, txhash: 'a\nb' }, 'txhash'],
  ])('signs nothing for a payout that %s', (_name, given, message) => {
    expect(sign(given)).toEqual({ kind: 'refused', message: expect.stringContaining(message) });
  });

  it('signs nothing where the producer’s key was revoked', () => {
    expect(sign(payout, keyringOf(keyEntry(SHOP, { revoked: true }), workerEntry))).toMatchObject({ kind: 'refused' });
  });
});

describe('a worker without a keyring', () => {
  const signFreely = (given: PaidPayout): ReceiptResult => {
    const key = { name: 'worker-1', privateKey: WORKER };
    const clock = { wallNow: () => SENT_AT };
    return new ReceiptSigner({ key, platformId: PLATFORM_ID, audience: TEST_AUDIENCE, keyring: undefined, clock }).sign(
      given,
      'completed',
    );
  };

  it('signs for any payout, and the receipt names no intent where there is none', () => {
    const result = signFreely(unsigned);
    expect(verifies(unsigned, result)).toBe(true);
    expect(verifies(payout, result)).toBe(false);
  });
});
