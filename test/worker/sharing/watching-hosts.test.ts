import { mkdtemp, readFile, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { silentLogger, type Logger } from '../../../src/base/logger.js';
import { createPayoutWorker, type PayoutWorker, type PayoutWorkerOptions } from '../../../src/control/payout-worker.js';
import { adoptJournal } from '../../proofs/signing.js';
import { until } from '../../support/until.js';
import { openSharedAccounts, type SharedAccounts } from '../support/shared-accounts.js';

/** Two workers in this process, as on two hosts. */
let shared: SharedAccounts;
let redis: Redis;
let dir: string;
const workers: PayoutWorker[] = [];

beforeEach(async () => {
  shared = await openSharedAccounts(2);
  ({ redis } = shared);
  dir = await mkdtemp(join(tmpdir(), 'payouts-hosts-'));
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map(async (worker) => worker.stop()));
  await shared.close();
  await rm(dir, { recursive: true, force: true });
});

const SETTINGS = { leaseMs: 1_000, quarantineMs: 1_000, inFlightMaxMs: 100, pollMinMs: 200, pollMaxMs: 500 };

async function startWorker(
  folder: string,
  { redisUrl = shared.processOptions.redisUrl, ...more }: Partial<PayoutWorkerOptions> = {},
): Promise<PayoutWorker> {
  const { baseUrl, secretKey } = shared.processOptions;
  const accounts = shared.platformIds.map((platformId) => ({ platformId, baseUrl, secretKey, ...SETTINGS }));
  // Both processes have the host name of this machine: a second journal of one host waits for its adoption.
  await Promise.all(shared.platformIds.map(async (platformId) => adoptJournal(join(dir, folder), platformId)));
  const worker = await createPayoutWorker({ ...more, redisUrl, journalDir: join(dir, folder), accounts });
  workers.push(worker);
  return worker;
}

const partsOf = (worker: PayoutWorker): string[] => worker.accounts.map(({ part }) => part);
const isSending = (worker: PayoutWorker, index: number): boolean => worker.accounts[index]?.status.role === 'sender';

/** One worker sends for both accounts; then another one comes, and one account moves. @returns its index */
async function moveOne(first: PayoutWorker, folder: string): Promise<number> {
  await shared.enqueue(6);
  await until('both were sent for', () =>
    shared.platformIds.every((platformId) => shared.sandbox.arrivals(platformId).length > 0),
  );
  const second = await startWorker(folder);
  await until('each has one', () => partsOf(first).filter((part) => part === 'send').length === 1);
  const moved = partsOf(first).findIndex((part) => part !== 'send');
  await until('the other one sends for it', () => isSending(second, moved));
  return moved;
}

const workersOf = async (index: number): Promise<number> =>
  redis.hlen(`{payouts:${String(shared.platformIds[index])}}:workers`);

describe('an account that another process works for', () => {
  it('with another journal is watched: a Redis that forgot what was sent here is objected to', async () => {
    const first = await startWorker('one');
    const moved = await moveOne(first, 'two');
    expect(partsOf(first)[moved]).toBe('watch');
    const platformId = String(shared.platformIds[moved]);
    const [header = ''] = (await readFile(join(dir, 'one', `${platformId}.journal`), 'utf8')).split('\n');
    const { journalId } = JSON.parse(header) as { journalId: string };

    await redis.del(`{payouts:${platformId}}:ledger`, `{payouts:${platformId}}:sender`);
    await until(
      'the journal of the first host objects',
      async () => (await redis.hexists(`{payouts:${platformId}}:objections`, journalId)) === 1,
    );
    expect(first.accounts[moved]?.status).toMatchObject({ role: 'refused' });
  }, 60_000);

  it('with the same journal costs nothing: this process does not even report', async () => {
    const first = await startWorker('one');
    const moved = await moveOne(first, 'one');
    expect(partsOf(first)[moved]).toBe('rest');
    await until('only one reports', async () => (await workersOf(moved)) === 0 || (await workersOf(moved)) === 1);
    expect(first.accounts[moved]?.status).toEqual({ role: 'standby' });
  }, 60_000);

  it('has its journal followed, so that this process can take over at any time', async () => {
    const told: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      debug: (_, message) => void told.push(message),
      child: () => logger,
    };
    const clock: Clock = {
      ...systemClock,
      sleep: async (ms, signal) => systemClock.sleep(ms === 5 * 60_000 ? 200 : ms, signal),
    };
    const first = await startWorker('one', { logger, clock });
    const moved = await moveOne(first, 'one');
    expect(partsOf(first)[moved]).toBe('rest');
    await truncate(join(dir, 'one', `${String(shared.platformIds[moved])}.journal`));
    await until('it was read', () => told.includes('cannot follow the send journal'));
  }, 60_000);
});

it('of an account that moved, a process does not tell what went wrong before', async () => {
  const first = await startWorker('one');
  await until('it sends for both', () => isSending(first, 0) && isSending(first, 1));
  for (const { work } of first.accounts) {
    work.observer.notSent('ENOSPC', 250);
    work.observer.polled('error', 'HTTP 500');
  }
  await startWorker('one');
  await until('each has one', () => partsOf(first).toSorted().join() === 'rest,send');
  const troubles = (part: string): unknown[] => {
    const { work } = first.accounts[partsOf(first).indexOf(part)] ?? {};
    return [work?.notSent?.reason, work?.failedPolls?.reason];
  };
  await until('it has ended', () => troubles('rest').join('') === '');
  expect(troubles('send')).toEqual(['ENOSPC', 'HTTP 500']);
}, 60_000);

it('a Redis user without rights for the registry serves all accounts, as if nothing were shared', async () => {
  const keys = shared.platformIds.map((platformId) => `~{payouts:${platformId}}*`);
  await redis.call('ACL', 'SETUSER', 'limited', 'on', '>pw', ...keys, '+@all');
  const url = shared.processOptions.redisUrl.replace('redis://', 'redis://limited:pw@');
  const worker = await startWorker('one', { redisUrl: url });
  await until('it competes for all', () => partsOf(worker).join() === 'send,send');
  await shared.enqueue(1);
  await until('all are sent', () =>
    shared.platformIds.every((platformId) => shared.sandbox.arrivals(platformId).length === 1),
  );
}, 60_000);
