import { describe, expect, it } from '@jest/globals';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { silentLogger, type Logger } from '../../src/base/logger.js';
import { verifyJournal } from '../../src/control/audit/verify-journal.js';
import { readWorkers, type WorkerReport } from '../../src/ledger/reads/workers.js';
import type { JournalHead } from '../../src/ledger/sender-ledger.js';
import { JournalHeadPublisher } from '../../src/worker/account-sending.js';
import { describeWorker, publishWorker } from '../../src/worker/publish-worker.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { aSend, LEDGER, makeJournalFolder } from '../journal/support/journal-folder.js';
import { openTestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';

const QUICK_CLOCK: Clock = {
  now: () => systemClock.now() * 60,
  wallNow: () => Math.floor(systemClock.now() * 60),
  sleep: async (ms, signal) => systemClock.sleep(ms / 60, signal),
};

it('the report of a worker process is written, again when something changes, and removed in the end', async () => {
  const { ledger, connection, redis } = closeAfterTest(openTestAccount());
  // Of a process that was killed, which the sender removes, and of what cannot be read.
  const dead: WorkerReport = { role: 'standby', at: 5, startedAt: 1, version: '1' };
  const others = ['host:2', JSON.stringify(dead), 'host:3', '{"role":7}', 'host:4', 'no JSON'];
  await redis.hset(connection.keys.workers, ...others);
  const read = async (): Promise<string> =>
    (await readWorkers(connection)).map(({ name, role }) => `${name} ${role}`).join();
  expect(await read()).toBe('host:2 standby');
  let role = 'standby';
  const end = new AbortController();
  const describe = (): Omit<WorkerReport, 'at'> => ({ role, startedAt: 1, version: '1.2.3' });
  const runtime = { ledger, clock: QUICK_CLOCK, logger: silentLogger };
  const reporting = publishWorker(runtime, 'host:1', describe, end.signal);
  await until('reported', async () => (await read()).includes('host:1 standby'));
  role = 'sender';
  await until('reported again, and removed', async () => (await read()) === 'host:1 sender');
  expect(await readWorkers(connection)).toMatchObject([{ version: '1.2.3', startedAt: 1 }]);
  end.abort();
  await reporting;
  expect(await readWorkers(connection)).toEqual([]);
});

it('a worker process says its role, why its last attempts failed, and until when it waits after a takeover', () => {
  const clock = { now: () => 100_000, wallNow: () => 1_000_000 };
  const work = { notSent: undefined, failedPolls: undefined, wasUnanswered: false };
  const facts = { work, opensAt: undefined, startedAt: 5, clock, status: { role: 'sender' } };
  const refused = { role: 'refused', reason: 'the journal is damaged' };
  expect(describeWorker({ ...facts, status: refused })).toMatchObject(refused);
  expect(describeWorker({ ...facts, opensAt: 110_000 })).toMatchObject({ holdOffUntil: 1_010_000 });
  // Not between two sends.
  expect(describeWorker({ ...facts, opensAt: 101_010 })).toMatchObject({ holdOffUntil: undefined });
  const lastErrorCode = 'GATEWAY_UNAVAILABLE';
  const notSent = { reason: 'ECONNREFUSED', code: lastErrorCode, count: 3, retryAt: 102_000 } as const;
  const told = { lastError: 'ECONNREFUSED', lastErrorCode, failedAttempts: 3, nextRetryAt: 1_002_000 };
  expect(describeWorker({ ...facts, work: { ...work, notSent } })).toMatchObject(told);
});

describe('the head of the journal', () => {
  const MINUTE_MS = 60_000;

  async function open() {
    const clock = new ManualClock();
    const folder = closeAfterTest(await makeJournalFolder());
    const journal = await folder.open();
    await journal.bind(LEDGER);
    const [published, logged]: [JournalHead[], object[]] = [[], []];
    const logger: Logger = { ...silentLogger, info: (fields) => void logged.push(fields) };
    const redis = { fails: false };
    const publisher = new JournalHeadPublisher({ journal, clock, logger }, async (head) => {
      if (redis.fails) throw new Error('Redis unavailable');
      published.push(head);
      return Promise.resolve();
    });
    const headOnDisk = async (): Promise<string | undefined> => (await verifyJournal(folder.dir, 1))?.head;
    return { clock, journal, published, logged, redis, publisher, headOnDisk };
  }

  it('is published at once and every ten minutes, in the log too, until the lease ends', async () => {
    const { clock, journal, published, logged, publisher, headOnDisk } = await open();
    const end = new AbortController();
    const keeping = publisher.keep(end.signal);
    await clock.advance(0);
    const first = { journalId: journal.journalId, hash: await headOnDisk(), sends: 0 };
    expect(published).toEqual([first]);
    expect(logged).toEqual([{ head: first.hash, journalId: first.journalId, sends: 0 }]);
    await journal.append(aSend('p', 1));
    await clock.advance(10 * MINUTE_MS - 1);
    expect(published).toHaveLength(1);
    await clock.advance(1);
    const second = { ...first, hash: await headOnDisk(), sends: 1 };
    expect(second.hash).not.toBe(first.hash);
    expect(published).toEqual([first, second]);
    expect(publisher.published).toEqual({ ...second, at: clock.wallNow() });
    end.abort();
    await keeping;
    expect(publisher.published).toBeUndefined();
    await clock.advance(60 * MINUTE_MS);
    expect(published).toHaveLength(2);
  });

  it('is published once of the last line, and again only where that did not arrive', async () => {
    const { journal, published, logged, redis, publisher, headOnDisk } = await open();
    await journal.append(aSend('p', 1));
    // Nobody waits for this line; closing the journal does.
    journal.noteOutcome(aSend('p', 1), { kind: 'accepted', txhash: 'h' }, 5);
    await journal.close();
    redis.fails = true;
    await publisher.publishLast();
    redis.fails = false;
    await publisher.publishLast();
    await publisher.publishLast();
    expect(published.map(({ hash }) => hash)).toEqual([await headOnDisk()]);
    expect(logged).toHaveLength(2);
  });
});
