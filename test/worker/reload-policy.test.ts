import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { readEvents, type PayoutEvent } from '../../src/producer/events/payout-events.js';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { until } from '../support/until.js';
import { openWorld, type PayoutWorld } from './support/payout-world.js';
import { endAllWorkers, type WorkerProcess } from './support/worker-process.js';

/** A real worker process, without keys, reads its policy again on SIGHUP, without a restart. */

const WAIT = { timeoutMs: 40_000 };
const READ_AGAIN = 'the policy was read again';
const NOT_READ = 'the policy could not be read again';

let world: PayoutWorld;
let worker: WorkerProcess;
let folder: string;
let file: string;
let port: number;

function write(limit: string, platformId = world.platformId): void {
  const rule = `{ name: small, when: { paymentId: [1] }, cap: { amount: ${limit} }, over: refuse }`;
  rmSync(file, { force: true });
  writeFileSync(file, `{ version: 1, platformId: ${platformId}, default: hold, rules: [${rule}] }`, { mode: 0o600 });
}

const count = (text: string): number => worker.log().split(text).length - 1;

/** Has the worker read its policy again. @param said - what it logs once it did */
async function reload(said: string): Promise<void> {
  const before = count(said);
  worker.kill('SIGHUP');
  await until(`the worker logs "${said}":\n${worker.log()}`, () => count(said) > before);
}

beforeAll(async () => {
  world = await openWorld();
  port = await findFreePort();
  folder = mkdtempSync(join(tmpdir(), 'reload-policy-'));
  file = join(folder, 'policy.yaml');
  write('0.01');
  worker = world.startWorker({ environment: { PAYOUT_POLICY_FILE: file, HEALTH_PORT: String(port) } });
  await until('it sends', () => worker.log().includes('acquired sender lease'));
}, 30_000);

afterAll(async () => {
  await endAllWorkers();
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

const readiness = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/readyz`)).text();

it('the policy that was read last decides, and a bad one changes nothing', async () => {
  const [before = ''] = await world.enqueue(1, 'before');
  expect(await world.producer.waitFor(before, WAIT)).toMatchObject({ state: 'completed' });

  write('0.009');
  await reload(READ_AGAIN);
  const [held = ''] = await world.enqueue(1, 'held');
  expect(await world.producer.waitFor(held, WAIT)).toMatchObject({
    ...{ state: 'held', held: { kind: 'policy', rule: 'small', reason: 'refuse' } },
  });

  write('0.01');
  chmodSync(file, 0o666);
  await reload(NOT_READ);
  expect(await readiness()).toMatch(/The policy could not be read again, .*policy\.yaml is not trusted/);
  const [stillHeld = ''] = await world.enqueue(1, 'still');
  expect(await world.producer.waitFor(stillHeld, WAIT)).toMatchObject({ state: 'held' });

  write('0.01');
  await reload(READ_AGAIN);
  expect(await readiness()).not.toContain('policy');
  const [after = ''] = await world.enqueue(1, 'after');
  expect(await world.producer.waitFor(after, WAIT)).toMatchObject({ state: 'completed' });

  // Each that could be used was told, by its hash and name.
  const told = async (): Promise<PayoutEvent[]> => {
    const ledger = connectLedger(connectRedis(world.redisUrl, 'commands'), world.platformId);
    const events = await readEvents(ledger, { sinceMs: 0 }, 1_000);
    await closeRedis(ledger.redis);
    return events.filter(({ type }) => type === 'policy_loaded');
  };
  await until('the last is told', async () => (await told()).length === 3);
  const [first, second, third] = await told();
  expect(first?.reason).toMatch(/^policy\.yaml, by .+:\d+$/);
  expect(second?.hash).not.toBe(first?.hash);
  expect(third?.hash).toBe(first?.hash);
}, 120_000);

it('a worker does not start with a policy of another account', async () => {
  write('0.01', world.platformId + 1);
  const other = world.startWorker({ environment: { PAYOUT_POLICY_FILE: file } });
  expect(await other.ended).toBe(2);
  expect(other.log()).toContain(`PAYOUT_POLICY_FILE: ${file}: platformId must be ${world.platformId},`);
}, 30_000);
