import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { batchField, lineField, payoutInputSchema, toLine } from '../../src/ledger/payout.js';
import {
  differingFields,
  pairsToRecord,
  parseRecord,
  type PayoutRecord,
  toRecordFields,
} from '../../src/ledger/payout-record.js';
import { SCRIPT_NAMES, type ScriptName } from '../../src/ledger/ledger-scripts.js';
import { parseRejection, type RejectingScript, REJECTIONS } from '../../src/ledger/sender-ledger.js';
import { payoutInput } from '../producer/support/payout-input.js';
import { aPayout } from './support/a-payout.js';
import { type PayoutState, STATE_CODE } from '../../src/ledger/states.js';

const SIGNED = {
  ...{ key: 'shop', signature: `${'a'.repeat(85)}A` },
  ...{ issuedAt: '2030-01-01T00:00:00.000Z', expiresAt: '2030-01-08T00:00:00.000Z', audience: 'test' },
};

function problemsOf(extra: object) {
  const { error } = payoutInputSchema.safeParse({ ...payoutInput(), ...extra });
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`);
}

it('payoutInputSchema takes the least that is needed, and refuses what it does not know', () => {
  expect(payoutInputSchema.parse(payoutInput())).toEqual(payoutInput());
  expect(problemsOf({ adress: 'typo' })).toHaveLength(1);
});

const TIME = 'notBefore must be a Date or a time such as 2030-01-31T09:00:00Z';
it.each([
  [{ priority: 1 }, []],
  [{ priority: 2_097_152 }, []],
  [{ priority: 0 }, ['priority must be at least 1']],
  [{ priority: 2_097_153 }, ['priority must be at most 2097152']],
  [{ notBefore: 'tomorrow' }, [TIME]],
  [{ reference: ' ' }, ['reference must not be empty']],
  [{ metadata: undefined, batch: 'b' }, []],
  [{ metadata: () => 1 }, ['metadata must be JSON']],
  [{ metadata: 'x'.repeat(4_094) }, []],
  [{ metadata: 'x'.repeat(4_095) }, ['metadata must be at most 4096 bytes as JSON']],
  [{ metadata: 'é'.repeat(2_048) }, ['metadata must be at most 4096 bytes as JSON']],
])('payoutInputSchema has a rule for %j', (extra, problems) => {
  expect(problemsOf(extra)).toEqual(problems);
});

it('payoutInputSchema keeps the signature of a payout that was signed before in a field of its own', () => {
  const given = { ...payoutInput(), requestedBy: 'Ann' };
  const signed = { ...SIGNED, requestedBy: 'Ann' };
  expect(payoutInputSchema.parse({ ...given, ...SIGNED })).toEqual({ ...given, signed });
});

it.each([
  ...Object.keys(SIGNED).map((name): [object, RegExp] => [
    { [name]: undefined },
    new RegExp(`^${name} is missing: of a`),
  ]),
  [{ signature: SIGNED.signature.slice(1) }, /^signature .*86 characters/],
  // The same 64 bytes to a lenient decoder.
  [{ signature: `${'a'.repeat(85)}B` }, /^signature /],
  [{ key: '-x' }, /^key must be 1 to 32/],
  [{ issuedAt: '2030-01-01T00:00:00Z' }, /^issuedAt must be a time with milliseconds, in UTC/],
  [{ expiresAt: '2030-02-31T00:00:00.000Z' }, /^expiresAt /],
  [{ expiresAt: SIGNED.issuedAt }, /^expiresAt must be after issuedAt/],
  [{ notBefore: SIGNED.expiresAt }, /^notBefore must be before expiresAt/],
])('payoutInputSchema refuses a signed payout with %j', (changes, problem) => {
  expect(problemsOf({ ...SIGNED, ...changes })).toEqual([expect.stringMatching(problem)]);
});

it.each(['payoutId', 'addressTo', 'symbol', 'reference', 'amount', 'notBefore', 'requestedBy', 'key'])(
  'payoutInputSchema refuses what cannot be signed in the %s of every payout',
  (field) => {
    for (const text of ['a\nb', 'a\u0000b', 'a\u0085b', 'a\u2028b', 'a\u2029b', 'a\ud800b', '\udc00']) {
      expect([text, problemsOf({ [field]: text })]).toEqual([
        text,
        expect.arrayContaining([expect.stringMatching(`^${field} `)]),
      ]);
    }
  },
);

describe('a text of one line', () => {
  it('is trimmed, and has 200 characters', () => {
    expect(lineField.parse('  invoice 7 ')).toBe('invoice 7');
    expect(lineField.safeParse('x'.repeat(200)).success).toBe(true);
    expect(lineField.safeParse('x'.repeat(201)).error?.issues[0]?.message).toBe('must have at most 200 characters');
    expect(lineField.safeParse('a\tb').error?.issues[0]?.message).toBe('must be one line without control characters');
  });

  it('is, as the name of a batch, 1 to 64 of its characters and nothing around them', () => {
    for (const text of ['b', 'A-Z.a_z,0+9/=', 'x'.repeat(64)]) expect(batchField.parse(text)).toBe(text);
    for (const text of ['', 'a b', ' ab', 'ab ', 'a:b', 'x'.repeat(65)]) {
      expect(batchField.safeParse(text).error?.issues[0]?.message).toBe('must be 1 to 64 of A-Z a-z 0-9 + / = - . , _');
    }
    expect(batchField.safeParse(7).error?.issues[0]?.message).toBe('must be a string');
  });

  it('is made of any text, and shows where it was cut after 300 characters', () => {
    expect(toLine(' a\r\n\tb\u0000c ')).toBe('a b c');
    expect(toLine('x'.repeat(300))).toBe('x'.repeat(300));
    expect(toLine('x'.repeat(301))).toBe(`${'x'.repeat(299)}…`);
  });
});

describe('a stored payout', () => {
  const AT = '2030-01-01T00:00:00.000Z';
  const parse = (state: PayoutState, more: PayoutRecord = {}) =>
    parseRecord('p', {
      state,
      attempt: '0',
      n: '1',
      h0: `${STATE_CODE[state]}${Date.parse(AT).toString(36)}`,
      ...more,
    });
  const fieldsOf = (given = {}) => toRecordFields({ ...aPayout('p'), ...given });

  it('has no fields for what was not given', () => {
    const fields = fieldsOf({ symbol: undefined, metadata: undefined });
    expect(fields).toEqual(['paymentId', '7', 'amount', '12.5', 'addressTo', 'wallet-1']);
    expect(parse('queued', pairsToRecord(fields))).toStrictEqual({
      ...{ payoutId: 'p', state: 'queued', paymentId: 7, amount: '12.5', addressTo: 'wallet-1', attempt: 0 },
      ...{ final: false, requeueCount: 0, createdAt: AT, updatedAt: AT, history: [{ at: AT, to: 'queued' }] },
    });
  });

  it('says why it is held only while it is', () => {
    const held = '{"kind":"policy","reason":"day","message":"over the limit","isTampering":false}';
    expect(parse('held', { held }).held).toEqual({ kind: 'policy', reason: 'day', message: 'over the limit' });
    expect(parse('queued', { held })).not.toHaveProperty('held');
  });

  it.each(['', 'null', '7', '[]', '{"kind":"no such"}', '{"rea'])('is held, whatever its field holds: %j', (held) => {
    expect(parse('held', { held }).held).toEqual({
      ...{ kind: 'signature', reason: 'unreadable', message: expect.stringMatching(/someone has altered/) },
    });
  });

  it('in a state that does not exist is refused', () => {
    expect(() => parse('queued', { state: 'paid' })).toThrow(
      'The record of payout p in Redis cannot be read: there is no state "paid"',
    );
  });

  it.each(['', '-1', 'NaN', '1e3', '9'.repeat(16)])('is refused with %j approvals and rejections', (decisions) => {
    expect(parse('queued', { decisions: '12' }).decisions).toBe(12);
    expect(() => parse('queued', { decisions })).toThrow(`decisions must be a whole number (got "${decisions}")`);
  });

  it('differs from what is given in nothing when both say nothing of a field', () => {
    const record = pairsToRecord(fieldsOf({ priority: 3 }));
    expect(differingFields(record, aPayout('p', { priority: 3 }))).toEqual([]);
    expect(differingFields(record, aPayout('p'))).toEqual(['priority']);
  });
});

it.each([
  ['change-payouts', [-7], { kind: 'not_found' }],
  ['change-payouts', [-8, 'p'], { kind: 'gateway_id_taken', payoutId: 'p' }],
  ['change-payouts', [-13, 'h'], { kind: 'paid_late', gatewayId: 'h' }],
  ['change-payouts', [-11, 250], { kind: 'in_flight', forMs: 250 }],
  ['add-approval', [-20, 'ann'], { kind: 'rejected_before', by: 'ann' }],
  ['add-approval', [-21, 40], { kind: 'too_many_approvals', count: 40 }],
] as const)('the reply of %s %j is a rejection', (script, reply, rejection) => {
  expect(parseRejection(script, reply)).toEqual(rejection);
});

it('the reply of a script is none with another value, and what a number means is not guessed', () => {
  for (const reply of [[1], [0], ['x'], [[0, 'p']], [['p', 'q']], [[]], [null]]) {
    expect([reply, parseRejection('begin-send', reply)]).toEqual([reply, undefined]);
  }
  expect(() => parseRejection('begin-send', [-99])).toThrow('returned -99, which has no meaning');
  const never = 'begin-send refused with not_new, which it never should';
  expect(() => parseRejection('begin-send', [-22, 'x'])).toThrow(never);
});

/** Redis refuses another format before each script; what a heading says is no reply. */
const codesOf = (name: ScriptName) => {
  const source = readFileSync(new URL(`../../src/ledger/lua/${name}.lua`, import.meta.url), 'utf8');
  return [...source.replace(/--.*/g, '').matchAll(/\{ (-\d+)/g)].map(([, code]) => Number(code));
};

it('each script that refuses is listed with its reasons, and with no other', () => {
  for (const name of SCRIPT_NAMES) {
    const known: readonly string[] = name in REJECTIONS ? REJECTIONS[name as RejectingScript] : [];
    const codes = new Set(codesOf(name));
    const kinds = [...codes].map((code) => parseRejection(name as RejectingScript, [code])?.kind);
    expect([name, kinds.sort()]).toEqual([name, [...known].sort()]);
  }
});
