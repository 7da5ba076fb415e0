import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import type { Lease } from '../../src/ledger/sender-ledger.js';
import { takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
let sender: RedisSenderLedger;
let nowMs: number;
let lease: Lease;

beforeEach(async () => {
  account = openTestAccount();
  nowMs = 1_000;
  const clock = { ...systemClock, now: () => nowMs };
  sender = new RedisSenderLedger(connectLedger(account.redis, account.platformId, clock), 'reply');
  lease = await takeLease(sender, 'one');
});
afterEach(async () => account.close());

it('is not taken for empty before a heartbeat has shown it', async () => {
  expect(sender.isOutboxEmpty).toBe(false);
  await sender.renewLease(lease);
  expect(sender.isOutboxEmpty).toBe(true);
});

it('is what the last heartbeat has shown', async () => {
  await account.ledger.enqueue([aPayout('p')]);
  await sender.renewLease(lease);
  expect(sender.isOutboxEmpty).toBe(false);
  await account.ledger.clearOutbox('queued', ['p']);
  await sender.renewLease(lease);
  expect(sender.isOutboxEmpty).toBe(true);
});

it('is not taken for empty while there is no heartbeat', async () => {
  await sender.renewLease(lease);
  nowMs += 4_900;
  expect(sender.isOutboxEmpty).toBe(true);
  nowMs += 200;
  expect(sender.isOutboxEmpty).toBe(false);
});
