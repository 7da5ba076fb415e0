import { spawn, type ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { findBuiltProgram } from '../support/built-program.js';
import { until } from '../support/until.js';
import { openWorld, SECRET_KEY, untilSent, type PayoutWorld } from '../worker/support/payout-world.js';

/** A closed terminal sends SIGHUP to what runs in it. */

let world: PayoutWorld;
let child: ChildProcess | undefined;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await world.close();
});

function start(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const { platformId, redisUrl } = world;
  const running = (child = spawn(process.execPath, [findBuiltProgram(), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      REDIS_URL: redisUrl,
      GATEWAY_PLATFORM_ID: String(platformId),
      ...{ DASHBOARD_PORT: '0', NOTIFY_HEALTH_PORT: '0' },
      ...environment,
    },
  }));
  let log = '';
  running.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = new Promise((resolve) => {
    running.once('exit', (code, signal) => {
      resolve(code ?? signal);
    });
  });
  return { kill: (signal: NodeJS.Signals) => running.kill(signal), log: () => log, ended };
}

it.each([{ args: [] }, { args: ['--processes', '2'] }])(
  'SIGHUP during a request costs a worker without keys nothing: `payouts worker $args`',
  async ({ args }) => {
    const accounts = [world.platformId, world.platformId + 1_000_000_000].map((platformId) => ({
      ...{ platformId, baseUrl: world.sandbox.url, secretKeyFile: 'key' },
    }));
    const file = join(world.dir, 'accounts.json');
    await writeFile(join(world.dir, 'key'), SECRET_KEY, { mode: 0o600 });
    await writeFile(file, JSON.stringify(accounts));
    world.sandbox.addFaults([{ kind: 'latency-after', delayMs: 3_000, times: 1 }]);
    await world.enqueue(1);
    const worker = world.startWorker({ args, environment: args.length > 0 ? { PAYOUT_ACCOUNTS_FILE: file } : {} });
    await untilSent(world, 1);
    worker.kill('SIGHUP');
    expect((await world.producer.waitFor('P-1', { timeoutMs: 20_000 })).state).toBe('completed');
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  },
  60_000,
);

it.each([
  { args: ['dashboard'], ready: 'Dashboard on', environment: {} },
  {
    args: ['notify'],
    ready: 'notifications start',
    environment: { NOTIFY_URL: 'http://127.0.0.1:1/', NOTIFY_SECRET: 'a-secret-of-32-characters-0123456' },
  },
])(
  'SIGHUP does not end `payouts $args.0`',
  async ({ args, ready, environment }) => {
    const process = start(args, environment);
    await until(`it is ready:\n${process.log()}`, () => process.log().includes(ready));
    process.kill('SIGHUP');
    await new Promise((resolve) => setTimeout(resolve, 300));
    process.kill('SIGTERM');
    expect(await process.ended).toBe(0);
  },
  60_000,
);
