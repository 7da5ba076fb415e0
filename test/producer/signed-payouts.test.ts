import type { KeyObject } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { IntentSigner, PayoutSigner } from '../../src/control/intents/intent-signer.js';
import { intentOf } from '../../src/control/intents/intent.js';
import { verifyIntent, type IntentVerdict } from '../../src/control/intents/verify-intent.js';
import { InvalidConfigError } from '../../src/base/errors.js';
import { payoutInputSchema, type PayoutInput } from '../../src/ledger/payout.js';
import type { PayoutProducer, PayoutProducerOptions } from '../../src/control/payout-producer.js';
import { account, names } from '../ledger/support/use-account.js';
import { payoutInput } from './support/payout-input.js';
import { openProducer, useProducer } from './support/use-producer.js';
import { messageOf } from '../control/support/folder.js';
import { keyringOf, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { DAY_MS, entryOf } from '../control/support/signed.js';

const [privateKey, other] = [testKey(1), testKey(2)];
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const keyring = keyringOf(entryOf(1, 'shop', 'producer'), entryOf(2, 'other', 'producer'));

/** Everything that can be signed. */
const FULL: PayoutInput = payoutInput({
  amount: '12.500',
  addressTo: 'rPT1Sjq:4711 Ünïcode',
  symbol: 'USD',
  reference: '  invoice 77 – “ß” 🎉 ',
  metadata: { b: [1, 1e21, -0, null], '7': 'x\u2028y\ud800', a: { ä: 'ö' } },
  priority: 3,
  batch: 'b-1',
  requestedBy: 'Ann',
});

useProducer();

const KEY = { name: 'shop', privateKey };
const open = (options: Partial<PayoutProducerOptions> = {}): PayoutProducer =>
  openProducer({ signingKey: KEY, audience: TEST_AUDIENCE, ...options });
const unsigned = (): PayoutProducer => open({ signingKey: undefined });
const signerOf = (key = KEY, clock = systemClock): PayoutSigner =>
  new PayoutSigner({ audience: TEST_AUDIENCE, key, platformId: account.platformId, clock });

/** A payout that was signed before, as it comes in a line of JSON. */
function signedBefore(signer: PayoutSigner): PayoutInput {
  const { signed, ...fields } = signer.sign(payoutInputSchema.parse(FULL));
  return JSON.parse(JSON.stringify({ ...fields, ...signed })) as PayoutInput;
}

/** What a worker makes of what Redis holds. */
async function verify(payoutId = 'p-1'): Promise<IntentVerdict> {
  const payout = await account.ledger.require(payoutId);
  const { signed } = payout;
  if (signed === undefined) return verifyIntent({} as never, undefined, keyring, Date.now());
  return verifyIntent(intentOf(account.platformId, payout, signed), signed, keyring, Date.now());
}

/** The machine's clock, so long ago. */
function ago(ms: number): typeof systemClock {
  return Object.create(systemClock, { wallNow: { value: () => Date.now() - ms } }) as typeof systemClock;
}

describe('a producer with a signing key', () => {
  it('signs what the ledger stores, byte for byte', async () => {
    const notBefore = new Date(Date.now() + DAY_MS).toISOString().replace('Z', '+00:00');
    await open().enqueue({ ...FULL, notBefore });
    expect(await verify()).toMatchObject({ kind: 'verified', signer: { name: 'shop' } });
    expect(await account.ledger.get('p-1')).toMatchObject({
      requestedBy: 'Ann',
      signed: { key: 'shop', requestedBy: 'Ann' },
    });
  });

  it('takes the key as PEM too, and signs every payout of many', async () => {
    const inputs = names(3).map((payoutId) => payoutInput({ payoutId }));
    await open({ signingKey: { name: 'shop', privateKey: pem } }).enqueueMany(inputs);
    for (const { payoutId } of inputs) expect(await verify(payoutId)).toMatchObject({ kind: 'verified' });
  });

  it('refuses what would expire before it may be sent, and enqueues nothing', async () => {
    const producer = open();
    const late = { notBefore: new Date(Date.now() + 7 * DAY_MS + 60_000) };
    const many = producer.enqueueMany([payoutInput(), payoutInput({ payoutId: 'p-2', ...late })]);
    await expect(many).rejects.toThrow(
      /^\[1\]\.notBefore: must be less than 7 days from now, .* enqueue it later \(got "/,
    );
    expect((await producer.stats()).queued).toBe(0);
    await unsigned().enqueue(payoutInput(late));
  });

  it('keeps the signature of a payout that was signed before', async () => {
    const line = signedBefore(signerOf({ name: 'other', privateKey: other }));
    await open().enqueue(line);
    expect(await verify()).toMatchObject({ kind: 'verified', signer: { name: 'other' } });
    await unsigned().enqueueMany([{ ...line, payoutId: 'p-2' }]);
    expect(await verify('p-2')).toMatchObject({ fault: 'bad_signature' });
  });
});

/** As an earlier version, or another environment, signed and stored it. */
async function enqueueFormer(audience: string | undefined): Promise<void> {
  const { platformId } = account;
  const former = new IntentSigner({ key: KEY, platformId, audience: audience as string, clock: ago(60_000) });
  const fields = payoutInputSchema.parse(payoutInput());
  await account.ledger.enqueue([{ ...fields, signed: former.sign(fields) }]);
}

describe('enqueueing again', () => {
  it.each<[string, fault: string, PayoutInput, first: () => Promise<unknown>]>([
    ['that has expired', 'expired', FULL, async () => open({ clock: ago(8 * DAY_MS) }).enqueue(FULL)],
    ['that nobody gave', 'unsigned', FULL, async () => unsigned().enqueue(FULL)],
    ['of a version without audiences', 'no_audience', payoutInput(), async () => enqueueFormer(undefined)],
    ['for a long other audience', 'wrong_audience', payoutInput(), async () => enqueueFormer('x'.repeat(200))],
  ])('renews a signature %s; without a key it leaves that as it is', async (_, fault, input, first) => {
    await first();
    expect(await verify()).toMatchObject({ fault, isTampering: false });
    for (const producer of [open(), unsigned()]) {
      expect(await producer.enqueue({ ...input, requestedBy: undefined })).toMatchObject({ created: false });
      expect(await verify()).toMatchObject({ kind: 'verified' });
      expect(await account.ledger.get('p-1')).not.toHaveProperty('requestedBy');
    }
  });

  it('keeps the newer signature where an older one comes again, also where it is held', async () => {
    const older = signedBefore(signerOf(KEY, ago(8 * DAY_MS)));
    await unsigned().enqueue(older);
    await open().enqueue(FULL);
    const { redis, keys } = account.connection;
    for (const state of ['queued', 'held']) {
      await redis.hset(keys.payout('p-1'), 'state', state);
      await unsigned().enqueue(older);
      expect(await verify()).toMatchObject({ kind: 'verified' });
      expect((await account.ledger.get('p-1'))?.state).toBe(state);
    }
  });

  it('leaves a signature alone once a send was begun, after the end, and with other data', async () => {
    const of = (payoutId: string): PayoutInput => ({ ...FULL, payoutId });
    const [sent, ended, other, another] = [of('p0'), of('p1'), of('p2'), of('p3')] as const;
    await open({ clock: ago(8 * DAY_MS) }).enqueueMany([sent, ended, other, another]);
    const { redis, keys } = account.connection;
    await redis.hset(keys.payout(sent.payoutId), 'attempt', '1');
    await account.ledger.change({ payoutId: ended.payoutId, from: 'queued', to: 'cancelled' });
    const changed = [
      { ...other, amount: '13' },
      { ...another, symbol: undefined },
    ];
    const { results } = await open().enqueueMany([sent, ended, ...changed]);
    expect(results.slice(2)).toMatchObject(['amount', 'symbol'].map((name) => ({ kind: 'conflict', fields: [name] })));
    for (const payoutId of names(4)) expect(await verify(payoutId)).toMatchObject({ fault: 'expired' });
  });
});

it('the option audience is required with a signingKey, and has its own rule', () => {
  const attempt = (): PayoutProducer => open({ audience: undefined });
  expect(attempt).toThrow(InvalidConfigError);
  expect(attempt).toThrow(/^audience: is required with signingKey and keysFile: the worker's PAYOUT_AUDIENCE/);
  expect(() => open({ audience: 'my gateway' })).toThrow(/must be 1 to 200 printable characters of ASCII/);
});

it.each<[string, { name: string; privateKey: KeyObject | string }, string]>([
  ['no key', { name: 'shop', privateKey: pem.slice(0, 60) }, 'signingKey.privateKey: holds no private key'],
  ['nothing', { name: 'shop', privateKey: undefined as never }, 'signingKey.privateKey: must be a KeyObject'],
  ['the key as its name', { name: pem, privateKey: pem }, 'signingKey.name: must be 1 to 32 of'],
])('the option signingKey is refused with %s, and never shown', (_what, signingKey, message) => {
  const attempt = (): PayoutProducer => open({ signingKey });
  expect(attempt).toThrow(InvalidConfigError);
  expect(attempt).toThrow(message);
  expect(messageOf(attempt)).not.toContain(pem.split('\n')[1]?.slice(0, 20));
});
