import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import picocolors from 'picocolors';
import type { CliContext } from '../../../src/cli/context/cli-context.js';
import { registerDoctorCommand } from '../../../src/cli/commands/doctor-command.js';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { runProgram } from '../../../src/cli/context/run-program.js';
import { silentLogger } from '../../../src/logger.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { PayoutProducer } from '../../../src/producer/payout-producer.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../../src/local-redis.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { createPayoutWorker } from '../../../src/worker/payout-worker.js';
import { untilReply } from '../../support/redis-cluster.js';

const SECRET_KEY = 'k-doctor-9876543210';
const platformId = 100_000 + Math.floor(Math.random() * 1_000_000_000);
const prefix = `{payouts:${platformId}}`;

let redis: LocalRedis;
let client: Redis;
let sandbox: Sandbox;
let dir: string;
let environment: Record<string, string>;

beforeAll(async () => {
  redis = await startLocalRedis();
  client = new Redis(redis.url);
  sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY }] });
});

afterAll(async () => {
  await sandbox.close();
  await client.quit();
  await redis.stop();
});

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-'));
  environment = {
    REDIS_URL: redis.url,
    GATEWAY_PLATFORM_ID: String(platformId),
    GATEWAY_BASE_URL: sandbox.url,
    GATEWAY_SECRET_KEY: SECRET_KEY,
    SEND_JOURNAL_DIR: join(dir, 'journal'),
  };
});

afterEach(async () => {
  const keys = await client.keys(`${prefix}*`);
  if (keys.length > 0) await client.del(keys);
  await rm(dir, { recursive: true, force: true });
});

interface Examination {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(...args: string[]): Promise<Examination> {
  let out = '';
  let err = '';
  const write = (text: string): void => void (out += text);
  const context: CliContext = {
    environment,
    colours: picocolors.createColors(false),
    logger: silentLogger,
    terminal: { input: process.stdin, output: process.stderr },
    write,
    writeJson: (value) => {
      write(`${JSON.stringify(value)}\n`);
    },
    writeError: (text) => void (err += text),
    stopSignal: () => new AbortController().signal,
    loadSandboxAccount: () => ({ platformId, secretKey: SECRET_KEY }),
  };
  const groups = [{ heading: 'Run:', commands: [registerDoctorCommand] }];
  const code = await runProgram(groups, ['doctor', ...args], context);
  return { code, out, err };
}

/** Runs it with a changed environment and returns what it did not find in order. */
async function findings(changes: Record<string, string> = {}): Promise<{ code: number; found: CheckResult[] }> {
  Object.assign(environment, changes);
  const { code, out } = await run('--json');
  expect(out).not.toContain(SECRET_KEY);
  const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: CheckResult[] };
  expect(ok).toBe(code === 0);
  const found = checks.filter(({ status }) => status !== 'ok');
  for (const { fix } of found) expect(fix).toMatch(/^.{20,}$/);
  return { code, found };
}

const NOBODY_SENDS = expect.objectContaining({ name: 'sender', status: 'warning' });

function theProblem(name: string, detail: string): unknown {
  return expect.objectContaining({ name, status: 'problem', detail: expect.stringContaining(detail) });
}

describe('payouts doctor, where all is well', () => {
  it('says so line by line, and leaves Redis and the folder as they were', async () => {
    const { code, out, err } = await run();
    expect([code, err]).toEqual([0, '']);
    const lines = out.split('\n').filter((line) => line !== '');
    expect(lines.filter((line) => line.startsWith('✓')).map((line) => line.slice(2, 27).trim())).toEqual([
      'Redis',
      'Redis keeps its data',
      'Redis replicas',
      'Redis latency',
      'system clock',
      'journal folder',
      'gateway connection',
      'gateway account',
      'gateway currencies',
      'journal and ledger',
      'withdraw queue',
      'transactionstatus queue',
      'withdraw jobs',
      'status jobs',
      'pause',
      'unknown payouts',
    ]);
    expect(out).toContain('! sender                   no process sends for the account\n');
    expect(out).toContain('\n                           → Start `payouts worker`.\n');
    expect(lines.at(-1)).toBe('Payouts can be sent; 1 warning.');
    expect(await client.keys(`${prefix}*`)).toEqual([]);
    expect(await readdir(dir)).toEqual([]);
  });

  it('sees the sender alive, and leaves its journal alone', async () => {
    const journalDir = join(dir, 'journal');
    const worker = await createPayoutWorker({
      redisUrl: redis.url,
      journalDir,
      accounts: [{ platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, leaseMs: 1_000, quarantineMs: 1_000 }],
    });
    try {
      const giveUpAt = performance.now() + 10_000;
      while (worker.accounts[0]?.status.role !== 'sender' && performance.now() < giveUpAt) await clockTick();
      const journal = join(journalDir, `${platformId}.journal`);
      // A line that is being written: opening the journal would end it as a torn one.
      await writeFile(journal, '{"payoutId":', { flag: 'a' });
      const before = await readFile(journal, 'utf8');
      const { code, out } = await run();
      expect(out).toMatch(/✓ sender {19}\S+:\d+:\w+ \(epoch 1\), its beat moved within \d\.\d s\n/);
      expect(out).toMatch(/✓ journal and ledger {7}they agree on 0 sends\n/);
      expect([code, out.trimEnd().split('\n').at(-1)]).toEqual([0, 'All is well.']);
      expect(await readFile(journal, 'utf8')).toBe(before);
      expect(await readdir(journalDir)).toEqual([`${platformId}.journal`]);
    } finally {
      await worker.stop();
    }
  });
});

describe('payouts doctor finds', () => {
  it('a wrong key', async () => {
    const { code, found } = await findings({ GATEWAY_SECRET_KEY: 'another-key' });
    expect([code, found]).toEqual([1, [theProblem('gateway account', 'wrong signature'), NOBODY_SENDS]]);
  });

  it('a gateway that cannot be reached', async () => {
    const { code, found } = await findings({ GATEWAY_BASE_URL: `http://127.0.0.1:${await findFreePort()}` });
    expect([code, found]).toEqual([1, [theProblem('gateway connection', 'ECONNREFUSED'), NOBODY_SENDS]]);
  });

  it('something else in the place of the gateway', async () => {
    sandbox.setFaults([{ kind: 'wrong-json', endpoint: 'any' }]);
    const { code, found } = await findings();
    sandbox.setFaults([]);
    expect([code, found]).toEqual([1, [theProblem('gateway account', 'not as documented'), NOBODY_SENDS]]);
  });

  it('a Redis without persistence', async () => {
    await client.config('SET', 'appendonly', 'no');
    try {
      const { code, found } = await findings();
      expect([code, found]).toEqual([1, [theProblem('Redis keeps its data', 'appendonly is off'), NOBODY_SENDS]]);
      const accepted = await findings({ ALLOW_VOLATILE_REDIS: 'true' });
      expect(accepted.code).toBe(0);
      expect(accepted.found[0]).toMatchObject({ name: 'Redis keeps its data', status: 'warning' });
    } finally {
      await client.config('SET', 'appendonly', 'yes');
      // Until its first file is complete, a restart would forget what is in it, and doctor says so.
      await untilReply(client, 'INFO persistence', /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/);
    }
  });

  it('a Redis that skips the sync of its file during a save', async () => {
    await client.config('SET', 'no-appendfsync-on-rewrite', 'yes');
    const { code, found } = await findings();
    await client.config('SET', 'no-appendfsync-on-rewrite', 'no');
    expect([code, found]).toEqual([
      1,
      [theProblem('Redis keeps its data', 'no-appendfsync-on-rewrite is on'), NOBODY_SENDS],
    ]);
  });

  it('replicas that are missing, and a number of them that cannot be', async () => {
    const { code, found } = await findings({ REDIS_REPLICAS: '2' });
    expect([code, found]).toEqual([
      1,
      [theProblem('Redis replicas', 'only 0 of 2 acknowledge writes, so nothing is sent'), NOBODY_SENDS],
    ]);
    expect(found[0]?.fix).toContain('"Replicas" in docs/redis.md');
    expect(await findings({ ALLOW_VOLATILE_REDIS: 'true' })).toMatchObject({
      code: 0,
      found: [{ name: 'Redis replicas', status: 'warning' }, NOBODY_SENDS],
    });
    Object.assign(environment, { REDIS_REPLICAS: 'two' });
    expect(await run('--json')).toMatchObject({ code: 2, err: expect.stringContaining('REDIS_REPLICAS') });
  });

  it('a Redis that evicts', async () => {
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { code, found } = await findings();
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    expect([code, found]).toEqual([1, [theProblem('Redis keeps its data', 'allkeys-lru'), NOBODY_SENDS]]);
  });

  it('a Redis that is away, and looks at all the rest', async () => {
    const { code, found } = await findings({ REDIS_URL: `redis://:hidden-word@127.0.0.1:${await findFreePort()}` });
    expect([code, found]).toEqual([1, [theProblem('Redis', 'ECONNREFUSED')]]);
    expect(JSON.stringify(found)).not.toContain('hidden-word');
  });

  it('a wrong Redis password', async () => {
    await client.config('SET', 'requirepass', 'right-word');
    const { code, found } = await findings({ REDIS_URL: redis.url.replace('//', '//:wrong-word@') });
    await client.config('SET', 'requirepass', '');
    expect([code, found]).toEqual([1, [theProblem('Redis', 'WRONGPASS')]]);
    expect(JSON.stringify(found)).not.toContain('wrong-word');
  });

  it('a journal folder that cannot be written', async () => {
    await writeFile(join(dir, 'a-file'), '');
    const { code, found } = await findings({ SEND_JOURNAL_DIR: join(dir, 'a-file', 'journal') });
    expect(code).toBe(1);
    expect(found[0]).toEqual(theProblem('journal folder', 'ENOTDIR'));
  });

  it('a journal of another ledger, and one that makes no sense', async () => {
    const journal = join(dir, `${platformId}.journal`);
    await writeFile(journal, '{"ledgerId":"of-another-redis","epoch":3,"sends":9}\n');
    const other = await findings({ SEND_JOURNAL_DIR: dir });
    expect([other.code, other.found]).toEqual([
      1,
      [theProblem('journal and ledger', 'of-another-redis'), NOBODY_SENDS],
    ]);
    await writeFile(journal, 'nonsense\n');
    const broken = await findings();
    expect([broken.code, broken.found]).toEqual([
      1,
      [theProblem('journal and ledger', 'cannot be read'), NOBODY_SENDS],
    ]);
  });

  it.each(['withdraw', 'transactionstatus'])('what was set on the %s queue, and its advice helps', async (name) => {
    const queue = new Queue(name, { connection: { url: redis.url }, prefix });
    await queue.setGlobalConcurrency(5);
    await queue.setGlobalRateLimit(100, 1_000);
    await queue.pause();
    await client.set(queue.toKey('limiter'), '7');
    await queue.close();
    const { code, found } = await findings();
    expect([code, found]).toEqual([1, [theProblem(`${name} queue`, 'global concurrency of 5'), NOBODY_SENDS]]);
    const detail = found[0]?.detail ?? '';
    for (const part of ['global rate limit (100 in 1000 ms)', 'paused', 'never expires'])
      expect(detail).toContain(part);

    for (const [, command = '', key = '', fields = ''] of found[0]?.fix?.matchAll(
      /redis-cli (HDEL|DEL) '([^']+)'((?: (?!&&)\S+)*)/g,
    ) ?? []) {
      await client.call(command, key, ...fields.split(' ').filter((field) => field !== ''));
    }
    expect((await findings()).found).toEqual([NOBODY_SENDS]);
  });

  it('a queue that is held back by hand', async () => {
    const queue = new Queue('withdraw', { connection: { url: redis.url }, prefix });
    await queue.rateLimit(60_000);
    await queue.close();
    const { code, found } = await findings();
    expect([code, found]).toEqual([1, [theProblem('withdraw queue', 'held back by hand for another'), NOBODY_SENDS]]);
  });

  it('payouts without a job, whichever structure of the queue is gone', async () => {
    const account = openAccount({ platformId, redisUrl: redis.url });
    const producer = new PayoutProducer({ platformId, redisUrl: redis.url });
    const { withdraw, transactionstatus } = account.queues;
    try {
      const payout = (payoutId: string) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` });
      await producer.enqueueMany([
        payout('plain'),
        { ...payout('urgent'), priority: 1 },
        { ...payout('later'), notBefore: new Date(Date.now() + 3_600_000) },
        payout('polled'),
      ]);
      await account.ledger.change({ payoutId: 'polled', from: 'queued', to: 'sending' });
      await account.ledger.change({ payoutId: 'polled', from: 'sending', to: 'in_progress', txhash: 'h' });
      // Its job has yet to be added, and its old one has yet to end: neither is a loss.
      expect((await findings()).found).toEqual([NOBODY_SENDS]);
      await account.queues.removeWithdrawJob({ payoutId: 'polled' });
      await account.queues.addStatusJobs([payout('polled')], 60_000);
      await account.ledger.clearOutbox('in_progress', ['polled']);
      const before = await client.dbsize();
      expect((await run()).out).toMatch(
        /✓ withdraw jobs {12}3 jobs for 3 payouts\n.*✓ status jobs {14}1 job for 1 payout\n/,
      );

      for (const [queue, structure] of [
        [withdraw, 'wait'],
        [withdraw, 'prioritized'],
        [withdraw, 'delayed'],
        [transactionstatus, 'delayed'],
      ] as const) {
        const key = queue.toKey(structure);
        await client.rename(key, 'elsewhere');
        const { code, found } = await findings();
        const name = queue === withdraw ? 'withdraw jobs' : 'status jobs';
        const missing = expect.objectContaining({ name, status: 'warning', detail: expect.stringContaining('1 of') });
        expect([code, found]).toEqual([0, [NOBODY_SENDS, missing]]);
        await client.rename('elsewhere', key);
      }
      expect((await findings()).found).toEqual([NOBODY_SENDS]);
      expect(await client.dbsize()).toBe(before);
    } finally {
      await producer.close();
      await account.close();
    }
  });

  it('payouts without a job beside a worker, which will repair it', async () => {
    const account = openAccount({ platformId, redisUrl: redis.url });
    const producer = new PayoutProducer({ platformId, redisUrl: redis.url });
    await account.ledger.pause('anna', 'to keep them waiting');
    const worker = await createPayoutWorker({
      redisUrl: redis.url,
      journalDir: join(dir, 'journal'),
      accounts: [{ platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, leaseMs: 1_000, quarantineMs: 0 }],
    });
    try {
      const isActive = async () => (await account.queues.withdraw.getActiveCount()) === 1;
      await producer.enqueueMany(
        ['P-1', 'P-2', 'P-3'].map((payoutId) => ({ payoutId, paymentId: 1, amount: '1', addressTo: `w-${payoutId}` })),
      );
      while (!(await isActive())) await clockTick();
      expect((await findings()).found).toEqual([theProblem('pause', 'to keep them waiting')]);
      await client.del(account.queues.withdraw.toKey('wait'));
      const { code, found } = await findings();
      expect([code, found[0]]).toEqual([1, theProblem('withdraw jobs', '2 of 3 payouts have no job')]);
      expect(found[0]?.fix).toContain('within a minute');
    } finally {
      await worker.stop();
      await producer.close();
      await account.close();
    }
  });

  it('a paused account', async () => {
    const account = openAccount({ platformId, redisUrl: redis.url });
    await account.ledger.pause('anna', 'gateway maintenance');
    await account.close();
    const { code, found } = await findings();
    expect([code, found]).toEqual([1, [NOBODY_SENDS, theProblem('pause', 'gateway maintenance (by anna)')]]);
  });

  it('a sender that gives no sign of life, and unknown payouts', async () => {
    await client.hset(`${prefix}:sender`, { owner: 'gone:1:abc', epoch: 4, beat: 17, released: 0 });
    await client.zadd(`${prefix}:state:unknown`, 1, 'P-1');
    await client.hset(`${prefix}:payout:P-1`, { state: 'unknown', n: 1, h0: `${Date.now() - 120_000}\tunknown` });
    const { code, found } = await findings();
    expect([code, found]).toEqual([
      0,
      [
        expect.objectContaining({
          detail: expect.stringMatching(/^gone:1:abc \(epoch 4\) gave no sign of life for 2/),
        }),
        expect.objectContaining({ detail: '1 may or may not have been sent, the oldest for 2 min' }),
      ],
    ]);
  });

  it('nothing without the environment that the worker needs', async () => {
    environment = { REDIS_URL: redis.url };
    const { code, out, err } = await run();
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('GATEWAY_SECRET_KEY');
  });

  it('in every account of an accounts file', async () => {
    const file = join(dir, 'accounts.json');
    await writeFile(join(dir, 'right'), SECRET_KEY);
    await writeFile(join(dir, 'wrong'), 'another-key');
    const accounts = [
      { platformId, baseUrl: sandbox.url, secretKeyFile: 'right' },
      { platformId: platformId + 1, baseUrl: sandbox.url, secretKeyFile: 'wrong' },
    ];
    await writeFile(file, JSON.stringify(accounts));
    environment['PAYOUT_ACCOUNTS_FILE'] = file;
    const { code, out } = await run();
    expect(code).toBe(1);
    expect(out).toContain(`✓ gateway account          ${platformId}: platform id and secret key are right`);
    expect(out).toContain(`✗ gateway account          ${platformId + 1}: The gateway refused /balance`);
  });
});

async function clockTick(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
