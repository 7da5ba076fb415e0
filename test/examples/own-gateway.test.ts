import { describe, expect, it } from '@jest/globals';
import { testGateway } from 'payout-queue/gateway-contract';
import { createAcmeGateway } from '../../examples/own-gateway.js';
import { createPayoutWorker, type PayoutWorkerOptions } from '../../src/control/payout-worker.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import type { OwnGateway, WithdrawConnection } from '../../src/gateway/gateway.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { ACME_SECRET, startAcme } from './support/acme-server.js';

describe('the example keeps the contract', () => {
  testGateway(it, {
    open: (baseUrl, withinMs) =>
      createAcmeGateway({ baseUrl, secret: ACME_SECRET, timeoutMs: withinMs, withdrawTimeoutMs: withinMs }),
    request: { paymentId: 6, amount: '1.5', addressTo: 'wallet' },
    acceptedId: '4711',
    accepted: { status: 201, body: '{"id":"4711","hash":"0xabc"}' },
    contradictory: [
      '{"id":"4711"}',
      ...['{}', '{"id":""}', '{"id":4711}', '{"id":null}', '{"id":"4711","error":"no"}'].map((body) => ({
        status: 201,
        body,
      })),
      ...['{}', '{"error":7}', '{"error":"no","id":"4711"}'].map((body) => ({ status: 422, body })),
    ],
    rejected: (message) => ({ status: 422, body: JSON.stringify({ error: message }) }),
    status: {
      pending: '{"state":"waiting","hash":"0xabc"}',
      paid: '{"state":"done","hash":"0xabc"}',
      failed: '{"state":"broken","hash":"0xabc"}',
    },
    secretKey: ACME_SECRET,
    secretsOf: (request) => [/x-acme-signature: ([0-9a-f]{64})/i.exec(request)?.[1] ?? ''],
  });
});

const redisUrl = testRedisUrl();

async function openWorker(accounts: PayoutWorkerOptions['accounts']) {
  const journalDir = await folderOfTest('own-gateway');
  const worker = await createPayoutWorker({ redisUrl, journalDir, allowVolatileRedis: true, accounts });
  afterTest(async () => worker.stop());
}

function openProducer(platformId: number) {
  return closeAfterTest(new PayoutProducer({ redisUrl, platformId }));
}

const QUICK = { pollMinMs: 200, quarantineMs: 0, leaseMs: 1_500, inFlightMaxMs: 0 };

const payout = (payoutId: string, addressTo = 'wallet') => ({ payoutId, paymentId: 6, amount: '1', addressTo });

it('a worker pays through it, follows each payment by its id, and learns the transaction at the end', async () => {
  const acme = closeAfterTest(await startAcme());
  const platformId = newPlatformId();
  const producer = openProducer(platformId);
  await producer.enqueueMany([payout('p-1'), payout('p-2', 'nowhere'), payout('p-3')]);
  const gateway = createAcmeGateway({ baseUrl: acme.url, secret: ACME_SECRET });
  await openWorker([{ platformId, gateway, ...QUICK }]);
  const [first, second, third] = await Promise.all(
    ['p-1', 'p-2', 'p-3'].map(async (payoutId) => producer.waitFor(payoutId, { timeoutMs: 60_000 })),
  );
  expect(first).toMatchObject({ state: 'completed', gatewayId: 'acme-1', txhash: '0xacme-1' });
  expect(second).toMatchObject({ state: 'rejected', message: 'address is not one' });
  expect(third).toMatchObject({ state: 'completed', gatewayId: 'acme-2', txhash: '0xacme-2' });
  const [one, two, ...others] = acme.payments();
  expect(others).toEqual([]);
  expect((two?.arrivedAtMs ?? 0) - (one?.arrivedAtMs ?? 0)).toBeGreaterThan(1_000);
});

type Withdraw = WithdrawConnection['withdraw'];
type Break = (withdraw: Withdraw) => Withdraw;

/** Acme paid; what the code of the gateway then makes of it. */
const BREAKS: Readonly<Record<string, Break>> = {
  throws: (withdraw) => async (request, options) => {
    await withdraw(request, options);
    throw new Error('boom');
  },
  hangs: (withdraw) => async (request, options) => {
    await withdraw(request, options);
    return new Promise(() => undefined);
  },
  'answers nonsense': (withdraw) => async (request, options) => {
    await withdraw(request, options);
    return { kind: 'sent' } as unknown as ReturnType<Withdraw>;
  },
  'says that it sent nothing': (withdraw) => async (request, options) => {
    await withdraw(request, options);
    return { kind: 'not_sent', reason: 'I think' };
  },
  'answers twice': (withdraw) => async (request, options) => {
    const outcome = await withdraw(request, options);
    // The second answer is asked for as a second send would be.
    await withdraw(request, options);
    return options.mayWrite() ? outcome : (undefined as unknown as ReturnType<Withdraw>);
  },
};

const breaking = (gateway: OwnGateway, change: Break): OwnGateway => ({
  ...gateway,
  async openConnection(signal) {
    const connection = await gateway.openConnection(signal);
    const withdraw = change(connection.withdraw.bind(connection));
    return Object.create(connection, { withdraw: { value: withdraw } }) as WithdrawConnection;
  },
});

it('a gateway whose code fails after a send never makes a payout be sent again', async () => {
  const acme = closeAfterTest(await startAcme());
  const broken = Object.values(BREAKS).map((change) => ({ platformId: newPlatformId(), change }));
  const producers = broken.map(({ platformId }) => openProducer(platformId));
  await openWorker(
    broken.map(({ platformId, change }) => ({
      ...{ platformId, ...QUICK, withdrawTimeoutMs: 500 },
      gateway: breaking(createAcmeGateway({ baseUrl: acme.url, secret: ACME_SECRET }), change),
    })),
  );
  for (const [index, producer] of producers.entries()) await producer.enqueue(payout('p', `wallet-${index}`));
  const states = async () => Promise.all(producers.map(async (producer) => (await producer.get('p'))?.state));
  await until('all are sent', async () => (await states()).every((state) => state !== 'queued' && state !== 'sending'));
  // Longer than a next send would take.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  expect(await states()).toEqual(broken.map(() => 'unknown'));
  const paid = acme.payments().map(({ to }) => to);
  expect(paid.sort()).toEqual(broken.map((_, index) => `wallet-${index}`));
  for (const producer of producers) expect(await producer.get('p')).toMatchObject({ attempt: 1, requeueCount: 0 });
});
