import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { type Logger, silentLogger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { writeWorkerReport } from '../../src/ledger/reads/workers.js';
import type { NewPayout } from '../../src/ledger/payout.js';
import { UnservedAccounts } from '../../src/operator/unserved-accounts.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { ManualClock } from '../doubles/manual-clock.js';
import { openDoor, payout as payoutBody } from '../http/support/door-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { runInProcess } from '../cli/support/in-process.js';
import { until } from '../support/until.js';
import { startOwnRedis, type OwnRedis } from '../worker/support/own-redis.js';

/** In a Redis of their own: of the common one no test says which accounts nobody serves. */

let own: OwnRedis;
let redis: RedisClient;
let clock: ManualClock;
let unserved: UnservedAccounts;
beforeAll(async () => (own = await startOwnRedis()));
afterAll(async () => own.close());
beforeEach(() => {
  redis = connectRedis(own.url, 'commands');
  clock = new ManualClock();
  unserved = new UnservedAccounts(clock);
});
afterEach(async () => {
  // The server is this test's alone.
  const keys = await redis.keys('*');
  if (keys.length > 0) await redis.del(...keys);
  await closeRedis(redis);
});

const OWN = 1;
const OTHER = 4711;
const REPORT = { role: 'standby', startedAt: 0, version: '1.0.0' };

const find = async () => unserved.find(redis, [OWN]);
const report = async (at: number) => writeWorkerReport(connectLedger(redis, OTHER), 'host:1', { ...REPORT, at });

/** @returns the warnings */
async function warnings(platformId: number, work: (producer: PayoutProducer) => Promise<unknown>) {
  const said: object[] = [];
  const logger: Logger = { ...silentLogger, warn: (fields, text) => void said.push({ ...fields, text }) };
  const producer = new PayoutProducer({ platformId, redisUrl: own.url, logger });
  await work(producer);
  await producer.close();
  return said;
}

/** @returns the warnings */
async function enqueue(platformId: number, count = 2) {
  return warnings(platformId, async (producer) => {
    for (let index = 1; index <= count; index += 1) await producer.enqueue(aPayout(`p-${index}`));
  });
}

it('enqueue warns once where no worker ever served the account, and not where one reported or had the lease', async () => {
  const text = expect.stringMatching(/^no worker has ever served account 4711 on this Redis/);
  expect(await enqueue(OTHER)).toEqual([{ platformId: OTHER, text }]);
  await report(1);
  expect(await enqueue(OTHER)).toEqual([]);
  await redis.del(connectLedger(redis, OTHER).keys.workers);
  await redis.hset(connectLedger(redis, OTHER).keys.sender, 'epoch', '1');
  expect(await enqueue(OTHER)).toEqual([]);
});

it('an enqueue that was refused warns of no account without a worker, and the next that is accepted does', async () => {
  await enqueue(OTHER);
  const refused = async (payout: NewPayout, code: string) =>
    warnings(OTHER, async (producer) => {
      await expect(producer.enqueue(payout)).rejects.toMatchObject({ code });
      await producer.enqueueMany([payout]).catch(() => undefined);
    });
  expect(await refused(aPayout('p-1', { amount: '99' }), 'CONFLICT')).toEqual([]);
  expect(await refused({ ...aPayout('p-3'), amount: 'x' }, 'INVALID_INPUT')).toEqual([]);
  const { keys } = connectLedger(redis, OTHER);
  await redis.hset(keys.ledger, 'format', '2');
  expect(await refused(aPayout('p-3'), 'UNSUPPORTED_FORMAT')).toEqual([]);
  await redis.hset(keys.ledger, 'format', '1');
  const both = async (producer: PayoutProducer) => {
    await producer.enqueue(aPayout('p-1', { amount: '99' })).catch(() => undefined);
    await producer.enqueueMany([aPayout('p-3')]);
  };
  expect(await warnings(OTHER, both)).toEqual([{ platformId: OTHER, text: expect.stringMatching(/^no worker has/) }]);
});

it('the door warns in its log where no worker ever served the account of a request', async () => {
  const door = await openDoor({ redisUrl: own.url, platformIds: [OTHER] });
  const create = async (body: object) => door.ask('POST', '/v1/payouts', { body });
  try {
    expect((await create(payoutBody('p-1', { amount: 'x' }))).status).toBe(400);
    const count = () => door.logged.filter(({ message }) => message.startsWith('no worker has ever served')).length;
    expect(count()).toBe(0);
    expect((await create(payoutBody('p-1'))).status).toBe(201);
    await until('the door warned', () => count() === 1);
  } finally {
    await door.close();
  }
});

it('the commands enqueue and import warn where no worker ever served the account', async () => {
  const env = { REDIS_URL: own.url, GATEWAY_PLATFORM_ID: String(OTHER) };
  const payment = ['--payout-id', 'a', '--payment-id', '7', '--amount', '1', '--address-to', 'wallet-1'];
  const enqueued = await runInProcess(['enqueue', ...payment], env);
  expect(enqueued).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('no worker has ever served account 4711'),
  });
  const file = join(own.dir, 'payouts.csv');
  await writeFile(file, 'payout_id,payment_id,amount,address_to\nb,7,1,wallet-1\n');
  const imported = await runInProcess(['import', file, '--yes'], env);
  expect(imported).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('no worker has ever served account 4711'),
  });
});

it('an account with payouts and without a worker is found by the processes of others, and its own are left out', async () => {
  await enqueue(OWN);
  expect(await find()).toEqual([]);
  await enqueue(OTHER);
  expect(await find()).toEqual([{ platformId: OTHER, payouts: 2 }]);
});

it('a worker that reports serves its account, until its report has not changed for a minute', async () => {
  await enqueue(OTHER);
  for (let at = 1; at <= 4; at += 1) {
    await report(at);
    expect(await find()).toEqual([]);
    await clock.advance(30_000);
  }
  expect(await find()).toEqual([]);
  await clock.advance(60_000);
  expect(await find()).toEqual([{ platformId: OTHER, payouts: 2 }]);
  await report(9);
  expect(await find()).toEqual([]);
});

it('an account whose payouts are all final needs no worker, and what is no account is left out', async () => {
  await enqueue(OTHER);
  const account = openLedger({ platformId: OTHER, redisUrl: own.url });
  for (const payoutId of ['p-1', 'p-2']) {
    await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled', by: 'ann', reason: 'typo' });
  }
  await account.close();
  await redis.sadd('{payouts:accounts}', 'x', '-1', '1e99', '');
  expect(await find()).toEqual([]);
});

it('a Redis that does not answer, or a key of another type, hides only this', async () => {
  await redis.set('{payouts:accounts}', 'x');
  expect(await find()).toEqual([]);
  expect(await enqueue(OTHER)).toHaveLength(1);
});

it('what exports an account says which others wait, by number', async () => {
  await enqueue(OTHER);
  const account = openLedger({ platformId: OWN, redisUrl: own.url });
  const registry = new Registry();
  exportAccounts(registry, 'notify', () => [account], 1_000);
  expect(await registry.metrics()).toContain(`payouts_unserved{platform_id="${OTHER}"} 2`);
  const reader = new Redis(own.url);
  await reader.hset(connectLedger(redis, OTHER).keys.workers, 'host:1', '{}');
  await reader.quit();
  expect(await registry.metrics()).not.toContain('payouts_unserved{');
  await account.close();
});
