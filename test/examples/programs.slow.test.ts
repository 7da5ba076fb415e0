import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import type { PayoutEvent } from '../../src/producer/events/payout-events.js';
import { startSandbox } from '../../src/sandbox/index.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { openSampleAccount } from '../dashboard/support/sample-account.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { until } from '../support/until.js';
import { openWorld } from '../worker/support/payout-world.js';

/** The programs of `examples/`, as their first lines say how to run them, on the Redis of the tests. */

let platformId: number;
let dir: string;
let producer: PayoutProducer;
let ends: (() => Promise<unknown>)[];
beforeEach(async () => {
  platformId = newPlatformId();
  dir = await mkdtemp(join(tmpdir(), 'payouts-example-'));
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
  ends = [async () => producer.close(), async () => rm(dir, { recursive: true })];
});
afterEach(async () => {
  for (const end of ends) await end();
});

function runExample(file: string, environment: Readonly<Record<string, string>> = {}, ...args: readonly string[]) {
  const path = fileURLToPath(new URL(`../../examples/${file}`, import.meta.url));
  // Examples import the package by its name, which is what was built.
  findBuiltProgram();
  const { PATH = '', HOME = '' } = process.env;
  const own = { PATH, HOME, REDIS_URL: testRedisUrl(), GATEWAY_PLATFORM_ID: String(platformId) };
  const node = file.endsWith('.test.ts') ? ['--test'] : [];
  const child = spawn(process.execPath, ['--import', 'tsx', ...node, path, ...args], {
    env: { ...own, ...environment },
  });
  const ended = once(child, 'close');
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return {
    prints: async (pattern: RegExp) =>
      until(
        () => `${file} prints it: ${output}`,
        () => pattern.test(output),
      ),
    /** Sends a signal and waits for the end. @returns exit code or signal, and everything printed */
    async end(signal?: NodeJS.Signals) {
      if (signal !== undefined) child.kill(signal);
      return { ended: await ended, output };
    },
  };
}

it('enqueue.ts enqueues a payout and waits for it', async () => {
  const example = runExample('enqueue.ts');
  await example.prints(/ is queued\n$/);
  await producer.cancel('withdrawal-88131');
  const output = 'withdrawal-88131 is queued\nwithdrawal-88131 is cancelled\n';
  expect(await example.end()).toEqual({ ended: [0, null], output });
});

it('events.ts books each event once, also one that comes again after a crash', async () => {
  const file = join(dir, 'events.jsonl');
  await producer.enqueue({ payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'wallet-1' });
  for await (const event of producer.events({ group: 'bookkeeping', consumer: hostname() })) {
    await writeFile(file, `${JSON.stringify(event)}\n`);
    // Ends the loop without acknowledging the event, as a crash does.
    break;
  }
  await producer.cancel('a');
  const example = runExample('events.ts', { EVENTS_FILE: file });
  await example.prints(/a: cancelled\n/);
  expect(await example.end('SIGTERM')).toEqual({ ended: [0, null], output: 'a: cancelled\n' });
  const booked = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as PayoutEvent);
  expect(booked.map(({ to }) => to)).toEqual(['queued', 'cancelled']);
});

it('operator.ts decides about what the records show, and leaves the rest', async () => {
  const account = await openSampleAccount();
  ends.push(async () => account.close());
  for (const payoutId of ['paid', 'never-received', 'not-in-the-records'])
    await account.sendAs(payoutId, { kind: 'unknown', reason: 'no response' });
  const records = join(dir, 'records.json');
  await writeFile(records, JSON.stringify({ paid: '9f86d081884c7d659a2feaa0c55ad015', 'never-received': null }));
  const own = { GATEWAY_PLATFORM_ID: String(account.platformId) };
  const output = 'paid is in_progress\nnever-received is queued\n';
  expect(await runExample('operator.ts', own, records, 'ticket 813').end()).toEqual({ ended: [0, null], output });
  expect(await account.ledger.get('not-in-the-records')).toMatchObject({ state: 'unknown' });
});

it('gateway.ts asks, worker.ts pays, and sandbox.test.ts passes', async () => {
  const { ended, output } = await runExample('sandbox.test.ts').end();
  expect({ ended, output }).toEqual({ ended: [0, null], output: expect.stringMatching(/pass 2\n/) });
  const secretKey = 'k-example';
  const sandbox = await startSandbox({ accounts: [{ platformId, secretKey, balance: '12.5' }], settleAfterMs: 0 });
  ends.push(async () => sandbox.close());
  const gateway = { GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: secretKey };
  const asked = await runExample('gateway.ts', gateway).end();
  expect(asked).toEqual({
    ended: [0, null],
    output: expect.stringMatching(/balance: .*12\.5.*\ndeposit-17: \{.+\}\n$/),
  });
  expect(await runExample('gateway.ts', { ...gateway, GATEWAY_SECRET_KEY: 'wrong' }).end()).toMatchObject({
    ended: [1, null],
  });
  const worker = runExample('worker.ts', { ...gateway, SEND_JOURNAL_DIR: dir, HEALTH_PORT: '0' });
  await producer.enqueue({ payoutId: 'a', paymentId: 6, amount: '1', addressTo: 'wallet-1' });
  expect(await producer.waitFor('a', { timeoutMs: 60_000 })).toMatchObject({ state: 'completed' });
  expect(await worker.end('SIGTERM')).toEqual({ ended: [0, null], output: expect.stringContaining('worker ended') });
});

it.each([
  ['books what a worker signed as paid', true, 0, /^withdrawal-88132 is paid: \S+\n$/],
  [
    'books nothing that no worker signed',
    false,
    1,
    /^withdrawal-88132 is shown as completed, and not booked: no worker/,
  ],
])('signing/pay-signed.ts %s', async (_, isSigned, code, printed) => {
  const world = await openWorld();
  ends.push(async () => world.close());
  const write = async (name: string, text: string | Buffer): Promise<string> => {
    await writeFile(join(world.dir, name), text, { mode: 0o600 });
    return join(world.dir, name);
  };
  const [shop, worker] = [testKey(1), testKey(2)];
  const pem = async (name: string, key: typeof shop) => write(name, key.export({ format: 'pem', type: 'pkcs8' }));
  const keys = [keyEntry(shop), keyEntry(worker, { name: 'worker-1', role: 'worker', person: 'Host 1' })];
  const PAYOUT_KEYS_FILE = await write('keys.json', JSON.stringify({ version: 1, keys }));
  const workerKey = { PAYOUT_WORKER_KEY_FILE: await pem('worker.pem', worker), PAYOUT_WORKER_KEY_NAME: 'worker-1' };
  const sending = world.startWorker({ environment: { PAYOUT_KEYS_FILE, ...(isSigned && workerKey) } });
  // What was signed before the worker's journal was begun is held.
  await until('it sends', () => sending.log().includes('acquired sender lease'));
  const { ended, output } = await runExample('signing/pay-signed.ts', {
    ...{ GATEWAY_PLATFORM_ID: String(world.platformId), PAYOUT_AUDIENCE: TEST_AUDIENCE },
    ...{ PAYOUT_KEYS_FILE, PAYOUT_SIGNING_KEY_FILE: await pem('shop.pem', shop) },
  }).end();
  expect({ output, ended }).toEqual({ output: expect.stringMatching(printed), ended: [code, null] });
});
