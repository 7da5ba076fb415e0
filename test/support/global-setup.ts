import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { findOldNode } from '../../src/base/version.ts';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.ts';

declare global {
  var testRedis: LocalRedis | undefined;
  var jestWarning: string | undefined;
  var warningsFile: string | undefined;
}

/** One Redis for all tests that need no server of their own: REDIS_URL where it is set, else one that is ours. */
export default async function globalSetup() {
  collectWarnings();
  // What a test starts on an older Node would say so, each time.
  if (findOldNode() !== undefined) process.env['NODE_NO_WARNINGS'] = '1';
  if (process.env['REDIS_URL'] !== undefined) return;
  globalThis.testRedis = await startLocalRedis();
  process.env['REDIS_URL'] = globalThis.testRedis.url;
  await unlistAccounts(globalThis.testRedis.url);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      void globalThis.testRedis?.stop().finally(() => process.kill(process.pid, signal));
    });
  }
}

/** No test's doctor or metrics say that nobody serves the accounts of those that run beside it. */
async function unlistAccounts(url: string) {
  const redis = new Redis(url);
  await redis.set('{payouts:accounts}', 'tests of accounts that nobody serves have a Redis of their own');
  await redis.quit();
}

/** `globalTeardown` fails the run for them. */
function collectWarnings() {
  const file = join(mkdtempSync(join(tmpdir(), 'payout-queue-warnings-')), 'warnings');
  globalThis.warningsFile = file;
  process.env['NODE_OPTIONS'] = `${process.env['NODE_OPTIONS'] ?? ''} --redirect-warnings=${file}`.trim();
  // Jest itself prints when it had to kill a worker.
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = ((...given: Parameters<typeof write>) => {
    if (String(given[0]).includes('force exited')) globalThis.jestWarning = String(given[0]);
    return write(...given);
  }) as typeof write;
}
