import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ledgerSequences } from './support/ledger-sequences.js';

describe('the ledger in Redis and the ledger in memory', () => {
  // `npm run races` runs thousands.
  it('reply alike and hold the same after every one of many random commands', async () => {
    const counts = { begun: 0 };
    await fc.assert(ledgerSequences(counts), { numRuns: 100 });
    // Commands that are nearly all refused would prove nothing. Some 107 begin on average, chosen at random.
    expect(counts.begun).toBeGreaterThan(40);
  });
});
