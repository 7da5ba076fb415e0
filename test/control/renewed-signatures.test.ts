import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { hashIntent, intentOf } from '../../src/control/intents/intent.js';
import { addApproval } from '../../src/control/operator/store-approval.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import type { IntentSignature } from '../../src/ledger/control-record.js';
import type { NewPayout, PayoutInput } from '../../src/ledger/payout.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { openTestKeys, type TestKeys } from './support/key-files.js';
import { PAYMENT } from './support/signed.js';
import { TEST_AUDIENCE } from './support/keys.js';
import { IntentSigner } from './support/sign-at-once.js';

/** Someone who may enqueue, and has no key, brings a signature for a payout that its owner signed. */

let account: TestAccount;
let keys: TestKeys;
let signer: IntentSigner;
const signed = (given: NewPayout): NewPayout => ({ ...given, signed: signer.sign(given) });
let keysFile: string;
let payout: NewPayout;
beforeEach(async () => {
  account = openTestAccount();
  keys = await openTestKeys();
  const shop = await keys.makeKey('shop');
  keysFile = await keys.writeKeyring({ name: 'shop', role: 'producer', person: 'sam', public: shop.public });
  const key = { name: 'shop', privateKey: shop.privateKey };
  signer = new IntentSigner({ key, platformId: account.platformId, audience: TEST_AUDIENCE, clock: account.clock });
  payout = signed(aPayout('p'));
  await account.ledger.enqueue([payout]);
  const intent = payout.signed && hashIntent(intentOf(account.platformId, payout, payout.signed));
  const said = { payoutId: 'p', intent: intent ?? '', decision: 'approve', reason: '', by: 'ann', ...PAYMENT } as const;
  await addApproval(account.ledger, {
    audience: TEST_AUDIENCE,
    ...said,
    at: iso(0),
    expiresAt: iso(DAY_MS),
    signature: 's',
  });
});
afterEach(async () => {
  await account.close();
  await keys.close();
});

const DAY_MS = 86_400_000;
const iso = (inMs: number): string => new Date(account.clock.wallNow() + inMs).toISOString();
const junk = (issuedAt: string): NewPayout => ({
  ...aPayout('p'),
  signed: { key: 'shop', signature: 'A'.repeat(86), audience: TEST_AUDIENCE, issuedAt, expiresAt: iso(8 * DAY_MS) },
});
const bring = async (given: NewPayout): Promise<unknown> => account.ledger.enqueue([given]);
const owners = (): NewPayout => {
  const own = signed(aPayout('p'));
  return { ...own, signed: { ...(own.signed as IntentSignature), isVerified: true } };
};
const stored = async () => account.ledger.require('p');
const expectOwners = async (): Promise<void> => {
  const { signed, approvals } = await stored();
  expect([signed?.signature, approvals?.length]).toEqual([payout.signed?.signature, 1]);
};

it.each([
  ['of the far future', '9998-01-01T00:00:00.000Z'],
  ['a second ahead', undefined],
])('a signature that nobody verified replaces none that may count, nor its approvals: %s', async (_, issuedAt) => {
  await bring(junk(issuedAt ?? iso(1_000)));
  await expectOwners();
});

it('a junk signature that came first is replaced by the owner, also if it is of the future', async () => {
  for (const issuedAt of ['9998-01-01T00:00:00.000Z', iso(1_000)]) {
    await account.redis.hset(account.connection.keys.payout('p'), { iat: issuedAt, sig: 'A'.repeat(64) });
    // What the worker finds.
    const hold = { kind: 'signature', reason: 'bad_signature', message: 'm', isTampering: true } as const;
    await account.sender.holdPayout('p', 0, hold);
    account.clock.advance(1_100);
    const own = owners();
    await bring(own);
    expect(await stored()).toMatchObject({ state: 'queued', signed: { signature: own.signed?.signature } });
  }
});

it('the owner renews a signature that may still count; an older one does not return', async () => {
  account.clock.advance(5);
  const own = owners();
  await bring(own);
  expect(await stored()).toMatchObject({ signed: { signature: own.signed?.signature } });
  expect(await stored()).not.toHaveProperty('approvals');
  await bring(payout);
  expect(await stored()).toMatchObject({ signed: { signature: own.signed?.signature } });
});

it('where there is a keyring, a signature that does not count is refused before anything is stored', async () => {
  const { connection, platformId } = account;
  const { clock } = account;
  const options = { platformId, connection: connection.redis, keysFile, audience: TEST_AUDIENCE, clock };
  const producer = new PayoutProducer(options);
  const strip = ({ signed, ...rest }: NewPayout): PayoutInput => {
    const { key, signature, audience, issuedAt, expiresAt } = signed as IntentSignature;
    return { ...rest, key, signature, audience, issuedAt, expiresAt };
  };
  try {
    const refusal = /signature: does not count: The signature of key "shop" is not over this payout/;
    const other = { ...junk(iso(0)), payoutId: 'q' };
    await expect(producer.enqueue(strip(other))).rejects.toThrow(refusal);
    await expect(producer.enqueueMany([strip(signed(aPayout('r'))), strip(other)])).rejects.toThrow(
      /^\[1\]\.signature/,
    );
    await expect(producer.enqueue(strip(junk(iso(1_000))))).rejects.toThrow(refusal);
    expect(await account.ledger.get('q')).toBeUndefined();
    expect(await account.ledger.get('r')).toBeUndefined();
    await expectOwners();
    account.clock.advance(5);
    const own = signed(aPayout('p'));
    await producer.enqueue(strip(own));
    expect(await stored()).toMatchObject({ signed: { signature: own.signed?.signature } });
  } finally {
    await producer.close();
  }
});
