import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { intentOf } from '../../../src/control/intents/intent.js';
import { verifyIntent } from '../../../src/control/intents/verify-intent.js';
import { pairsToRecord, parseRecord, toRecordFields, type PayoutRecord } from '../../../src/ledger/payout-record.js';
import { payoutInputSchema } from '../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey } from '../support/keys.js';
import { entryOf, NOW, PLATFORM, signIntent } from '../support/signed.js';

/** Who writes to Redis alters the stored record; the worker verifies what it reads of it. */

const METADATA = JSON.stringify({ order: 77, note: 'größer', list: [1, 'b'] });
const keyring = keyringOf(keyEntry(testKey(1)), entryOf(2, 'shop-2', 'producer'), entryOf(3, 'olga', 'operator'));

function store(given: object, requestedBy?: string): PayoutRecord {
  const payout = payoutInputSchema.parse({
    paymentId: 6,
    amount: '12.5',
    addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
    ...given,
  });
  const metadata = payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata);
  const signed = signIntent(payout, { metadata, requestedBy });
  const fields = pairsToRecord(toRecordFields({ ...payout, signed }));
  return { ...fields, state: 'queued', attempt: '0', n: '1', h0: `${NOW}\tqueued` };
}

function verifies(payoutId: string, record: PayoutRecord, platformId = PLATFORM): boolean {
  let payout;
  try {
    payout = parseRecord(payoutId, record);
  } catch {
    return false;
  }
  const { signed } = payout;
  if (signed === undefined) return false;
  return verifyIntent(intentOf(platformId, payout, signed), signed, keyring, NOW + 1000).kind === 'verified';
}

const about = { symbol: 'USD', reference: 'INV 77', notBefore: '2026-11-22T08:00:00Z', priority: 3, batch: 'october' };
const record = store({ payoutId: 'invoice-77', metadata: JSON.parse(METADATA) as object, ...about }, 'Alice');
/** With only what it needs, so that what is optional can be added. */
const plain = store({ payoutId: 'plain' });
const { sig = '', sigRest = '' } = record;

/** What is signed, with texts that are nearly right. */
const SIGNED: Readonly<Record<string, readonly string[]>> = {
  paymentId: ['7', '6.0', ' 6', '6 ', '06', '6e0', '+6', '0x6', '6n', '-6', 'NaN', '６', '6\n'],
  amount: ['12.50', ' 12.5', '12.5 ', '12.5\n', '1.25e1', '012.5', '125', '12,5', '+12.5', '12.5\u0000'],
  addressTo: ['TXYZopYRdj2D9XRtbG411XZZ3kM5VkAebf', 'thief', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf '],
  symbol: ['EUR', 'usd', 'USD ', 'USD\nreference=x'],
  reference: ['INV 78', 'INV  77', 'INV\u00a077'],
  notBefore: ['2026-11-22T08:00:00Z', '2026-11-22T08:00:00.001Z', '2026-11-22T09:00:00.000+01:00'],
  metadata: [
    METADATA.replace(':', ': '),
    METADATA.replace('"order":77,"note":"größer"', '"note":"größer","order":77'),
    METADATA.replace('ö', '\\u00f6'),
    METADATA.replace('77', '77.0'),
    ...[`${METADATA} `, 'null', '{'],
  ],
  requestedBy: ['Bob', 'alice', 'Alice '],
  key: ['shop-2', 'olga', 'nobody', 'Shop', 'shop\n', '__proto__'],
  sig: [sig.slice(1), ` ${sig}`, `A${sig.slice(1)}`],
  sigRest: [`${sigRest}=`, `${sigRest}\n`, sigRest.slice(1)],
  iat: ['2026-11-21T20:00:00Z', '2026-11-21T19:59:59.999Z', 'now', `${NOW}`],
  exp: ['2026-11-28T20:00:00Z', '2027-11-28T20:00:00.000Z', 'never', '+275760-09-13T00:00:00.000Z'],
  aud: ['Test', 'test ', 'staging', 'test\u0000', 'test\naudience=staging'],
};
const NOT_SIGNED = ['priority', 'batch', 'state', 'attempt', 'n', 'h0'];

beforeAll(() => {
  expect([verifies('invoice-77', record), verifies('plain', plain)]).toEqual([true, true]);
});

it('every field of a record is either signed, or known not to be', () => {
  expect(Object.keys(record).sort()).toEqual([...Object.keys(SIGNED), ...NOT_SIGNED].sort());
});

describe('a record that was altered', () => {
  const isHeld = (field: string, text: string): void => {
    if (text !== record[field])
      expect([text, verifies('invoice-77', { ...record, [field]: text })]).toEqual([text, false]);
  };

  it.each(Object.entries(SIGNED))('in %s', (field, texts) => {
    for (const text of ['', ...texts]) isHeld(field, text);
    const without = Object.fromEntries(Object.entries(record).filter(([name]) => name !== field));
    expect(verifies('invoice-77', without)).toBe(false);
  });

  const fields = fc.constantFrom(...Object.keys(SIGNED));

  it('to any other text of a signed field', () => {
    fc.assert(fc.property(fields, fc.string({ unit: 'binary' }), isHeld), { numRuns: 500 });
  });

  it('by one character of a signed field that is altered, added or left out', () => {
    fc.assert(
      fc.property(fields, fc.nat(), fc.constantFrom('', ' ', '0', 'a', '='), (field, at, text) => {
        const given = record[field] ?? '';
        const index = at % (given.length + 1);
        for (const cut of [0, 1]) isHeld(field, given.slice(0, index) + text + given.slice(index + cut));
      }),
      { numRuns: 500 },
    );
  });

  it.each(['symbol', 'reference', 'notBefore', 'metadata', 'requestedBy'])('by %s, added', (field) => {
    for (const text of ['', ' ', '0', 'USD', '""', 'null', '2026-11-22T08:00:00.000Z']) {
      expect([text, verifies('plain', { ...plain, [field]: text })]).toEqual([text, false]);
    }
  });

  it('by a copy under another payoutId, or to another account', () => {
    for (const payoutId of ['invoice-78', 'INVOICE-77', 'invoice-77 ', '', 'plain']) {
      expect([payoutId, verifies(payoutId, record)]).toEqual([payoutId, false]);
    }
    expect(verifies('invoice-77', record, PLATFORM + 1)).toBe(false);
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
