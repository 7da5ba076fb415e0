import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { closeRedis, connectRedis } from '../../src/base/redis.js';
import { keySigner } from '../../src/control/keys/signing-key.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { LedgerKeys } from '../../src/ledger/keys.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest } from './support/close-after-test.js';
import {
  expectPace,
  openWorkerIn,
  type PayoutWorld,
  SECRET_KEY,
  untilLeased,
  untilSent,
  worldOfTest,
} from './support/payout-world.js';

/** Payouts that are unknown, with the real worker and the sandbox: who needs a person, and who does not. */

const V2 = { api: 'v2', inFlightMaxMs: 100 } as const;
const ENVIRONMENT = { GATEWAY_API: 'v2' };
const LONG_MS = 90_000;

const payoutOf = async ({ producer }: PayoutWorld, payoutId: string) => producer.get(payoutId);

async function untilState(world: PayoutWorld, payoutId: string, state: string) {
  await until(`${payoutId} is ${state}`, async () => (await payoutOf(world, payoutId))?.state === state, LONG_MS);
}

async function untilAsked(world: PayoutWorld, payoutId: string, count = 1) {
  const isAsked = async () => ((await payoutOf(world, payoutId))?.lookUp?.count ?? 0) >= count;
  await until(`${payoutId} was asked for`, isAsked, LONG_MS);
}

async function becameUnknown(v2: SandboxOptions['v2'], kind: 'drop-after' | 'drop-before' = 'drop-after') {
  const world = await worldOfTest({ sandbox: { v2, faults: [{ kind, times: 1 }] } });
  const [payoutId = ''] = await world.enqueue(1);
  await openWorkerIn(world, {}, V2);
  await untilState(world, payoutId, 'unknown');
  const env = { ...world.env, GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY, ...ENVIRONMENT };
  const told = async (...args: readonly string[]) => (await runCli(args, { env })).stdout.replaceAll(/\s+/g, ' ');
  return { world, payoutId, told };
}

it('a payout without a response that the gateway paid is completed without a person', async () => {
  const { world, payoutId, told } = await becameUnknown({});
  await untilState(world, payoutId, 'completed');
  const payout = await payoutOf(world, payoutId);
  const [payment, ...others] = world.sandbox.payments();
  expect(others).toEqual([]);
  expect(payout).toMatchObject({ gatewayId: payment?.gatewayId, attempt: 1, requeueCount: 0 });
  expect(payout?.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'unknown', 'in_progress', 'completed']);
  expect(payout?.history.every(({ by }) => by === undefined)).toBe(true);
  expect(await told('get', payoutId)).toContain('the worker found its payment at the gateway, by its order id');
  expectPace(world.sandbox);
});

it('a payout that a killed worker left behind is completed without a person', async () => {
  const world = await worldOfTest({ sandbox: { faults: [{ kind: 'hang', times: 1 }] } });
  const [payoutId = ''] = await world.enqueue(1);
  const worker = world.startWorker({ environment: ENVIRONMENT });
  await untilSent(world, 1);
  worker.kill('SIGKILL');
  await worker.ended;
  const second = world.startWorker({ environment: ENVIRONMENT });
  await untilLeased(second);
  const works = async () => /^payouts_look_up_works\{.*\} (\d)$/m.exec((await second.get('/metrics')).body)?.[1];
  expect(await works()).toBe('0');
  await untilState(world, payoutId, 'completed');
  await until('metrics say that look-up works', async () => (await works()) === '1');
  expect(world.sandbox.payments()).toHaveLength(1);
  expectPace(world.sandbox);
});

it('a signed payout that the worker found has a receipt, as any other', async () => {
  const [shop, own] = [testKey(1), testKey(2)];
  const world = await worldOfTest({ sandbox: { faults: [{ kind: 'drop-after', times: 1 }] } });
  const entries = [keyEntry(shop), keyEntry(own, { name: 'worker-1', role: 'worker', person: 'Host 1' })];
  const keysFile = await writeKeyring(join(world.dir, 'keys.json'), entries);
  const environment = {
    ...ENVIRONMENT,
    PAYOUT_KEYS_FILE: keysFile,
    PAYOUT_WORKER_SIGNER: await writePrivateKey(join(world.dir, 'worker-1.pem'), own),
    PAYOUT_WORKER_SIGNER_NAME: 'worker-1',
  };
  await untilLeased(world.startWorker({ environment }));
  const signing = { signer: keySigner('shop', shop), keysFile, audience: TEST_AUDIENCE };
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, ...signing }));
  await producer.enqueueMany(
    ['found', 'next'].map((payoutId) => aPayout(payoutId, { addressTo: `wallet-${payoutId}` })),
  );
  for (const payoutId of ['found', 'next']) await untilState(world, payoutId, 'completed');
  const found = await producer.get('found');
  expect(found?.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'unknown', 'in_progress', 'completed']);
  expect(found).toMatchObject({ verified: true, attempt: 1, lookUp: { answer: 'found' } });
  expect(found?.receipt).toMatchObject({ key: 'worker-1', at: found?.updatedAt });
  expect(await producer.get('next')).toMatchObject({ verified: true });
  const { gatewayId, txhash } = found ?? {};
  expect(world.sandbox.payments().filter((payment) => payment.gatewayId === gatewayId)).toMatchObject([{ txhash }]);
  expect(world.sandbox.payments()).toHaveLength(2);
  expectPace(world.sandbox);
});

it('a restart between two questions continues them', async () => {
  const world = await worldOfTest({
    sandbox: { v2: { orderIdKnownAfterMs: 20_000 }, faults: [{ kind: 'hang', times: 1 }] },
  });
  const [payoutId = ''] = await world.enqueue(1);
  const worker = world.startWorker({ environment: ENVIRONMENT });
  await untilSent(world, 1);
  worker.kill('SIGKILL');
  await worker.ended;
  const second = world.startWorker({ environment: ENVIRONMENT });
  await untilAsked(world, payoutId);
  expect(await payoutOf(world, payoutId)).toMatchObject({ state: 'unknown', lookUp: { answer: 'refused' } });
  second.kill('SIGKILL');
  await second.ended;
  world.startWorker({ environment: ENVIRONMENT });
  await untilState(world, payoutId, 'completed');
  expect(await payoutOf(world, payoutId)).toMatchObject({ lookUp: { answer: 'found', count: 2 } });
  expect(world.sandbox.payments()).toHaveLength(1);
});

it.each<[string, SandboxOptions['v2'], 'drop-after' | 'drop-before', string]>([
  ['paid, where the gateway ignores order ids', { orderIds: 'ignored' }, 'drop-after', 'fails'],
  ['not paid, where the gateway knows them', {}, 'drop-before', 'works'],
])('a payout that is not found, %s, waits for a person, who is told what that means', async (_, v2, kind, evidence) => {
  const { world, payoutId, told } = await becameUnknown(v2, kind);
  const [next = ''] = await world.enqueue(1, 'next');
  await untilState(world, next, 'completed');
  await untilAsked(world, payoutId);
  const said = {
    works: 'That it does not know one is a hint, and no proof.',
    fails: 'That it does not know one says nothing.',
  }[evidence];
  await until('it is known whether it works', async () => (await told('get', payoutId)).includes(said ?? ''), LONG_MS);
  expect(await told('get', payoutId)).toMatch(
    /asked for it by order id \d+ times? since .* it did not find it \(.*withdrawal not found/,
  );
  expect(await told('status')).toContain(said);
  expect(await told('doctor')).toContain(said);
  expect(await payoutOf(world, payoutId)).toMatchObject({ state: 'unknown', attempt: 1 });
  expectPace(world.sandbox);
});

it.each(['html-502', 'hang-before', 'wrong-json'] as const)(
  'a gateway whose answer is %s leaves it unknown, until it answers',
  async (kind) => {
    const { world, payoutId } = await becameUnknown({});
    world.sandbox.setFaults([{ kind, endpoint: 'transactionstatus' }]);
    await untilAsked(world, payoutId);
    expect(await payoutOf(world, payoutId)).toMatchObject({ state: 'unknown', lookUp: { answer: 'failed' } });
    world.sandbox.setFaults([]);
    await untilState(world, payoutId, 'completed');
    expect(world.sandbox.payments()).toHaveLength(1);
  },
);

it('nobody is asked with API v1', async () => {
  const world = await worldOfTest({ sandbox: { faults: [{ kind: 'drop-after', times: 1 }] } });
  const [payoutId = ''] = await world.enqueue(1);
  await openWorkerIn(world, {}, { inFlightMaxMs: 100 });
  await untilState(world, payoutId, 'unknown');
  const calls = world.sandbox.stats();
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  expect(world.sandbox.stats()).toEqual(calls);
  const payout = await payoutOf(world, payoutId);
  expect(payout?.state).toBe('unknown');
  expect(payout).not.toHaveProperty('lookUp');
  const redis = connectRedis(world.redisUrl, 'commands');
  afterTest(async () => closeRedis(redis));
  const keys = new LedgerKeys(world.platformId);
  expect(await redis.exists(keys.lookUps)).toBe(0);
  expect(await redis.hexists(keys.gateway, 'lookUp')).toBe(0);
});
