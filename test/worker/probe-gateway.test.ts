import { afterEach, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { until } from '../support/until.js';
import { endAllWorkers } from './support/worker-process.js';
import { expectPromisesKept, openWorld, untilSettled, type PayoutWorld } from './support/payout-world.js';

let world: PayoutWorld;

afterEach(async () => {
  await endAllWorkers();
  await world.close();
});

it('a gateway behind a proxy that answers 502 to everything costs one unknown payout, not two', async () => {
  world = await openWorld({ sandbox: { faults: [{ kind: 'html-502', endpoint: 'any' }] } });
  await world.enqueue(4);
  const port = String(await findFreePort());
  // As with the defaults, the account would be paused at the third; here it never is.
  world.startWorker({ environment: { HEALTH_PORT: port, MAX_UNKNOWNS_IN_A_ROW: '100' } });
  const readyz = async (): Promise<string> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      async (response) => response.text(),
      () => '',
    );
  await until('it says why it sends no more', async () =>
    (await readyz()).includes('ended before anything was written: The gateway did not respond to /balance: HTTP 502'),
  );
  const { unknown, queued } = await world.producer.stats();
  expect({ unknown, queued, arrivals: world.sandbox.stats().arrivals }).toEqual({ unknown: 1, queued: 3, arrivals: 1 });
  world.sandbox.setFaults([]);
  await untilSettled(world, 4);
  expect((await world.producer.stats()).unknown).toBe(1);
  await expectPromisesKept(world);
}, 120_000);
