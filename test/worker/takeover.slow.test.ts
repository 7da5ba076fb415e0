import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { expectPromisesKept, untilLeased, untilSent, untilSettled, worldOfTest } from './support/payout-world.js';

it('the first worker of an account sends at once where someone states that the account is new', async () => {
  const world = await worldOfTest();
  await world.enqueue(2);
  const worker = world.startWorker({ environment: { LEASE_MS: '15000', TAKEOVER_QUARANTINE_MS: '5000' } });
  await until('it waits', async () => (await worker.get('/readyz')).body.includes('standby'));
  expect(world.sandbox.arrivals()).toEqual([]);
  const statedAt = performance.now();
  const state = async () => runCli(['new-account', '--yes', '--reason', 'first deployment'], { env: world.env });
  expect(await state()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Noted: account \d+ is new/) });
  await untilSent(world, 1);
  expect(performance.now() - statedAt).toBeLessThan(15_000);
  await untilLeased(worker);
  await untilSettled(world, 2);
  await expectPromisesKept(world);
});

describe('SIGTERM', () => {
  it('waits for the response under way, begins no new send, and exits 0', async () => {
    const world = await worldOfTest({ sandbox: { latencyAfterMs: 1_500 } });
    await world.enqueue(3);
    const worker = world.startWorker();
    await untilSent(world, 1);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
    expect(world.sandbox.stats().arrivals).toBe(1);
    expect(await world.producer.stats()).toMatchObject({ queued: 2, in_progress: 1, unknown: 0, sender: null });
  });

  it('a second signal ends at once, and what was under way becomes unknown', async () => {
    const world = await worldOfTest({ sandbox: { latencyAfterMs: 20_000 } });
    await world.enqueue(1);
    const worker = world.startWorker();
    await untilSent(world, 1);
    worker.kill('SIGTERM');
    await delay(300);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe('SIGTERM');
    world.startWorker();
    await until('it is unknown', async () => (await world.producer.stats()).unknown === 1);
    expect(world.sandbox.stats().arrivals).toBe(1);
  });
});
