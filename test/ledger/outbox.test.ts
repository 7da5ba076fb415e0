import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

describe('outbox', () => {
  it('holds what needs a job, by state, the oldest first, until it is cleared for that state', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    account.clock.advance(1_000);
    await account.ledger.enqueue([aPayout('q')]);
    account.clock.advance(1_000);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'sending' });
    await account.ledger.change({ payoutId: 'p', from: 'sending', to: 'in_progress', txhash: 'h' });
    const later = account.clock.wallNow() + 1;
    expect(await account.ledger.readOutbox(10, later)).toEqual([
      { state: 'queued', payoutId: 'p' },
      { state: 'queued', payoutId: 'q' },
      { state: 'in_progress', payoutId: 'p' },
    ]);
    expect(await account.ledger.readOutbox(1, later)).toEqual([{ state: 'queued', payoutId: 'p' }]);
    await account.ledger.clearOutbox('queued', ['p', 'q']);
    expect(await account.ledger.readOutbox(10, later)).toEqual([{ state: 'in_progress', payoutId: 'p' }]);
    await account.ledger.clearOutbox('in_progress', []);
    await account.ledger.clearOutbox('in_progress', ['p']);
    expect(await account.ledger.readOutbox(10, later)).toEqual([]);
  });

  it('leaves changes that are not older than asked to the process that works on them', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    expect(await account.ledger.readOutbox(10, account.clock.wallNow())).toEqual([]);
  });

  it('holds nothing for states that need no job', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    await account.ledger.clearOutbox('queued', ['p']);
    await account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect(await account.ledger.readOutbox(10, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });
});
