import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';

/** The blocks of docs/use-from-code.md as an application has them: files beside the installed package. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/use-from-code.md'), 'utf8');

/** Each block by the name in its first line. */
const files = new Map(
  [...page.matchAll(/```(?:ts|js)\n(\/\/ (\S+)\n.*?)```/gs)].map(([, text = '', name = '']) => [name, text]),
);

/** Blocks that need packages which only test/package installs: `npm run check:package` runs them. */
const IN_APPLICATIONS = { 'payouts.module.ts': 'nestjs', 'dashboard.ts': 'fastify' };

const TSCONFIG = {
  compilerOptions: { module: 'nodenext', target: 'es2022', lib: ['es2022', 'esnext.disposable'], strict: true },
  include: ['*.ts'],
};

const platformId = newPlatformId();
const secretKey = 'k-sandbox-only';
let dir: string;
let sandbox: Sandbox;
let env: Record<string, string>;

beforeAll(async () => {
  findBuiltProgram();
  sandbox = await startSandbox({ accounts: [{ platformId, secretKey }], settleAfterMs: 0 });
  dir = await mkdtemp(join(tmpdir(), 'payouts-guide-'));
  env = {
    PATH: process.env['PATH'] ?? '',
    REDIS_URL: testRedisUrl(),
    ...{ GATEWAY_PLATFORM_ID: String(platformId), GATEWAY_BASE_URL: sandbox.url, GATEWAY_SECRET_KEY: secretKey },
    SEND_JOURNAL_DIR: join(dir, 'journal'),
  };
  await writeFile(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  await install('payout-queue', ROOT);
  for (const name of ['@bull-board/api', '@types/node', 'bullmq', 'ioredis', 'pino', 'prom-client'])
    await install(name, join(ROOT, 'node_modules', name));
  for (const [name, text] of files) if (!(name in IN_APPLICATIONS)) await writeFile(join(dir, name), text);
});

afterAll(async () => {
  await sandbox.close();
  await rm(dir, { recursive: true });
});

async function install(name: string, target: string): Promise<void> {
  const path = join(dir, 'node_modules', name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(target, path);
}

/** Runs a file in the application. */
async function run(...args: readonly string[]): Promise<{ code: unknown; output: string }> {
  const options = { cwd: dir, env, timeout: 90_000 };
  return new Promise((resolve) => {
    execFile(process.execPath, ['--import', import.meta.resolve('tsx'), ...args], options, (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, output: stdout + stderr });
    });
  });
}

it('its blocks have the types of the package', async () => {
  expect([...page.matchAll(/^```(ts|js)$/gm)]).toHaveLength(files.size);
  const tsc = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));
  expect(await run(tsc, '--noEmit', '-p', '.')).toEqual({ code: 0, output: '' });
});

it.each(Object.entries(IN_APPLICATIONS))('%s is what the application in test/package runs', (name, application) => {
  expect(readFileSync(join(ROOT, 'test/package', application, name), 'utf8')).toBe(
    files.get(name)?.split('\n').slice(1).join('\n'),
  );
});

it('enqueues, sends, follows, and stops the worker in good order', async () => {
  const worker = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), 'worker.ts'], { cwd: dir, env });
  const ended = new Promise((resolve) => worker.once('close', resolve));
  const { code, output } = await run('follow.ts');
  const producer = new PayoutProducer({ redisUrl: testRedisUrl(), platformId });
  expect({ code, output }).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^completed: book it as paid by \w+$/m),
  });
  expect(output).toMatch(/^invoice-77 completed at /m);
  worker.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect((await producer.stats()).sender).toBeNull();
  await producer.close();
});

it('its test of an application passes, and its CommonJS runs', async () => {
  const { code, output } = await run('--test', 'payouts.test.ts');
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('pass 1') });
  expect(await run('require.cjs')).toEqual({ code: 0, output: 'function function\n' });
});

it('its errors are caught by their classes, its Bull Board has two queues, its own parts and its deposits work', async () => {
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
  await writeFile(join(dir, 'parts.mts'), program);
  const { code, output } = await run('parts.mts');
  const queues = /withdraw \d+\ntransactionstatus \d+\n/.source;
  const lines = `^accepted\ndiffers in amount\namount must be .*\n${queues}true\nPONG\n[^]*address: `;
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(new RegExp(lines)) });
});
