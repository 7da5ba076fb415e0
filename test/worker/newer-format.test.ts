import { afterEach, expect, it } from '@jest/globals';
import { connectLedger, type LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { silentLogger, type Logger } from '../../src/base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { startWatchedWorker, type WatchedWorker } from './support/watched-worker.js';
import { until } from '../support/until.js';

const REASON = /^The ledger in Redis has format 5; this version of payout-queue reads formats 1 to 4\./;
/** Longer than the worker takes to get the lease, or to look again at what it refuses. */
const WHILE_MS = 4_000;

let watched: WatchedWorker;
let redis: RedisClient;
let account: LedgerConnection;

afterEach(async () => {
  await redis.unlink(...(await redis.keys(`${account.keys.prefix}:*`)));
  await closeRedis(redis);
});

const statusOf = () => watched.worker.accounts[0]?.status;

async function readKeys(): Promise<unknown> {
  const { ledger, sender, journals, objections, outbox } = account.keys;
  return Promise.all([
    ...[ledger, sender, journals, objections].map(async (key) => redis.hgetall(key)),
    redis.zrange(outbox, '0', '-1'),
  ]);
}

it('a worker refuses a ledger of a newer format, says so once, sends nothing and leaves it as it is', async () => {
  const errors: string[] = [];
  const error = (fields: object, message: string): void => void errors.push(`${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { ...silentLogger, error, child: () => logger };
  redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
  watched = await startWatchedWorker({
    logger,
    prepare: async (_, platformId) => {
      account = connectLedger(redis, platformId);
      await new PayoutLedger(account).enqueue([aPayout('P-1')]);
      await redis.hset(account.keys.ledger, 'format', '5');
    },
  });
  const before = await readKeys();
  await until('the role refused', () => statusOf()?.role === 'refused');
  await new Promise((resolve) => setTimeout(resolve, WHILE_MS));

  expect(statusOf()).toEqual({ role: 'refused', reason: expect.stringMatching(REASON) });
  const response = await fetch(`${watched.url}/readyz`);
  expect([response.status, await response.json()]).toMatchObject([
    503,
    { ready: false, redis: 'up', accounts: [{ role: 'refused', reason: expect.stringMatching(REASON), stopped: [] }] },
  ]);
  expect(await watched.metric('payouts_sending_refused')).toBe(1);
  expect(errors).toEqual([
    expect.stringMatching(/^this process sends nothing.*newer version \{"reason":"The ledger in/),
  ]);
  expect(watched.sandbox.stats().arrivals).toBe(0);
  expect(await readKeys()).toEqual(before);
});
