import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { startOwnRedis } from './support/own-redis.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** A real worker process reads its keyring again on SIGHUP, without a restart. */

const [SHOP, NEW_SHOP] = [testKey(1), testKey(2)];
const WAIT = { timeoutMs: 40_000 };
const READ_AGAIN = 'the keyring was read again';
const NOT_READ = 'the keyring could not be read again';

let world: PayoutWorld;
let worker: WorkerProcess;
let dir: string;
let port: number;
const producers: PayoutProducer[] = [];

const keysFile = (): string => join(dir, 'keys.json');

async function writeKeys(...keys: readonly KeyEntry[]): Promise<void> {
  await writeFile(keysFile(), JSON.stringify({ version: 1, keys }), { mode: 0o600 });
}

const count = (text: string): number => worker.log().split(text).length - 1;

/** Has the worker read its keyring again. @param said - what it logs once it did */
async function reload(said: string): Promise<void> {
  const before = count(said);
  worker.kill('SIGHUP');
  await until(`the worker logs "${said}":\n${worker.log()}`, () => count(said) > before);
}

function producerWith(name: string, privateKey: typeof SHOP): PayoutProducer {
  const { redisUrl, platformId } = world;
  const producer = new PayoutProducer({
    redisUrl,
    platformId,
    audience: TEST_AUDIENCE,
    signingKey: { name, privateKey },
  });
  producers.push(producer);
  return producer;
}

async function enqueue(producer: PayoutProducer, payoutId: string, waitMs = 0): Promise<void> {
  const notBefore = waitMs === 0 ? {} : { notBefore: new Date(Date.now() + waitMs).toISOString() };
  const addressTo = `wallet-${payoutId}xxxxxxxxxxxxxxxxxxxxxxxxxxxx`;
  await producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo, ...notBefore });
}

const get = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
const failed = async (): Promise<number | undefined> => readMetric(await get('/metrics'), 'payouts_keys_reload_failed');

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-reload-'));
  world = await openWorld();
  port = await findFreePort();
  await writeKeys(keyEntry(SHOP));
  worker = world.startWorker({ environment: { PAYOUT_KEYS_FILE: keysFile(), HEALTH_PORT: String(port) } });
  // What was signed before the worker's journal was begun is held.
  await until('it sends', () => worker.log().includes('acquired sender lease'));
}, 30_000);

afterAll(async () => {
  await endAllWorkers();
  await Promise.all(producers.map(async (each) => each.close()));
  await world.close();
  await rm(dir, { recursive: true, force: true });
});

it('a key that was revoked signs nothing any more, also what is queued, and a new one does', async () => {
  const shop = producerWith('shop', SHOP);
  await enqueue(shop, 'before');
  expect(await shop.waitFor('before', WAIT)).toMatchObject({ state: 'completed' });
  await enqueue(shop, 'queued', 5_000);
  const added = keyEntry(NEW_SHOP, { name: 'shop-2' });
  await writeKeys(keyEntry(SHOP, { revoked: true }), added);
  await reload(READ_AGAIN);
  expect((await shop.get('queued'))?.state).toBe('queued');
  expect(await shop.waitFor('queued', WAIT)).toMatchObject({ state: 'held', held: { reason: 'revoked_key' } });

  const newShop = producerWith('shop-2', NEW_SHOP);
  await enqueue(newShop, 'after');
  expect(await newShop.waitFor('after', WAIT)).toMatchObject({ state: 'completed' });
  expect(await failed()).toBe(0);
}, 60_000);

it.each([
  ['makes no sense', async () => writeFile(keysFile(), 'version: 2'), 'must be 1'],
  ['is gone', async () => rm(keysFile()), 'cannot be read'],
  [
    'others can write',
    async () => {
      await writeKeys(keyEntry(SHOP, { name: 'thief' }));
      await chmod(keysFile(), 0o666);
    },
    'is not trusted',
  ],
])(
  'a file that %s changes nothing, and is told',
  async (name, breakIt, words) => {
    await writeKeys(keyEntry(SHOP));
    await chmod(keysFile(), 0o600);
    await reload(READ_AGAIN);
    await breakIt();
    await reload(NOT_READ);
    expect(await failed()).toBe(1);
    expect(await get('/readyz')).toContain('The keyring could not be read again, and the one before still counts');
    expect(await get('/readyz')).toContain(words);
    const shop = producerWith('shop', SHOP);
    const payoutId = name.replaceAll(' ', '-');
    await enqueue(shop, payoutId);
    expect(await shop.waitFor(payoutId, WAIT)).toMatchObject({ state: 'completed' });

    await rm(keysFile(), { force: true });
    await writeKeys(keyEntry(SHOP));
    await reload(READ_AGAIN);
    expect(await failed()).toBe(0);
  },
  60_000,
);

it('a worker that still waits for Redis reads it again once it has started', async () => {
  const redis = await startOwnRedis();
  try {
    await redis.stop();
    const journalDir = join(dir, 'waiting');
    const environment = { PAYOUT_KEYS_FILE: keysFile() };
    const waiting = world.startWorker({ redisUrl: redis.url, journalDir, environment });
    await until('it waits', () => waiting.log().includes('Redis unavailable'));
    waiting.kill('SIGHUP');
    await redis.startAgain();
    await until(`it reads it again:\n${waiting.log()}`, () => waiting.log().includes(READ_AGAIN));
    await waiting.end();
  } finally {
    await redis.close();
  }
}, 90_000);
