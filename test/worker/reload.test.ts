import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { writeKeyring } from '../control/support/key-files.js';
import { keyEntry, testKey, type KeyEntry, TEST_AUDIENCE } from '../control/support/keys.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { untilLeased, worldOfTest } from './support/payout-world.js';
import { readMetric } from './support/watched-worker.js';
import type { WorkerProcess } from './support/worker-process.js';
import { cents } from '../support/account.js';

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

it('a key that was revoked signs nothing any more, and a new one does; a bad file changes nothing', async () => {
  const world = await worldOfTest();
  const file = join(world.dir, 'keys.json');
  const write = async (...keys: KeyEntry[]): Promise<unknown> => {
    await rm(file, { force: true });
    return writeKeyring(file, keys);
  };
  await write(keyEntry(SHOP));
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

  await write(keyEntry(SHOP, { name: 'thief' }));
  await chmod(file, 0o666);
  await reload(worker, 'the keyring could not be read again');
  expect(await failed()).toBe(1);
  const { body } = await worker.get('/readyz');
  expect(body).toMatch(/The keyring could not be read again, and the one before still counts: .*is not trusted/);
  await pay(shop, 'P-1');
  const notBefore = new Date(Date.now() + 5_000);
  await shop.enqueueMany(cents(['Q-1']).map((payout) => ({ ...payout, notBefore })));
  await write(keyEntry(SHOP, { revoked: true }), keyEntry(NEW_SHOP, { name: 'shop-2' }));
  await reload(worker, 'the keyring was read again');
  expect(await failed()).toBe(0);
  expect((await shop.get('Q-1'))?.state).toBe('queued');
  expect(await shop.waitFor('Q-1', WAIT)).toMatchObject({ state: 'held', held: { reason: 'revoked_key' } });
  await pay(producerWith('shop-2', NEW_SHOP), 'R-1');
}, 120_000);

it('the policy that was read last decides, and a bad one changes nothing', async () => {
  const world = await worldOfTest();
  const file = join(world.dir, 'policy.yaml');
  const write = async (limit: string, mode = 0o600): Promise<void> => {
    const rule = `{ name: small, when: { paymentId: [1] }, cap: { amount: ${limit} }, over: refuse }`;
    await writeFile(file, `{ version: 1, platformId: ${world.platformId}, default: hold, rules: [${rule}] }`);
    await chmod(file, mode);
  };
  await write('0.01');
  const worker = world.startWorker({ environment: { PAYOUT_POLICY_FILE: file } });
  await untilLeased(worker);
  const decide = async (payoutId: string, decided: object): Promise<void> => {
    await world.producer.enqueueMany(cents([payoutId]));
    expect(await world.producer.waitFor(payoutId, WAIT)).toMatchObject(decided);
  };
  await decide('P-1', { state: 'completed' });
  await write('0.009');
  await reload(worker, 'the policy was read again');
  await decide('Q-1', { state: 'held', held: { rule: 'small', reason: 'refuse' } });
  await write('0.01', 0o666);
  await reload(worker, 'the policy could not be read again');
  expect((await worker.get('/readyz')).body).toMatch(/The policy could not be read again, .*is not trusted/);
  await decide('R-1', { state: 'held' });
}, 120_000);
