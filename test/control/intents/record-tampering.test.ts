import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { intentOf } from '../../../src/control/intents/intent.js';
import { verifyIntent } from '../../../src/control/intents/verify-intent.js';
import { pairsToRecord, parseRecord, toRecordFields, type PayoutRecord } from '../../../src/ledger/payout-record.js';
import { payoutInputSchema } from '../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';

/** Who writes to Redis alters the stored record; the worker verifies what it reads of it. */

const PLATFORM = 4242;
const NOW = Date.parse('2026-11-21T20:00:00.000Z');
const METADATA = { order: 77, note: 'größer', list: [1, 'b'] };
const keyring = keyringOf(
  keyEntry(testKey(1)),
  keyEntry(testKey(2), { name: 'shop-2', person: 'Shop 2' }),
  keyEntry(testKey(3), { name: 'olga', role: 'operator', person: 'Olga' }),
);

const input = payoutInputSchema.parse({
  payoutId: 'invoice-77',
  paymentId: 6,
  amount: '12.5',
  addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
  symbol: 'USD',
  reference: 'INV 77',
  notBefore: '2026-11-22T08:00:00Z',
  priority: 3,
  batch: 'october',
  metadata: METADATA,
});
/** Each only with what it needs, so that what is optional can be added. */
const plainInput = payoutInputSchema.parse({ payoutId: 'plain', paymentId: 6, amount: '1', addressTo: 'wallet' });

function store(payout: typeof input, requestedBy?: string): PayoutRecord {
  const clock = { wallNow: () => NOW };
  const metadata = payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata);
  const signed = new IntentSigner({
    key: { name: 'shop', privateKey: testKey(1) },
    platformId: PLATFORM,
    audience: TEST_AUDIENCE,
    clock,
  }).sign(payout, {
    metadata,
    requestedBy,
  });
  const fields = pairsToRecord(toRecordFields({ ...payout, signed }));
  return { ...fields, state: 'queued', attempt: '0', n: '1', h0: `${NOW}\tqueued` };
}

function verifies(payoutId: string, record: PayoutRecord): boolean {
  let payout;
  try {
    payout = parseRecord(payoutId, record);
  } catch {
    return false;
  }
  const signature = payout.signed;
  if (signature === undefined) return false;
  return verifyIntent(intentOf(PLATFORM, payout, signature), signature, keyring, NOW + 1000).kind === 'verified';
}

const record = store(input, 'Alice');
const plain = store(plainInput);
const SIGNED = [
  ...['paymentId', 'amount', 'addressTo', 'symbol', 'reference', 'notBefore', 'metadata', 'requestedBy'],
  ...['key', 'sig', 'sigRest', 'iat', 'exp', 'aud'],
] as const;
const NOT_SIGNED = ['priority', 'batch', 'state', 'attempt', 'n', 'h0'];

beforeAll(() => {
  expect([verifies('invoice-77', record), verifies('plain', plain)]).toEqual([true, true]);
});

it('every field of a record is either signed, or known not to be', () => {
  expect(Object.keys(record).sort()).toEqual([...SIGNED, ...NOT_SIGNED].sort());
});

describe('a record that was altered', () => {
  const ALTERED: Readonly<Record<(typeof SIGNED)[number], readonly string[]>> = {
    paymentId: ['7', '6.0', ' 6', '6 ', '06', '6e0', '+6', '0x6', '6n', '', '-6', 'NaN', '６', '6\n'],
    amount: ['12.50', ' 12.5', '12.5 ', '12.5\n', '1.25e1', '012.5', '125', '12,5', '+12.5', '', '12.5\u0000'],
    addressTo: ['TXYZopYRdj2D9XRtbG411XZZ3kM5VkAebf', 'thief', '', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf '],
    symbol: ['EUR', 'usd', '', 'USD ', 'USD\nreference=x'],
    reference: ['INV 78', 'INV  77', 'INV\u00a077', ''],
    notBefore: ['2026-11-22T08:00:00Z', '2026-11-22T08:00:00.001Z', '', '2026-11-22T09:00:00.000+01:00'],
    metadata: [
      JSON.stringify(METADATA, null, 1),
      JSON.stringify({ note: 'größer', order: 77, list: [1, 'b'] }),
      JSON.stringify(METADATA).replace('ö', '\\u00f6'),
      `${JSON.stringify(METADATA)} `,
      JSON.stringify(METADATA).replace('77', '77.0'),
      ...['null', '', '{'],
    ],
    requestedBy: ['Bob', 'alice', '', 'Alice '],
    key: ['shop-2', 'olga', 'nobody', '', 'Shop', 'shop\n', '__proto__'],
    sig: [record['sig']?.slice(1) ?? '', '', ` ${record['sig'] ?? ''}`, `A${record['sig']?.slice(1) ?? ''}`],
    sigRest: [`${record['sigRest'] ?? ''}=`, '', `${record['sigRest'] ?? ''}\n`, record['sigRest']?.slice(1) ?? ''],
    iat: ['2026-11-21T20:00:00Z', '2026-11-21T19:59:59.999Z', '', 'now', `${NOW}`],
    aud: ['Test', 'test ', 'staging', '', 'test\u0000', 'test\naudience=staging'],
    exp: ['2026-11-28T20:00:00Z', '2027-11-28T20:00:00.000Z', '', 'never', '+275760-09-13T00:00:00.000Z'],
  };

  it.each(SIGNED.flatMap((field) => ALTERED[field].map((text) => [field, text] as const)))('%s = %j', (field, text) => {
    expect(text).not.toBe(record[field]);
    expect(verifies('invoice-77', { ...record, [field]: text })).toBe(false);
  });

  it('any other text of a signed field', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SIGNED), fc.string({ unit: 'binary' }), (field, text) => {
        fc.pre(text !== record[field]);
        expect(verifies('invoice-77', { ...record, [field]: text })).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it('one character of a signed field altered, added or left out', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SIGNED), fc.nat(), fc.constantFrom('', ' ', '0', 'a', '='), (field, at, text) => {
        const given = record[field] ?? '';
        const index = at % (given.length + 1);
        for (const cut of [0, 1]) {
          const altered = given.slice(0, index) + text + given.slice(index + cut);
          if (altered !== given) expect(verifies('invoice-77', { ...record, [field]: altered })).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each(SIGNED)('%s left out', (field) => {
    expect(verifies('invoice-77', Object.fromEntries(Object.entries(record).filter(([name]) => name !== field)))).toBe(
      false,
    );
  });

  it.each(['symbol', 'reference', 'notBefore', 'metadata', 'requestedBy'])('%s added', (field) => {
    for (const text of ['', ' ', '0', 'USD', '""', 'null', '2026-11-22T08:00:00.000Z']) {
      expect(verifies('plain', { ...plain, [field]: text })).toBe(false);
    }
  });

  it('copied under another payoutId, or to another account', () => {
    for (const payoutId of ['invoice-78', 'INVOICE-77', 'invoice-77 ', '', 'plain']) {
      expect(verifies(payoutId, record)).toBe(false);
    }
    const payout = parseRecord('invoice-77', record);
    const signature = payout.signed;
    if (signature === undefined) throw new Error('no signature');
    expect(verifyIntent(intentOf(4243, payout, signature), signature, keyring, NOW).kind).toBe('refused');
  });
});

it.each([
  ['priority', '1'],
  ['batch', 'november'],
  ['state', 'unknown'],
  ['attempt', '3'],
  ['round', '2'],
  ['h0', `${NOW + 1}\tqueued`],
  ['message', 'what the gateway said'],
  ['txhash', 'abc'],
])('%s is not signed and may change', (field, text) => {
  expect(verifies('invoice-77', { ...record, [field]: text })).toBe(true);
});
