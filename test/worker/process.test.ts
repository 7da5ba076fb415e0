import { chmod, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { StoppedError } from '../../src/base/errors.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { createPayoutWorker } from '../../src/control/payout-worker.js';
import { writeKeyring } from '../control/support/key-files.js';
import { keyEntry, type KeyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { adoptJournal, SIGNING, writeKeyFiles } from '../proofs/signing.js';
import { cents } from '../support/account.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest, folderOfTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { openWorkerIn, untilLeased, untilSent, untilSettled, worldOfTest } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import type { WorkerProcess } from './support/worker-process.js';
import { keySigner } from '../../src/control/keys/signing-key.js';

const NOBODY_THERE = 'redis://127.0.0.1:1';
const ACCOUNT = { platformId: 4242, baseUrl: 'http://127.0.0.1:1', secretKey: 'k-start' };

async function stop(worker: WorkerProcess, signal: NodeJS.Signals = 'SIGTERM') {
  worker.kill(signal);
  expect(await worker.ended).toBe(0);
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'a worker that waits for Redis at the start ends with 0 on %s',
  async (signal) => {
    const worker = (await worldOfTest()).startWorker({ redisUrl: NOBODY_THERE });
    await worker.said('waiting for Redis');
    await stop(worker, signal);
    expect(worker.log()).toMatch(/"msg":"worker stopped"/);
  },
);

it('a worker inside an application leaves no journal where it is stopped early, and refuses an account twice', async () => {
  const journalDir = await folderOfTest('start');
  const options = { redisUrl: NOBODY_THERE, accounts: [ACCOUNT], journalDir };
  await expect(createPayoutWorker(options, AbortSignal.timeout(300))).rejects.toThrow(StoppedError);
  expect(await readdir(journalDir)).toEqual([]);
  const twice = createPayoutWorker({ ...options, accounts: [ACCOUNT, ACCOUNT] });
  await expect(twice).rejects.toThrow('accounts: must name each platformId once (4242 is there twice)');
});

it('SIGUSR1 opens no inspector in any process, and a worker works on', async () => {
  const world = await worldOfTest();
  const { platformId } = world;
  const environment = await world.writeAccounts([platformId, platformId + 1].map((id) => ({ platformId: id })));
  const worker = world.startWorker({ args: ['--processes', '2'], environment });
  await until('both serve', () => worker.log().split('serving /healthz').length > 2);
  const pids = new Set([...worker.log().matchAll(/"pid":(\d+)/g)].map(([, pid]) => Number(pid)));
  expect(pids.size).toBe(3);
  for (const pid of pids) process.kill(pid, 'SIGUSR1');
  await world.enqueue(1);
  await untilSettled(world, 1);
  expect(worker.log()).not.toMatch(/debugger/i);
  await stop(worker);
});

it('payouts that are held take no second from those behind them', async () => {
  const world = await worldOfTest();
  await adoptJournal(join(world.dir, 'journal'), world.platformId);
  const { workerEnvironment: environment } = await writeKeyFiles(world.dir);
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...SIGNING }));
  await world.enqueue(60, 'U');
  await producer.enqueueMany(cents(['S-1']));
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  // A second for each would be 60 s.
  await until('the signed one is completed', async () => (await producer.stats()).completed === 1, 45_000);
  expect((await producer.stats()).held).toBe(60);
});

type Where = Omit<RedisOptions, 'replyMapping'>;

const HOSTILE: Where = {
  ...{ lazyConnect: true, enableOfflineQueue: false },
  ...{ maxRetriesPerRequest: 50, commandTimeout: 1, connectTimeout: 1 },
  ...{ reconnectOnError: () => 2, retryStrategy: () => null },
};

it('a worker pays where a connection of the application goes, and does not use it', async () => {
  const { url, dir } = closeAfterTest(await startOwnRedis(['--unixsocket', 'redis.sock']));
  const port = Number(new URL(url).port);
  const admin = new Redis(port);
  await admin.call('ACL', 'SETUSER', 'shop', 'on', '>pw', 'allkeys', 'allcommands', 'allchannels');
  await admin.config('SET', 'requirepass', 'other');
  admin.disconnect();
  const user = { username: 'shop', password: 'pw' };
  const pay = async (where: Where, db: number, status: string) => {
    const connection = new Redis({ ...where, ...user, db });
    if (status === 'ready') await connection.subscribe('news');
    const world = await worldOfTest({ redis: { url: `redis://shop:pw@127.0.0.1:${port}/${db}` } });
    await world.enqueue(1);
    await openWorkerIn(world, { connection });
    await until('it is paid', async () => (await world.producer.stats()).completed === 1);
    expect(connection.status).toBe(status);
    connection.disconnect();
  };
  await pay({ path: join(dir, 'redis.sock'), ...HOSTILE }, 3, 'wait');
  // An open one stays open.
  await pay({ port, maxRetriesPerRequest: null }, 0, 'ready');
});

const [SHOP, NEW_SHOP] = [testKey(1), testKey(2)];
const WAIT = { timeoutMs: 40_000 };

async function reload(worker: WorkerProcess, said: string) {
  const count = () => worker.log().split(said).length - 1;
  const before = count();
  worker.kill('SIGHUP');
  await until(
    () => `the worker logs "${said}":\n${worker.log()}`,
    () => count() > before,
  );
}

it('a revoked key signs nothing any more, a new one does; a bad file changes nothing', async () => {
  const world = await worldOfTest();
  const file = join(world.dir, 'keys.json');
  const write = async (...keys: KeyEntry[]) => {
    await rm(file, { force: true });
    return writeKeyring(file, keys);
  };
  await write(keyEntry(SHOP));
  const worker = world.startWorker({ environment: { PAYOUT_KEYS_FILE: file } });
  // What was signed before the worker's journal was begun is held.
  await untilLeased(worker);
  const failed = async () => readMetric((await worker.get('/metrics')).body, 'payouts_keys_reload_failed');
  const producerWith = (name: string, privateKey: typeof SHOP) =>
    closeAfterTest(
      new PayoutProducer({ ...world.account, audience: TEST_AUDIENCE, signer: keySigner(name, privateKey) }),
    );
  const pay = async (producer: PayoutProducer, payoutId: string) => {
    await producer.enqueueMany(cents([payoutId]));
    expect(await producer.waitFor(payoutId, WAIT)).toMatchObject({ state: 'completed' });
  };
  const shop = producerWith('shop', SHOP);

  await write(keyEntry(SHOP, { name: 'thief' }));
  await chmod(file, 0o666);
  await reload(worker, 'the keyring could not be read again');
  expect(await failed()).toBe(1);
  expect((await worker.get('/readyz')).body).toMatch(/The keyring could not be read again, .*is not trusted/);
  await pay(shop, 'P-1');
  const notBefore = new Date(Date.now() + 5_000);
  await shop.enqueueMany(cents(['Q-1']).map((payout) => ({ ...payout, notBefore })));
  await write(keyEntry(SHOP, { revoked: true }), keyEntry(NEW_SHOP, { name: 'shop-2' }));
  await reload(worker, 'the keyring was read again');
  expect(await failed()).toBe(0);
  expect(await shop.waitFor('Q-1', WAIT)).toMatchObject({ state: 'held', held: { reason: 'revoked_key' } });
  await pay(producerWith('shop-2', NEW_SHOP), 'R-1');
}, 120_000);

it('the policy that was read last decides, and a bad one changes nothing', async () => {
  const world = await worldOfTest();
  const file = join(world.dir, 'policy.yaml');
  const write = async (limit: string, mode = 0o600) => {
    const rule = `{ name: small, when: { paymentId: [1] }, cap: { amount: ${limit} }, over: refuse }`;
    await writeFile(file, `{ version: 1, platformId: ${world.platformId}, default: hold, rules: [${rule}] }`);
    await chmod(file, mode);
  };
  await write('0.01');
  const worker = world.startWorker({ environment: { PAYOUT_POLICY_FILE: file } });
  await untilLeased(worker);
  const decide = async (payoutId: string, decided: object) => {
    await world.producer.enqueueMany(cents([payoutId]));
    expect(await world.producer.waitFor(payoutId, WAIT)).toMatchObject(decided);
  };
  await write('0.009');
  await reload(worker, 'the policy was read again');
  await decide('Q-1', { state: 'held', held: { rule: 'small', reason: 'refuse' } });
  await write('0.01', 0o666);
  await reload(worker, 'the policy could not be read again');
  expect((await worker.get('/readyz')).body).toMatch(/The policy could not be read again, .*is not trusted/);
  await decide('R-1', { state: 'held' });
}, 120_000);

it('a worker of another gateway pays nothing until the ledger is bound to it; then the former refuses', async () => {
  const world = await worldOfTest({ sandbox: { settleAfterMs: 3_000 } });
  const staging = (await worldOfTest({ platformIds: [world.platformId] })).sandbox;
  const audienceOf = (url: string) => `${url}#${world.platformId}`;
  // Without PAYOUT_AUDIENCE: the gateway's URL and the account say which it is.
  const environment = { PAYOUT_AUDIENCE: '' };
  const first = world.startWorker({ environment });
  await world.enqueue(6);
  await untilSent(world, 1);
  const before = audienceOf(world.sandbox.url);
  const other = world.startWorker({ baseUrl: staging.url, journalDir: join(world.dir, 'staging'), environment });
  await until('it says that the ledger is of another gateway', async () => {
    const { status, body } = await other.get('/readyz');
    return status === 503 && [before, audienceOf(staging.url)].every((each) => body.includes(each));
  });
  await stop(first);
  // Longer than a lease, its quarantine and some polls.
  await delay(6_000);
  expect(await world.producer.stats()).toMatchObject({ sender: null, objections: [] });
  const second = world.startWorker({ environment });
  await untilLeased(second);
  await untilSettled(world, 6);
  expect(staging.stats().arrivals).toBe(0);
  const env = { ...world.env, ...environment, GATEWAY_BASE_URL: staging.url };
  const adopted = await runCli(['adopt-ledger', '--gateway', '--reason', 'moved', '--yes', '--json'], { env });
  expect(JSON.parse(adopted.stdout)).toEqual({ audience: audienceOf(staging.url), before, changed: true });
  await world.enqueue(2, 'Q');
  // The former sender finds out at its next begin, and gives the lease back.
  await untilSettled(world, 8);
  expect([world.sandbox.stats().arrivals, staging.stats().arrivals]).toEqual([6, 2]);
  await second.said('the ledger is of another gateway');
  expect((await other.get('/readyz')).status).toBe(200);
}, 90_000);
