import { describe, expect, it } from '@jest/globals';
import { batchField, lineField, payoutInputSchema, toLine } from '../../src/ledger/payout.js';

const GIVEN = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };

function problemsOf(extra: object): string[] {
  const { error } = payoutInputSchema.safeParse({ ...GIVEN, ...extra });
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`);
}

describe('payoutInputSchema', () => {
  it('takes a payout with the least that is needed, and refuses what it does not know', () => {
    expect(payoutInputSchema.parse(GIVEN)).toEqual(GIVEN);
    expect(problemsOf({ adress: 'typo' })).toHaveLength(1);
  });

  it.each([
    [{ priority: 1 }, []],
    [{ priority: 2_097_152 }, []],
    [{ priority: 0 }, ['priority must be at least 1']],
    [{ priority: 2_097_153 }, ['priority must be at most 2097152']],
    [{ priority: 1.5 }, ['priority must be a whole number']],
    [{ notBefore: 'tomorrow' }, ['notBefore must be a Date or a time such as 2030-01-31T09:00:00Z']],
    [{ notBefore: '2030-01-31T09:00:00' }, ['notBefore must be a Date or a time such as 2030-01-31T09:00:00Z']],
    [{ reference: 7 }, ['reference must be a string']],
    [{ reference: ' ' }, ['reference must not be empty']],
    [{ metadata: undefined, batch: 'b' }, []],
    [{ metadata: () => 1 }, ['metadata must be JSON']],
    [{ metadata: 'x'.repeat(4_094) }, []],
    [{ metadata: 'x'.repeat(4_095) }, ['metadata must be at most 4096 bytes as JSON']],
    [{ metadata: 'é'.repeat(2_048) }, ['metadata must be at most 4096 bytes as JSON']],
  ])('has a rule for %j', (extra, problems) => {
    expect(problemsOf(extra)).toEqual(problems);
  });
});

describe('lineField', () => {
  it('trims, and takes 200 characters in one line', () => {
    expect(lineField.parse('  invoice 7 ')).toBe('invoice 7');
    expect(lineField.safeParse('x'.repeat(200)).success).toBe(true);
    expect(lineField.safeParse('x'.repeat(201)).error?.issues[0]?.message).toBe('must have at most 200 characters');
    expect(lineField.safeParse('a\tb').error?.issues[0]?.message).toBe('must be one line without control characters');
  });
});

describe('batchField', () => {
  it('takes 1 to 64 of its characters and nothing around them', () => {
    for (const text of ['b', 'A-Z.a_z,0+9/=', 'x'.repeat(64)]) expect(batchField.parse(text)).toBe(text);
    for (const text of ['', 'a b', ' ab', 'ab ', 'a:b', 'x'.repeat(65)]) {
      expect(batchField.safeParse(text).error?.issues[0]?.message).toBe('must be 1 to 64 of A-Z a-z 0-9 + / = - . , _');
    }
    expect(batchField.safeParse(7).error?.issues[0]?.message).toBe('must be a string');
  });
});

describe('toLine', () => {
  it('makes one line of any text', () => {
    expect(toLine(' a\r\n\tb\u0000c ')).toBe('a b c');
  });

  it('keeps 300 characters and shows where it cut', () => {
    expect(toLine('x'.repeat(300))).toBe('x'.repeat(300));
    expect(toLine('x'.repeat(301))).toBe(`${'x'.repeat(299)}…`);
  });
});
