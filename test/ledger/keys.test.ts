import { expect, it } from '@jest/globals';
import { LedgerKeys } from '../../src/ledger/keys.js';

it('names every key of an account with the hash tag that keeps it in one slot', () => {
  const keys = new LedgerKeys(42);
  expect(keys.prefix).toBe('{payouts:42}');
  expect([keys.ledger, keys.sender, keys.outbox, keys.events]).toEqual([
    '{payouts:42}:ledger',
    '{payouts:42}:sender',
    '{payouts:42}:outbox',
    '{payouts:42}:events',
  ]);
  expect([keys.payout('p'), keys.state('queued'), keys.batch('b')]).toEqual([
    '{payouts:42}:payout:p',
    '{payouts:42}:state:queued',
    '{payouts:42}:batch:b',
  ]);
});
