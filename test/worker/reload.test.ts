import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { readPolicyFile } from '../../src/control/policy/policy-file.js';
import type { Payout } from '../../src/ledger/payout.js';
import { readEvents, type PayoutEvent } from '../../src/producer/events/payout-events.js';
import { openLedger } from '../../src/queues/open-ledger.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { cents, untilLeased, worldOfTest, type PayoutWorld } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import type { WorkerProcess } from './support/worker-process.js';

/** A real worker process reads its keyring and its policy again on SIGHUP, without a restart. */

const [SHOP, NEW_SHOP] = [testKey(1), testKey(2)];
const WAIT = { timeoutMs: 40_000 };

/** Has the worker read its files again. @param said - what it logs once it did */
async function reload(worker: WorkerProcess, said: string): Promise<void> {
  const count = (): number => worker.log().split(said).length - 1;
  const before = count();
  worker.kill('SIGHUP');
  await until(
    () => `the worker logs "${said}":\n${worker.log()}`,
    () => count() > before,
  );
}

async function writeSecret(file: string, text: string): Promise<void> {
  await rm(file, { force: true });
  await writeFile(file, text, { mode: 0o600 });
}

async function openKeys(): Promise<{
  world: PayoutWorld;
  file: string;
  write: (...keys: KeyEntry[]) => Promise<void>;
}> {
  const world = await worldOfTest();
  const file = join(world.dir, 'keys.json');
  const write = async (...keys: KeyEntry[]): Promise<void> => writeSecret(file, JSON.stringify({ version: 1, keys }));
  await write(keyEntry(SHOP));
  return { world, file, write };
}

it('a key that was revoked signs nothing any more, also what is queued, and a new one does; a bad file changes nothing', async () => {
  const { world, file, write } = await openKeys();
  const worker = world.startWorker({ environment: { PAYOUT_KEYS_FILE: file } });
  // What was signed before the worker's journal was begun is held.
  await untilLeased(worker);
  const failed = async (): Promise<unknown> =>
    readMetric((await worker.get('/metrics')).body, 'payouts_keys_reload_failed');
  const producerWith = (name: string, privateKey: typeof SHOP): PayoutProducer =>
    closeAfterTest(new PayoutProducer({ ...world.account, audience: TEST_AUDIENCE, signingKey: { name, privateKey } }));
  const pay = async (producer: PayoutProducer, payoutId: string): Promise<void> => {
    await producer.enqueueMany(cents([payoutId]));
    expect(await producer.waitFor(payoutId, WAIT)).toMatchObject({ state: 'completed' });
  };
  const shop = producerWith('shop', SHOP);

  for (const [index, [breakIt, words]] of [
    [async () => writeFile(file, 'version: 2'), 'must be 1'] as const,
    [async () => rm(file), 'cannot be read'] as const,
    [
      async () => write(keyEntry(SHOP, { name: 'thief' })).then(async () => chmod(file, 0o666)),
      'is not trusted',
    ] as const,
  ].entries()) {
    await breakIt();
    await reload(worker, 'the keyring could not be read again');
    expect(await failed()).toBe(1);
    const { body } = await worker.get('/readyz');
    expect(body).toContain('The keyring could not be read again, and the one before still counts');
    expect(body).toContain(words);
    await pay(shop, `P-${index}`);
  }
  const notBefore = new Date(Date.now() + 5_000);
  await shop.enqueueMany(cents(['Q-1']).map((payout) => ({ ...payout, notBefore })));
  await write(keyEntry(SHOP, { revoked: true }), keyEntry(NEW_SHOP, { name: 'shop-2' }));
  await reload(worker, 'the keyring was read again');
  expect(await failed()).toBe(0);
  expect((await shop.get('Q-1'))?.state).toBe('queued');
  expect(await shop.waitFor('Q-1', WAIT)).toMatchObject({ state: 'held', held: { reason: 'revoked_key' } });
  await pay(producerWith('shop-2', NEW_SHOP), 'R-1');
}, 120_000);

it('a worker that still waits for Redis reads its keyring again once it has started', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const { world, file } = await openKeys();
  await redis.stop();
  const waiting = world.startWorker({ redisUrl: redis.url, environment: { PAYOUT_KEYS_FILE: file } });
  await waiting.said('Redis unavailable');
  waiting.kill('SIGHUP');
  await redis.startAgain();
  await waiting.said('the keyring was read again');
  await waiting.end();
});

it('the policy that was read last decides, and a bad one changes nothing; each is told by its hash', async () => {
  const world = await worldOfTest();
  const { platformId } = world;
  const file = join(world.dir, 'policy.yaml');
  const write = async (limit: string, id = platformId): Promise<void> => {
    const rule = `{ name: small, when: { paymentId: [1] }, cap: { amount: ${limit} }, over: refuse }`;
    await writeSecret(file, `{ version: 1, platformId: ${id}, default: hold, rules: [${rule}] }`);
  };
  await write('0.01');
  const environment = { PAYOUT_POLICY_FILE: file };
  const worker = world.startWorker({ environment });
  await untilLeased(worker);
  await worker.said(`"policyHash":"${readPolicyFile(file, { platformId, keyring: undefined }).hash}"`);
  const decide = async (prefix: string, expected: Partial<Payout>): Promise<void> => {
    const [payoutId = ''] = await world.enqueue(1, prefix);
    expect(await world.producer.waitFor(payoutId, WAIT)).toMatchObject(expected);
  };
  await decide('before', { state: 'completed' });
  await write('0.009');
  await reload(worker, 'the policy was read again');
  const held = { kind: 'policy', rule: 'small', reason: 'refuse' } as unknown as NonNullable<Payout['held']>;
  await decide('held', { state: 'held', held });
  await write('0.01');
  await chmod(file, 0o666);
  await reload(worker, 'the policy could not be read again');
  const readyz = async (): Promise<string> => (await worker.get('/readyz')).body;
  expect(await readyz()).toMatch(/The policy could not be read again, .*policy\.yaml is not trusted/);
  await decide('still', { state: 'held' });
  await write('0.01');
  await reload(worker, 'the policy was read again');
  expect(await readyz()).not.toContain('policy');
  await decide('after', { state: 'completed' });

  const { ledger } = closeAfterTest(openLedger(world.account, 'reply'));
  const told = async (): Promise<PayoutEvent[]> =>
    (await readEvents(ledger.connection, { sinceMs: 0 }, 1_000)).filter(({ type }) => type === 'policy_loaded');
  await until('the last is told', async () => (await told()).length === 3);
  const [first, second, third] = await told();
  expect(first?.reason).toMatch(/^policy\.yaml, by .+:\d+$/);
  expect(second?.hash).not.toBe(first?.hash);
  expect(third?.hash).toBe(first?.hash);

  // A worker does not start with a policy of another account.
  await write('0.01', platformId + 1);
  const other = world.startWorker({ environment });
  expect(await other.ended).toBe(2);
  expect(other.log()).toContain(`PAYOUT_POLICY_FILE: ${file}: platformId must be ${platformId},`);
}, 120_000);
