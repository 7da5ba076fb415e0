import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readAccountStats } from '../../src/ledger/reads/account-stats.js';
import { parseHistoryEntry } from '../../src/ledger/payout-record.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { isPayoutState, PAYOUT_STATES, STATE_CODE, stateOfCode } from '../../src/ledger/states.js';
import { begin, NO_BREAKER, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');
const ANN = { by: 'ann', reason: 'too late' };
const entries = async (payoutId: string) => {
  const { n, ...record } = await account.redis.hgetall(account.connection.keys.payout(payoutId));
  return Array.from({ length: Number(n) }, (_, index) => record[`h${index}`]);
};
const now = () => account.clock.wallNow();
const toldOf = async (payoutId: string) => (await account.ledger.require(payoutId)).history;
const cancel = async () => account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled', ...ANN });

it('each state has a code of one letter, which stands for no other', () => {
  for (const state of PAYOUT_STATES) {
    expect(STATE_CODE[state]).toMatch(/^[a-z]$/);
    expect(stateOfCode(STATE_CODE[state])).toBe(state);
    expect(isPayoutState(STATE_CODE[state])).toBe(false);
  }
  expect(stateOfCode('queued')).toBeUndefined();
});

it('a history has names of states before the ledger is compact, and then their codes', async () => {
  await account.ledger.enqueue([aPayout('p')]);
  const first = `${now()}\tqueued`;
  expect(await entries('p')).toEqual([first]);
  account.clock.advance(1_234);
  await takeLease(account.sender, 'one');
  await account.ledger.enqueue([aPayout('q')]);
  await cancel();
  expect(await entries('p')).toEqual([first, `x${now().toString(36)}\tann\ttoo late`]);
  expect(await entries('q')).toEqual([`q${now().toString(36)}`]);
  const at = new Date(now()).toISOString();
  expect(await toldOf('p')).toMatchObject([{ to: 'queued' }, { at, from: 'queued', to: 'cancelled', ...ANN }]);
  expect(await toldOf('q')).toEqual([{ at, to: 'queued' }]);
});

it.each([
  ['1893456000000\tqueued', { at: 1_893_456_000_000, to: 'queued', by: '', reason: '' }],
  ['1893456000000\tcancelled\tann\twhy', { at: 1_893_456_000_000, to: 'cancelled', by: 'ann', reason: 'why' }],
  ['qo5u50000', { at: Number.parseInt('o5u50000', 36), to: 'queued', by: '', reason: '' }],
  ['xo5u50000\t\twhy', { at: Number.parseInt('o5u50000', 36), to: 'cancelled', by: '', reason: 'why' }],
  ['zo5u50000', { at: NaN, to: '', by: '', reason: '' }],
  ['yesterday\tqueued', { at: NaN, to: 'queued', by: '', reason: '' }],
])('the entry %j is read', (text, entry) => {
  expect(parseHistoryEntry(text)).toEqual(entry);
});

it('the age of a payout, and when it may be removed, count from a compact history', async () => {
  await takeLease(account.sender, 'one');
  await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
  await cancel();
  const cancelledAt = now();
  account.clock.advance(5_000);
  expect((await readAccountStats(account.connection)).oldestAgeMs.queued).toBe(5_000);
  expect(await removePayouts(account.connection, 'cancelled', cancelledAt, 9)).toEqual([]);
  expect(await removePayouts(account.connection, 'cancelled', cancelledAt + 1, 9)).toHaveLength(1);
});

it.each([true, false])('a decision that is repeated is known by the history, compact: %s', async (isCompact) => {
  if (isCompact) await takeLease(account.sender, 'one');
  await account.ledger.enqueue([aPayout('p')]);
  await cancel();
  await takeLease(account.sender, 'one');
  const before = await account.dump();
  await cancel();
  expect(await account.dump()).toEqual(before);
});

describe.each([
  ['this format', (token: string) => `${token}p${sha1('hash-1').slice(0, 6)}`, 'queued'],
  ['an earlier format', (token: string) => `${token} in_progress ${sha1('hash-1').slice(0, 8)}`, 'queued'],
  // It proves wrong who stated that it was not sent.
  ['another outcome', (token: string) => `${token}p${sha1('hash-2').slice(0, 6)}`, 'in_progress'],
])('what was told, of %s', (_name, tellOf, expected) => {
  it(`is told again where an operator has decided since: ${expected}`, async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const attempt = await begin(account.sender, await takeLease(account.sender, 'one'), 'p');
    const finish = async () =>
      account.sender.finishSend(attempt, { kind: 'accepted', txhash: 'hash-1' }, NO_BREAKER, 0);
    await finish();
    const record = account.connection.keys.payout('p');
    expect(await account.redis.hget(record, 'told')).toBe(`${attempt.token}p${sha1('hash-1').slice(0, 6)}`);
    await account.redis.hset(record, 'told', tellOf(attempt.token));
    await account.ledger.change({ payoutId: 'p', from: 'in_progress', to: 'unknown' });
    await account.ledger.change({ payoutId: 'p', from: 'unknown', to: 'queued', ...ANN });
    await finish();
    expect((await account.ledger.require('p')).state).toBe(expected);
  });
});
