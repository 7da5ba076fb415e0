import { beforeEach, describe, expect, it } from '@jest/globals';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { readWorkers, type WorkerReport } from '../../src/ledger/reads/workers.js';
import type { JournalHead } from '../../src/ledger/sender-ledger.js';
import { silentLogger, type Logger } from '../../src/base/logger.js';
import { JournalHeadPublisher } from '../../src/worker/account-sending.js';
import { describeWorker, publishWorker } from '../../src/worker/publish-worker.js';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { aSend, LEDGER, makeJournalFolder } from '../journal/support/journal-folder.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';

const QUICK_CLOCK: Clock = {
  now: () => systemClock.now() * 60,
  wallNow: () => Math.floor(systemClock.now() * 60),
  sleep: async (ms, signal) => systemClock.sleep(ms / 60, signal),
};

describe('the report of a worker process', () => {
  const start = async (describe: () => Omit<WorkerReport, 'at'>): Promise<void> =>
    publishWorker({ ledger: account.ledger, clock: QUICK_CLOCK, logger: silentLogger }, 'host:1', describe, end.signal);

  it('is written, written again when something changes, and removed in the end', async () => {
    let role = 'standby';
    const reporting = start(() => ({ role, startedAt: 1, version: '1.2.3' }));
    await until('reported', async () => (await readWorkers(account.connection))[0]?.role === 'standby');
    role = 'sender';
    await until('reported again', async () => (await readWorkers(account.connection))[0]?.role === 'sender');
    expect(await readWorkers(account.connection)).toMatchObject([{ name: 'host:1', version: '1.2.3', startedAt: 1 }]);
    end.abort();
    await reporting;
    expect(await readWorkers(account.connection)).toEqual([]);
  });

  it('of a process that was killed is removed by the sender, and what cannot be read is left out', async () => {
    const dead = { role: 'standby', at: 5, startedAt: 1, version: '1' };
    await account.redis.hset(account.connection.keys.workers, 'host:2', JSON.stringify(dead));
    await account.redis.hset(account.connection.keys.workers, 'host:3', '{"role":7}', 'host:4', 'no JSON');
    const names = async (): Promise<string> => (await readWorkers(account.connection)).map(({ name }) => name).join();
    expect(await names()).toBe('host:2');
    void start(() => ({ role: 'sender', startedAt: 1, version: '1' }));
    await until('removed', async () => (await names()) === 'host:1');
  });
});

describe('what a worker process says of itself', () => {
  const clock = { now: () => 100_000, wallNow: () => 1_000_000 };
  const facts = { work: NO_WORK, opensAt: undefined, startedAt: 5, clock };

  it('is its role and reason, and until when a sender waits after a takeover, but not between two sends', () => {
    const refused = { role: 'refused', reason: 'the journal is damaged' };
    expect(describeWorker({ ...facts, status: refused })).toMatchObject(refused);
    const status = { role: 'sender' };
    expect(describeWorker({ ...facts, status, opensAt: 110_000 })).toMatchObject({ holdOffUntil: 1_010_000 });
    expect(describeWorker({ ...facts, status, opensAt: 101_010 })).toMatchObject({ holdOffUntil: undefined });
  });

  it('is why its last attempts failed, and when the next is due', () => {
    const lastErrorCode = 'GATEWAY_UNAVAILABLE';
    const work = {
      ...NO_WORK,
      notSent: { reason: 'ECONNREFUSED', code: lastErrorCode, count: 3, retryAt: 102_000 },
    } as const;
    const told = { lastError: 'ECONNREFUSED', lastErrorCode, failedAttempts: 3, nextRetryAt: 1_002_000 };
    expect(describeWorker({ ...facts, status: { role: 'sender' }, work })).toMatchObject(told);
  });
});
