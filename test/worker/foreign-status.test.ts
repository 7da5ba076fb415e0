import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { openWorld, type PayoutWorld } from './support/payout-world.js';
import { until } from '../support/until.js';
import { endAllWorkers } from './support/worker-process.js';

/** Longer than the sender takes to compare the ledger with what it knows, twice. */
const CHECKED_TWICE_MS = 5_000;

let world: PayoutWorld;
let gateway: Server;

beforeEach(async () => {
  world = await openWorld();
});

afterEach(async () => {
  await endAllWorkers();
  gateway.closeAllConnections();
  await new Promise((resolve) => gateway.close(resolve));
  await world.close();
});

/** The sandbox, except that its status of a transaction names another amount. @returns its address */
async function startConfusedGateway(): Promise<string> {
  gateway = createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat(await request.toArray());
      const headers = { 'content-type': request.headers['content-type'] ?? '' };
      const reply = await fetch(`${world.sandbox.url}${request.url ?? ''}`, { method: 'POST', headers, body });
      const status = (await reply.json()) as object;
      response.end(JSON.stringify('approve' in status ? { ...status, amount: '999' } : status));
    })();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => gateway.once('listening', resolve));
  return `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
}

it('a worker leaves a payout unknown whose status is of another payment, until an operator decides', async () => {
  const [payoutId = ''] = await world.enqueue(1);
  world.startWorker({ baseUrl: await startConfusedGateway() });
  await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
  await delay(CHECKED_TWICE_MS);
  const payout = await world.producer.get(payoutId);
  expect(payout?.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'in_progress', 'unknown']);
  expect(payout?.message).toBe(
    "the gateway's status is about another payment: amount is 999 at the gateway, 0.01 in the payout",
  );
  expect(world.sandbox.stats().arrivals).toBe(1);
});
