import { describe, expect, it } from '@jest/globals';
import { parseRejection } from '../../src/ledger/sender-ledger.js';

describe('parseRejection', () => {
  it.each([
    [[-1], { kind: 'lease_lost' }],
    [[-2, 'L'], { kind: 'other_ledger', ledgerId: 'L' }],
    [[-3, '7', 'token'], { kind: 'sends_differ', sendCount: 7, last: 'token' }],
    [[-3, '0', ''], { kind: 'sends_differ', sendCount: 0, last: '' }],
    [[-4, 'lunch'], { kind: 'paused', reason: 'lunch' }],
    [[-5, 'p', 'q'], { kind: 'others_sending', payoutIds: ['p', 'q'] }],
    [[-6, 'queued', '3'], { kind: 'wrong_state', state: 'queued', attempt: 3 }],
    [[-6, '', ''], { kind: 'wrong_state', state: undefined, attempt: 0 }],
    [[-7], { kind: 'not_found' }],
    [[-8, 'p'], { kind: 'txhash_taken', payoutId: 'p' }],
    [[-9, 'j-one', 'older'], { kind: 'objected', journalId: 'j-one', reason: 'older' }],
    [[-13, 'h'], { kind: 'paid_late', txhash: 'h' }],
    [[-11, 250], { kind: 'in_doubt', forMs: 250 }],
  ])('%j', (reply, rejection) => {
    expect(parseRejection(reply)).toEqual(rejection);
  });

  it.each([[1], [0], ['x'], [[0, 'p']], [['p', 'q']], [[]], [null]])('finds none in %j', (reply) => {
    expect(parseRejection(reply)).toBeUndefined();
  });

  it('does not guess what a number means', () => {
    expect(() => parseRejection([-99])).toThrow('returned -99, which has no meaning');
  });
});
