import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { AccountPoller, type LedgerObservation } from '../../src/operator/account-poller.js';
import { until } from '../support/until.js';
import { openSampleAccount, type SampleAccount, writeSampleWorker } from '../dashboard/support/sample-account.js';

const SENDER = 'payouts-1:4711';

let account: SampleAccount;
let watch: AccountPoller;
let beating: NodeJS.Timeout;

beforeEach(async () => {
  account = await openSampleAccount();
  await account.redis.hset(account.connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
  await writeSampleWorker(account, SENDER, { role: 'sender' });
  beating = setInterval(() => void account.redis.hincrby(account.connection.keys.sender, 'beat', 1), 300);
  watch = new AccountPoller(account, systemClock);
});

afterEach(async () => {
  watch.close();
  clearInterval(beating);
  await account.close();
});

async function observe(what: string, holds: (ledger: LedgerObservation) => boolean): Promise<LedgerObservation> {
  let seen: LedgerObservation | undefined;
  await until(what, async () => {
    seen = (await watch.visit()).ledger;
    return seen !== undefined && holds(seen);
  });
  return seen as LedgerObservation;
}

describe('how long a sender could have sent', () => {
  it('does not count the time in which nothing was due', async () => {
    await observe('a second has passed', ({ watchedMs }) => watchedMs > 1_000);
    await account.enqueue('first');
    const { readyMs, watchedMs } = await observe('it is due', ({ due }) => due === 1);
    expect(readyMs).toBeLessThan(watchedMs - 500);
    await observe('it waits', (ledger) => ledger.readyMs > 500);
  });

  it('does not count a pause, or the wait after a takeover', async () => {
    await account.enqueue('first');
    await observe('it waits', ({ readyMs }) => readyMs > 500);
    await account.ledger.pause('ann', 'maintenance');
    expect((await observe('it is paused', (ledger) => ledger.pausedReason !== undefined)).readyMs).toBe(0);
    await account.ledger.resume('ann', 'done');
    await observe('it waits again', ({ readyMs }) => readyMs > 0);
    const holdOffUntil = Number((await account.redis.time())[0]) * 1_000 + 60_000;
    await writeSampleWorker(account, SENDER, { role: 'sender', holdOffUntil });
    await observe('it is held off', ({ readyMs }) => readyMs === 0);
  });
});
