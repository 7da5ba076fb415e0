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
  const needed = { paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
  const payout = payoutInputSchema.parse({ ...needed, ...given });
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

/** What is signed, with texts that are nearly right and that parsers take. */
const SIGNED: Readonly<Record<string, readonly string[]>> = {
  paymentId: ['1', '06', '6e0', '+6', '6.0', '0x6', 'NaN', '６', '6\n'],
  ...{
    amount: ['012.5', '12,5', '+12.5', '12.50', '12.5 ', '1.25e1', '-5'],
    addressTo: ['thief', 'TXYZOPYRDJ2D9XRTBG411XZZ3KM5VKAEBF', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf:1'],
    symbol: ['usd', 'EUR'],
    reference: ['INV\u00a077', 'INV 77\naddressTo=thief'],
    requestedBy: ['Mallory'],
  },
  notBefore: ['2026-11-22T08:00:00Z', '2026-11-22T09:00:00.000+01:00'],
  metadata: [METADATA.replace('ö', '\\u00f6'), METADATA.replace('77', '77.0'), 'null', '{'],
  ...{ key: ['shop-2', 'olga', 'Shop', '__proto__'], sig: [sig.slice(1)], sigRest: [`${sigRest}=`], aud: ['Test'] },
  ...{ iat: ['2026-11-21T20:00:00Z', `${NOW}`], exp: ['2026-11-28T20:00:00Z', '+275760-09-13T00:00:00.000Z'] },
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

  it('by one character of a signed field that is altered, added or left out', () => {
    const fields = fc.constantFrom(...Object.keys(SIGNED));
    fc.assert(
      fc.property(fields, fc.nat(), fc.constantFrom('', ' ', '0', 'a', '=', '\u0000'), (field, at, text) => {
        const given = record[field] ?? '';
        const index = at % (given.length + 1);
        for (const cut of [0, 1]) isHeld(field, given.slice(0, index) + text + given.slice(index + cut));
      }),
      { numRuns: 500 },
    );
  });

  it('by an optional field that is added', () => {
    for (const field of ['symbol', 'reference', 'notBefore', 'metadata', 'requestedBy']) {
      for (const text of ['', ' ', '0', 'USD', '""', 'null', '2026-11-22T08:00:00.000Z'])
        expect([field, text, verifies('plain', { ...plain, [field]: text })]).toEqual([field, text, false]);
    }
  });
});

it('what is not signed may change', () => {
  const unsigned = { priority: '1', batch: 'november', state: 'unknown', attempt: '3', round: '2', txhash: 'abc' };
  expect(verifies('invoice-77', { ...record, ...unsigned, h0: `${NOW + 1}\tqueued` })).toBe(true);
});
