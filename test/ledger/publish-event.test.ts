import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { parseHeadReason, publishJournalHead, publishPolicyLoaded } from '../../src/ledger/reads/workers.js';
import { readEvents, type PayoutEvent } from '../../src/producer/events/payout-events.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

const HEAD = { journalId: 'abcdef012345', hash: 'ab'.repeat(32), sends: 7 };
const POLICY = 'cd'.repeat(32);

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const events = async (): Promise<PayoutEvent[]> => readEvents(account.connection, { sinceMs: 0 }, 100);

it('tells as events where a journal ends, and which policy was loaded', async () => {
  await publishJournalHead(account.connection, HEAD);
  await publishPolicyLoaded(account.connection, POLICY, 'policy.yaml, by host:1');
  expect(await events()).toEqual([
    {
      ...{ eventId: expect.any(String), at: expect.any(String), type: 'journal_head', hash: HEAD.hash },
      reason: 'journal abcdef012345, send number 7',
    },
    {
      ...{ eventId: expect.any(String), at: expect.any(String), type: 'policy_loaded', hash: POLICY },
      reason: 'policy.yaml, by host:1',
    },
  ]);
  // Nobody did anything: what operators did is not buried under heads.
  expect((await readActivity(account.connection, 10)).activities).toEqual([]);
});

it('tells once what is told again, and each head', async () => {
  await publishJournalHead(account.connection, HEAD);
  await publishJournalHead(account.connection, HEAD);
  await publishJournalHead(account.connection, { ...HEAD, hash: POLICY });
  expect((await events()).map(({ hash }) => hash)).toEqual([HEAD.hash, POLICY]);
});

it('first appends the event that an interrupted script left out', async () => {
  const { redis, keys } = account.connection;
  await redis.hset(keys.ledger, 'untold', ['paused', '1000', 'ann', 'maintenance'].join('\t'));
  await publishJournalHead(account.connection, HEAD);
  expect((await events()).map(({ type }) => type)).toEqual(['paused', 'journal_head']);
  expect(await redis.hget(keys.ledger, 'untold')).toBeNull();
});

it('names the journal in its reason', async () => {
  await publishJournalHead(account.connection, HEAD);
  expect(parseHeadReason((await events())[0]?.reason ?? '')).toBe('abcdef012345');
  expect(parseHeadReason('journal abcdef012345')).toBeUndefined();
});
