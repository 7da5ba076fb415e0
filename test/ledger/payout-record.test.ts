import { describe, expect, it } from '@jest/globals';
import { differingFields, pairsToRecord, parseRecord, toRecordFields } from '../../src/ledger/payout-record.js';
import type { PayoutInput, ValidPayout } from '../../src/ledger/payout.js';
import { aPayout } from './support/a-payout.js';

const AT = Date.parse('2030-01-01T00:00:00Z');

/** A valid input without its id, which is in the key. */
function inputOf(given: Partial<PayoutInput>): Omit<ValidPayout, 'payoutId'> {
  const { payoutId, ...input } = aPayout('p', given);
  expect(payoutId).toBe('p');
  return input;
}

describe('a stored payout', () => {
  it('has no fields for what was not given', () => {
    const given = { ...inputOf({}), symbol: undefined, metadata: undefined };
    expect(toRecordFields(given)).toEqual(['paymentId', '7', 'amount', '12.5', 'addressTo', 'wallet-1']);
    const record = {
      ...pairsToRecord(toRecordFields(given)),
      state: 'queued',
      attempt: '0',
      n: '1',
      h0: `${AT}\tqueued`,
    };
    expect(parseRecord('p', record)).toStrictEqual({
      payoutId: 'p',
      state: 'queued',
      paymentId: 7,
      amount: '12.5',
      addressTo: 'wallet-1',
      attempt: 0,
      requeueCount: 0,
      createdAt: '2030-01-01T00:00:00.000Z',
      updatedAt: '2030-01-01T00:00:00.000Z',
      history: [{ at: '2030-01-01T00:00:00.000Z', to: 'queued' }],
    });
  });

  it('says why it is held only while it is', () => {
    const held = '{"kind":"policy","reason":"day","message":"over the limit","isTampering":false}';
    const record = { state: 'held', attempt: '0', n: '1', h0: `${AT}\theld`, held };
    expect(parseRecord('p', record).held).toEqual({ kind: 'policy', reason: 'day', message: 'over the limit' });
    expect(parseRecord('p', { ...record, state: 'queued' })).not.toHaveProperty('held');
  });

  it.each(['', 'null', '7', '[]', '{"kind":"no such"}', '{"rea'])('is held, whatever its field holds: %j', (held) => {
    const record = { state: 'held', attempt: '0', n: '1', h0: `${AT}\theld`, held };
    expect(parseRecord('p', record).held).toEqual({
      ...{ kind: 'signature', reason: 'unreadable', message: expect.stringMatching(/someone has altered/) },
    });
  });

  it('in a state that does not exist is refused', () => {
    expect(() => parseRecord('p', { state: 'paid', n: '0' })).toThrow(
      'The record of payout p in Redis cannot be read: there is no state "paid"',
    );
  });

  it.each(['', '-1', 'NaN', '1e3', '9'.repeat(16)])('is refused with %j approvals and rejections', (decisions) => {
    const record = { state: 'queued', attempt: '0', n: '1', h0: `${AT}\tqueued` };
    expect(parseRecord('p', { ...record, decisions: '12' }).decisions).toBe(12);
    expect(() => parseRecord('p', { ...record, decisions })).toThrow(
      `decisions must be a whole number (got "${decisions}")`,
    );
  });

  it('differs from what is given in nothing when both say nothing of a field', () => {
    const given = inputOf({ priority: 3 });
    expect(differingFields(pairsToRecord(toRecordFields(given)), aPayout('p', { priority: 3 }))).toEqual([]);
    expect(differingFields(pairsToRecord(toRecordFields(given)), aPayout('p'))).toEqual(['priority']);
  });
});
