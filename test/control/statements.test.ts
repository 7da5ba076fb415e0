import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Act, ACT_NAMES, formatAct } from '../../src/control/approvals/act.js';
import { formatApproval } from '../../src/control/approvals/approval.js';
import { formatIntent, type Intent, intentOf, intentOfProof, proofOf } from '../../src/control/intents/intent.js';
import { formatReceipt, type Receipt } from '../../src/control/intents/receipt.js';
import { hashText, StatementError } from '../../src/control/intents/statement.js';
import { verifyIntent } from '../../src/control/intents/verify-intent.js';
import { publicKeyOf, verifyText } from '../../src/control/keys/ed25519.js';
import { isSignedBy, type KeyringKey } from '../../src/control/keys/keyring.js';
import type { Approval } from '../../src/ledger/control-record.js';
import { pairsToRecord, parseRecord, type PayoutRecord, toRecordFields } from '../../src/ledger/payout-record.js';
import { payoutInputSchema } from '../../src/ledger/payout.js';
import { keyEntry, keyringOf, privateKeyOf, testKey } from './support/keys.js';
import { entryOf, NOW, PLATFORM, signIntent } from './support/signed.js';
import { readVectors } from './support/vectors.js';
import { signText } from './support/sign-at-once.js';

/** What a forger would put into a value: names and signs of other lines, text that looks equal. */
const spice = fc.constantFrom(
  ...['=', '=amount=', 'amount', 'é', 'e\u0301', '💸', ' ', '\\n', '%0A', '0', '1', '.', 'symbol='],
);
const line = fc
  .array(fc.oneof(spice, fc.string({ unit: 'grapheme' })), { maxLength: 4 })
  .map((parts) => parts.join(''));
const value = line.filter((text) => !/[\p{Cc}\u2028\u2029\p{Surrogate}]/u.test(text));
const filled = value.filter((text) => text !== '');
const optional = fc.option(filled, { nil: undefined });
const audience = filled;
const number = fc.maxSafeNat();

const intents: fc.Arbitrary<Intent> = fc.record({
  ...{ audience, platformId: number, payoutId: value, paymentId: number, amount: value, addressTo: value },
  ...{ symbol: optional, reference: optional, metadata: fc.option(value, { nil: undefined }), notBefore: optional },
  ...{ requestedBy: optional, issuedAt: value, expiresAt: value },
});
const acts: fc.Arbitrary<Act> = fc.record({
  ...{ audience, act: fc.constantFrom(...ACT_NAMES), payoutId: value, intent: value },
  ...{ attempt: fc.option(number, { nil: undefined }), reason: value, by: value, at: value, expiresAt: value },
});
const receipts: fc.Arbitrary<Receipt> = fc.record({
  ...{
    audience,
    payoutId: value,
    intent: value,
    state: value,
    attempt: number,
    gatewayId: value,
    txhash: value,
    at: value,
  },
});

const { cases, python } = readVectors();
const privateKey = privateKeyOf(cases.seed);
const publicKey = publicKeyOf(Buffer.from(python.publicKey, 'hex'));
const isEqual = (one: object, other: object) =>
  Object.keys(one).every((field) => Reflect.get(one, field) === Reflect.get(other, field));

describe.each([
  ['intent', intents, (fields: unknown) => formatIntent(fields as Intent)],
  ['act', acts, (fields: unknown) => formatAct(PLATFORM, fields as Act)],
  ['receipt', receipts, (fields: unknown) => formatReceipt(PLATFORM, fields as Receipt)],
] as const)('the bytes of an %s', (_, arbitrary, format) => {
  const fields = arbitrary as fc.Arbitrary<object>;

  it('change with every field, and the signature with them, and name the same fields in every case', () => {
    const names = (text: string) => text.split('\n').map((entry) => entry.split('=', 1)[0] ?? '');
    fc.assert(
      fc.property(fields, fields, (one, other) => {
        const [text, signature] = [format(one), signText(format(one), privateKey)];
        expect(verifyText(text, signature, publicKey)).toBe(true);
        for (const field of Object.keys(one)) {
          const altered: object = { ...one, [field]: Reflect.get(other, field) as unknown };
          if (Reflect.get(one, field) === Reflect.get(altered, field)) continue;
          expect(verifyText(format(altered), signature, publicKey)).toBe(false);
          expect(names(format(altered))).toEqual(names(text));
        }
        expect(format(one) === format(other)).toBe(isEqual(one, other));
      }),
      { numRuns: 200 },
    );
  });

  it('do not exist where a value is more than one line, or has no bytes of its own', () => {
    const bad = fc.constantFrom(
      ...['\n', '\r', '\u0000', '\t', '\u001f', '\u007f', '\u0085', '\u009f', '\u2028', '\u2029'],
      ...['\ud800', '\udfff', '\udc00\ud800'],
    );
    fc.assert(
      fc.property(fields, bad, value, value, (one, character, before, behind) => {
        for (const [field, given] of Object.entries(one)) {
          if (typeof given !== 'string' || field === 'metadata') continue;
          expect(() => format({ ...one, [field]: before + character + behind })).toThrow(StatementError);
        }
      }),
    );
  });
});

it('an optional field that is there and empty is no intent: its bytes would be those of one without it', () => {
  const needed = {
    audience: 'a',
    payoutId: 'a',
    paymentId: 6,
    amount: '1',
    addressTo: 'w',
    issuedAt: '',
    expiresAt: '',
  };
  for (const field of ['symbol', 'reference', 'notBefore', 'requestedBy'])
    expect(() => formatIntent({ platformId: 1, ...needed, [field]: '' })).toThrow(StatementError);
});

it('what a journal keeps of a signature makes the very bytes again, however its times are written', () => {
  const start = '2030-01-31T09:00:00';
  const time = fc.constantFrom(...['.000Z', 'Z', '.5Z', '.12Z'].map((end) => start + end));
  const payment = fc.record({
    ...{ payoutId: filled, paymentId: fc.nat(), amount: filled, addressTo: filled },
    ...{ symbol: optional, reference: optional, notBefore: optional },
  });
  const signed = fc.record({ audience, metadata: optional, requestedBy: optional, issuedAt: time, expiresAt: time });
  fc.assert(
    fc.property(payment, signed, (fields, rest) => {
      const proof = proofOf(fields, { key: 'shop', signature: 's', ...rest });
      const times = { issuedAt: Date.parse(rest.issuedAt), expiresAt: Date.parse(rest.expiresAt) };
      const stored = JSON.parse(JSON.stringify(proof)) as typeof proof;
      const { payoutId, paymentId, amount, addressTo, symbol } = fields;
      const again = intentOfProof(PLATFORM, { payoutId, paymentId, amount, addressTo, symbol }, stored, times);
      expect(formatIntent(again)).toBe(formatIntent(intentOf(PLATFORM, fields, rest)));
    }),
  );
});

// Who writes to Redis alters the stored record; the worker verifies what it reads of it.
const METADATA = JSON.stringify({ order: 77, note: 'größer', list: [1, 'b'] });
const keyring = keyringOf(keyEntry(testKey(1)), entryOf(2, 'shop-2', 'producer'), entryOf(3, 'olga', 'operator'));

function store(given: object, requestedBy?: string): PayoutRecord {
  const needed = { paymentId: 6, amount: '12.5', addressTo: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' };
  const payout = payoutInputSchema.parse({ ...needed, ...given });
  const metadata = payout.metadata === undefined ? undefined : JSON.stringify(payout.metadata);
  const signed = signIntent(payout, { metadata, requestedBy });
  const fields = pairsToRecord(toRecordFields({ ...payout, signed }));
  return { ...fields, state: 'queued', attempt: '0', n: '1', h0: `q${NOW.toString(36)}` };
}

function verifies(payoutId: string, record: PayoutRecord, platformId = PLATFORM) {
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
  const isHeld = (field: string, text: string) => {
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
  const unsigned = { priority: '1', batch: 'november', state: 'unknown', attempt: '3', round: '2', gatewayId: 'abc' };
  expect(verifies('invoice-77', { ...record, ...unsigned, h0: `q${(NOW + 1).toString(36)}` })).toBe(true);
});

const FORMATS = {
  intent: (_: number, given: unknown) => formatIntent(given as Intent),
  act: (platformId: number, given: unknown) => formatAct(platformId, given as Act),
  approval: (platformId: number, given: unknown) => formatApproval(platformId, given as Approval),
  receipt: (platformId: number, given: unknown) => formatReceipt(platformId, given as Receipt),
};
const ours = cases.statements.map(({ name, kind, audience, platformId, fields }) => {
  const text = FORMATS[kind](platformId, { audience, platformId, ...fields });
  return { name, text, hash: hashText(text), signature: signText(text, privateKey) };
});
const [sshKey, skKey] = [python.sshPublic, python.skPublic].map(
  (text) => keyringOf(keyEntry(privateKey, { public: text })).keys[0],
) as [KeyringKey, KeyringKey];

describe.each(ours.map((statement, index) => ({ ...statement, index })))('$name', ({ index, text, signature }) => {
  const other = ours[(index + 1) % ours.length]?.text ?? '';

  it('has the same bytes, hash and signature in Python', () => {
    expect(python.statements[index]).toMatchObject(ours[index] ?? {});
    expect([text, other].map((each) => verifyText(each, signature, publicKey))).toEqual([true, false]);
  });

  it('is signed by ssh-keygen and by a hardware key, over this text and with this key only', () => {
    const { ssh = '', sk = '' } = python.statements[index] ?? {};
    expect([isSignedBy(sshKey, text, ssh), isSignedBy(skKey, text, sk)]).toEqual([true, true]);
    expect([isSignedBy(sshKey, other, ssh), isSignedBy(skKey, other, sk)]).toEqual([false, false]);
    expect([isSignedBy(skKey, text, ssh), isSignedBy(sshKey, text, sk)]).toEqual([false, false]);
  });
});

it('a key on hardware does not count untouched, nor by a plain signature', () => {
  const { text = '', signature = '' } = ours[0] ?? {};
  expect([python.skUntouched, signature].map((given) => isSignedBy(skKey, text, given))).toEqual([false, false]);
});

it('docs/control.md shows the bytes that a producer signs', () => {
  const page = readFileSync(new URL('../../docs/control.md', import.meta.url), 'utf8');
  const [shown = ''] = /^payout-queue intent v1\n([\w]+=.*\n)+/m.exec(page) ?? [];
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)?.[1] ?? '';
  const metadata = '{"order":"77"}';
  const intent = {
    ...{ audience: value('audience'), platformId: Number(value('platformId')), payoutId: value('payoutId'), metadata },
    ...{ paymentId: Number(value('paymentId')), amount: value('amount'), addressTo: value('addressTo') },
    ...{ issuedAt: value('issuedAt'), expiresAt: value('expiresAt') },
  };
  expect(formatIntent(intent)).toBe(shown.replace(/<SHA-256 .*>/, hashText(metadata)));
  expect(shown.split('\n')).toHaveLength(14 + 1);
});
