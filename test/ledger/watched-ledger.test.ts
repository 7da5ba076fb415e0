import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { RedisSenderLedger, WatchedLedger } from '../../src/ledger/redis-sender-ledger.js';
import { JOURNAL } from './contract/ledger-rig.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

it('shows the account as it is, and never gives the lease', async () => {
  const watched = new WatchedLedger(account.connection, 'reply');
  const free = await watched.readSender();
  expect(await watched.acquireLease()).toBeUndefined();
  expect((await account.sender.readSender()).lease).toBeUndefined();
  const sender = new RedisSenderLedger(account.connection, 'reply');
  expect(await sender.acquireLease('owner', free, JOURNAL, 0)).toBe(1);
  expect((await watched.readSender()).lease).toMatchObject({ owner: 'owner', epoch: 1 });
});
