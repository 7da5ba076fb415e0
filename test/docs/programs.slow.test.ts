import { readFileSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import type { PayoutEvent } from '../../src/producer/events/payout-events.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { openSampleAccount } from '../dashboard/support/sample-account.js';
import { openTestAccount } from '../ledger/support/test-account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { runCli, startProgram, type CliOptions } from '../support/cli.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest, makeFolder } from '../worker/support/close-after-test.js';
import { SECRET_KEY, worldOfTest, type PayoutWorld } from '../worker/support/payout-world.js';

/** The programs of README.md, docs/use-from-code.md and examples/, as an application has them that installed the package. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const guide = readFileSync(join(ROOT, 'docs/use-from-code.md'), 'utf8');

const ownGateway = readFileSync(join(ROOT, 'docs/own-gateway.md'), 'utf8');

const blocks = (language: string) =>
  [...readme.matchAll(/```(\w+)\n(.*?)```/gs)].flatMap(([, name, block = '']) => (name === language ? [block] : []));

/** By the name in the first line. */
const files = new Map(
  [...guide.matchAll(/```(?:ts|js)\n(\/\/ (\S+)\n.*?)```/gs)].map(([, text = '', name = '']) => [name, text]),
);

/** Blocks that need packages which only test/package installs: `npm run check:package` runs them. */
const IN_APPLICATIONS = { 'payouts.module.ts': 'nestjs', 'dashboard.ts': 'fastify' };

const TSCONFIG = {
  compilerOptions: { module: 'nodenext', target: 'es2022', lib: ['es2022', 'esnext.disposable'], strict: true },
  include: ['*.ts'],
};

let application: Awaited<ReturnType<typeof makeFolder>>;
let world: PayoutWorld;

beforeAll(async () => {
  findBuiltProgram();
  application = await makeFolder('application');
  const { dir } = application;
  const install = async (name: string, target: string) => {
    const path = join(dir, 'node_modules', name);
    await mkdir(dirname(path), { recursive: true });
    await symlink(target, path);
  };
  await install('payout-queue', ROOT);
  for (const name of ['@bull-board/api', '@types/node', 'bullmq', 'ioredis', 'pino', 'prom-client'])
    await install(name, join(ROOT, 'node_modules', name));
  await writeFile(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  for (const [name, text] of files) if (!(name in IN_APPLICATIONS)) await writeFile(join(dir, name), text);
  const [suite = '', worker = ''] = [...ownGateway.matchAll(/```ts\n(.*?)```/gs)].map(([, text = '']) => text);
  const example = readFileSync(join(ROOT, 'examples/own-gateway.ts'), 'utf8');
  for (const [name, text] of Object.entries({ 'own-gateway': example, 'acme.test': suite, 'acme-worker': worker }))
    await writeFile(join(dir, `${name}.ts`), text);
});

beforeEach(async () => {
  world = await worldOfTest({ sandbox: { balance: '112.5', settleAfterMs: 0 } });
});

afterAll(async () => application.close());

/** Starts a program for the account of the test. */
function start(program: string, args: readonly string[], { cwd = application.dir, env }: CliOptions = {}) {
  const gateway = { GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY };
  const { result, kill, waitForOutput } = startProgram(program, args, {
    cwd,
    env: { ...world.env, ...gateway, ...env },
  });
  afterTest(async () => {
    kill('SIGKILL');
    await result;
  });
  return {
    waitForOutput,
    async end(signal?: NodeJS.Signals) {
      if (signal !== undefined) kill(signal);
      const { code, stdout, stderr } = await result;
      return { code, output: stdout + stderr };
    },
  };
}

/** Runs TypeScript, by its path in the application. */
const startNode = (args: readonly string[], env: CliOptions['env'] = {}) =>
  start(process.execPath, ['--import', import.meta.resolve('tsx'), ...args], { env });

const startExample = (file: string, env?: CliOptions['env'], ...args: readonly string[]) =>
  startNode([...(file.endsWith('.test.ts') ? ['--test'] : []), join(ROOT, 'examples', file), ...args], env);

const SIGNED = {
  ...{ key: 'shop', signature: 'A'.repeat(86), audience: TEST_AUDIENCE },
  ...{ issuedAt: '2029-12-31T00:00:00.000Z', expiresAt: '2030-01-05T00:00:00.000Z' },
};
const ONE = { payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'wallet-1' };

it.each([
  ['README.md', 'invoice-77', 'cancelled, not paid: see its history\n'],
  ['enqueue.ts', 'withdrawal-88131', 'withdrawal-88131 is queued\nwithdrawal-88131 is cancelled\n'],
])('%s enqueues a payout and waits for it', async (name, payoutId, output) => {
  const printed = blocks('ts')[0] ?? '';
  const own = printed.replace('redis://127.0.0.1:6379', world.redisUrl).replace('4242', String(world.platformId));
  await writeFile(join(application.dir, 'readme.ts'), own);
  const program = name === 'README.md' ? startNode(['readme.ts']) : startExample(name);
  const cancel = async () => {
    const payout = await world.producer.get(payoutId);
    return payout !== undefined && (await world.producer.cancel(payoutId)).state === 'cancelled';
  };
  await until('it is enqueued', cancel);
  expect(await program.end()).toEqual({ code: 0, output });
});

it('README.md shows what the demo prints, apart from the figures', async () => {
  const { code, stdout, stderr } = await runCli(['demo', '--payouts', '4'], { env: { SEND_JOURNAL_DIR: world.dir } });
  expect(code).toBe(0);
  const withoutFigures = (text: string) => text.split('\n').map((line) => line.replace(/ *\d+(\.\d+)?/g, '#'));
  expect(withoutFigures(stderr + stdout)).toEqual(expect.arrayContaining(withoutFigures(blocks('text')[0] ?? '')));
});

it('README.md leads with its two blocks from an empty folder to a signed and verified payout', async () => {
  const bin = join(world.dir, 'bin');
  await mkdir(bin);
  const writeProgram = async (name: string, text: string) =>
    writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  await writeProgram('payouts', `exec "${process.execPath}" "${findBuiltProgram()}" "$@"`);
  // The Redis of the tests is in place of the one that the block starts.
  await writeProgram('redis-server', '');
  const [, prepare = '', five = ''] = blocks('sh');
  const script = [prepare.replace(/^npm install .*$/m, ''), five, 'payouts audit verify; kill $(jobs -p); wait']
    .join('\n')
    .replace('PLATFORM_ID=4242', `PLATFORM_ID=${world.platformId}`)
    .replaceAll('8080', String(await findFreePort()))
    .replace('sleep 60;', 'until payouts get first-1 | grep -q completed; do sleep 1; done;');
  const quick = { HEALTH_PORT: '0', LEASE_MS: '1500', TAKEOVER_QUARANTINE_MS: '1000', STATUS_POLL_MIN_MS: '200' };
  const env = { ...quick, PATH: `${bin}:${process.env['PATH'] ?? ''}`, SEND_JOURNAL_DIR: '' };
  const { output } = await start('bash', ['-c', script], { cwd: world.dir, env }).end();
  expect(output).toContain('No problems found');
  expect(output).toMatch(/^first-1 +completed: [^]*receipt +verified by worker worker-1\n[^]*signed by +shop\n/m);
  expect(output).toMatch(/^signatures +1 signed send: 1 verified$/m);
}, 180_000);

it('docs/use-from-code.md and docs/own-gateway.md have the types of the package', async () => {
  expect([...guide.matchAll(/^```(ts|js)$/gm)]).toHaveLength(files.size);
  const tsc = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));
  expect(await startNode([tsc, '--noEmit', '-p', '.']).end()).toEqual({ code: 0, output: '' });
});

it('docs/benchmarks.md has a step that a durable engine may run again and again, and that pays once', async () => {
  const page = readFileSync(join(ROOT, 'docs/benchmarks.md'), 'utf8');
  const [, step = ''] = /```ts\n(\/\/ pay-order\.ts\n.*?)```/s.exec(page) ?? [];
  await writeFile(join(application.dir, 'pay-order.ts'), step);
  const program = `
      import { PayoutProducer } from 'payout-queue/producer';
      import { payOrder } from './pay-order.ts';
      const platformId = Number(process.env.GATEWAY_PLATFORM_ID);
      await using producer = new PayoutProducer({ redisUrl: process.env.REDIS_URL!, platformId });
      const run = async () => payOrder(producer, 'order-1', '12.5', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf');
      console.log(...(await Promise.all([run(), run(), run()])));`;
  await writeFile(join(application.dir, 'steps.mts'), program);
  const killed = startNode(['steps.mts']);
  await until('it is enqueued', async () => (await world.producer.get('order-1')) !== undefined);
  await killed.end('SIGKILL');
  const worker = startExample('worker.ts', { HEALTH_PORT: '0' });
  for (let runs = 0; runs < 2; runs += 1)
    expect(await startNode(['steps.mts']).end()).toEqual({ code: 0, output: 'paid paid paid\n' });
  expect(world.sandbox.stats().arrivals).toBe(1);
  await worker.end('SIGTERM');
}, 120_000);

it('docs/own-gateway.md has a test of its example that passes', async () => {
  const passed = { code: 0, output: expect.stringMatching(/pass [1-9][^]*fail 0\n/) };
  expect(await startNode(['--test', 'acme.test.ts']).end()).toEqual(passed);
}, 120_000);

it.each(Object.entries(IN_APPLICATIONS))(
  'docs/use-from-code.md shows in %s what the application in test/package runs',
  (name, folder) => {
    const [, ...lines] = files.get(name)?.split('\n') ?? [];
    expect(readFileSync(join(ROOT, 'test/package', folder, name), 'utf8')).toBe(lines.join('\n'));
  },
);

it('docs/use-from-code.md enqueues, sends, follows, and stops the worker in good order', async () => {
  const worker = startNode(['worker.ts']);
  const { code, output } = await startNode(['follow.ts']).end();
  const booked = /^completed: book it as paid by \w+$/m;
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(booked) });
  expect(output).toMatch(/^invoice-77 completed at /m);
  expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
  expect((await world.producer.stats()).sender).toBeNull();
});

it('docs/use-from-code.md has a test of an application that passes, and CommonJS that runs', async () => {
  const passed = { code: 0, output: expect.stringContaining('pass 1') };
  expect(await startNode(['--test', 'payouts.test.ts']).end()).toEqual(passed);
  expect(await startNode(['require.cjs']).end()).toEqual({ code: 0, output: 'function function\n' });
});

it('docs/use-from-code.md catches errors by their classes; its Bull Board has two queues, its own parts and its deposits work', async () => {
  const program = `
      import { producer } from './payouts.ts';
      import { tryToPay } from './try-to-pay.ts';
      import { payoutQueues } from './board.ts';
      import { connection, metrics, producers } from './own.ts';
      const wallet = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
      for (const [payoutId, amount] of [['guide-1', '1'], ['guide-1', '2'], ['guide-2', '0']] as const)
        console.log(await tryToPay(payoutId, amount, wallet));
      await producer.cancel('guide-1');
      await producer.close();
      const queues = payoutQueues(process.env.REDIS_URL!, Number(process.env.GATEWAY_PLATFORM_ID));
      for (const queue of queues) console.log(queue.getName(), (await queue.getJobCounts()).completed);
      console.log((await metrics.collect([])).includes('payouts_build_info'));
      for (const each of producers) await each.close();
      console.log(await connection.ping());
      await import('./deposits.ts');
      process.exit();`;
  await writeFile(join(application.dir, 'parts.mts'), program);
  const { code, output } = await startNode(['parts.mts']).end();
  const queues = /withdraw \d+\ntransactionstatus \d+\n/.source;
  const lines = `^accepted\ndiffers in amount\namount must be .*\n${queues}true\nPONG\n[^]*address: `;
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(new RegExp(lines)) });
});

it('events.ts books each event once, also one that comes again after a crash', async () => {
  const file = join(world.dir, 'events.jsonl');
  await world.producer.enqueue(ONE);
  for await (const event of world.producer.events({ group: 'bookkeeping', consumer: hostname() })) {
    await writeFile(file, `${JSON.stringify(event)}\n`);
    // Ends the loop without acknowledging the event, as a crash does.
    break;
  }
  await world.producer.cancel('a');
  // As after an adoption, which tells a payment of a payout that was final.
  const late = {
    type: 'late_payment',
    payoutId: 'a',
    from: '',
    to: 'cancelled',
    at: '1893456000000',
    by: '',
    reason: '',
  };
  const { redis, connection } = closeAfterTest(openTestAccount(world.platformId));
  await redis.xadd(connection.keys.events, '*', ...Object.entries(late).flat());
  // So does a payout that an adoption opens again.
  const reopened = { ...late, type: 'state', from: 'cancelled', to: 'unknown', reason: 'adopted' };
  await redis.xadd(connection.keys.events, '*', ...Object.entries(reopened).flat());
  const example = startExample('events.ts', { EVENTS_FILE: file });
  await example.waitForOutput(/a: open/);
  expect(await example.end('SIGTERM')).toEqual({
    code: 0,
    output: 'a: not paid\na: paid late, perhaps twice: a person compares\na: open\n',
  });
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as PayoutEvent).final)).toEqual([false, true, true, false]);
});

it('operator.ts decides about what the records show, and leaves the rest', async () => {
  const account = closeAfterTest(await openSampleAccount());
  for (const payoutId of ['paid', 'never-received', 'sent-again', 'not-in-the-records'])
    await account.sendAs(payoutId, { kind: 'unknown', reason: 'no response' });
  const records = join(world.dir, 'records.json');
  const gatewayId = '9f86d081884c7d659a2feaa0c55ad015';
  const found = { paid: { attempt: 1, gatewayId }, 'never-received': { attempt: 1, gatewayId: null } };
  await writeFile(records, JSON.stringify(found));
  const own = { GATEWAY_PLATFORM_ID: String(account.platformId) };
  const output = 'paid is in_progress\nnever-received is queued\n';
  expect(await startExample('operator.ts', own, records, 'ticket 813').end()).toEqual({ code: 0, output });
  expect(await account.ledger.get('not-in-the-records')).toMatchObject({ state: 'unknown' });
  const key = await writePrivateKey(join(world.dir, 'olga.pem'), testKey(3));
  await account.sendAs('signed', { kind: 'unknown', reason: 'no response' }, SIGNED);
  await writeFile(records, JSON.stringify({ signed: { attempt: 1, gatewayId: null } }));
  const signing = { OPERATOR_SIGNER: key, OPERATOR_SIGNER_NAME: 'olga', PAYOUT_AUDIENCE: TEST_AUDIENCE };
  expect(await startExample('operator.ts', { ...own, ...signing }, records, 'ticket 815').end()).toMatchObject({
    ...{ code: 0, output: 'signed is queued\n' },
  });
  expect(JSON.parse((await account.ledger.get('signed'))?.act ?? '{}')).toMatchObject({ by: 'olga', attempt: 1 });
  // What was looked up is about the attempt before.
  const { redis, keys } = account.connection;
  await redis.hset(keys.payout('sent-again'), 'attempt', '2');
  await writeFile(records, JSON.stringify({ 'sent-again': { attempt: 1, gatewayId: null } }));
  expect(await startExample('operator.ts', own, records, 'ticket 814').end()).toMatchObject({ code: 1 });
  expect(await account.ledger.get('sent-again')).toMatchObject({ state: 'unknown' });
});

it('gateway.ts asks, worker.ts pays, and sandbox.test.ts passes', async () => {
  const ends = async (file: string, output: RegExp) => {
    expect(await startExample(file).end()).toEqual({ code: 0, output: expect.stringMatching(output) });
  };
  await ends('sandbox.test.ts', /pass 2\n/);
  await ends('gateway.ts', /balance: .*12\.5.*\ndeposit-17: \{.+\}\n$/);
  const worker = startExample('worker.ts', { HEALTH_PORT: '0' });
  await world.producer.enqueue(ONE);
  expect(await world.producer.waitFor('a', { timeoutMs: 60_000 })).toMatchObject({ state: 'completed' });
  expect(await worker.end('SIGTERM')).toEqual({ code: 0, output: expect.stringContaining('worker ended') });
});

it.each([
  ['books what a worker signed as paid', true, 0, /^withdrawal-88132 is paid: \S+\n$/],
  ['books nothing else', false, 1, /^withdrawal-88132 is shown as completed, and not booked: no worker/],
])('signing/pay-signed.ts %s', async (_, isSigned, code, printed) => {
  const [shop, worker] = [testKey(1), testKey(2)];
  const pathOf = (name: string) => join(world.dir, name);
  const keys = [keyEntry(shop), keyEntry(worker, { name: 'worker-1', role: 'worker', person: 'Host 1' })];
  const PAYOUT_KEYS_FILE = await writeKeyring(pathOf('keys.json'), keys);
  const PAYOUT_WORKER_SIGNER = await writePrivateKey(pathOf('worker.pem'), worker);
  const workerKey = isSigned && { PAYOUT_WORKER_SIGNER, PAYOUT_WORKER_SIGNER_NAME: 'worker-1' };
  const sending = world.startWorker({ environment: { PAYOUT_KEYS_FILE, ...workerKey } });
  // What was signed before the worker's journal was begun is held.
  await sending.said('acquired sender lease');
  const PAYOUT_SIGNER = await writePrivateKey(pathOf('shop.pem'), shop);
  const own = { PAYOUT_AUDIENCE: TEST_AUDIENCE, PAYOUT_KEYS_FILE, PAYOUT_SIGNER };
  const output = expect.stringMatching(printed);
  expect(await startExample('signing/pay-signed.ts', own).end()).toEqual({ output, code });
});
