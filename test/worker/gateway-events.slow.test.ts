import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { until } from '../support/until.js';
import { expectPace, untilSettled, worldOfTest } from './support/payout-world.js';
import { sign, post, withPayoutsInProgress, withWebhooks, sendPart, POLL_MS } from './support/gateway-events-rig.js';

/** The gateway's webhooks over time: floods, limits, slow clients, several processes. */

it.each(['lost', 'forged'] as const)('without webhooks (%s) nothing is lost: the poll finds it', async (webhooks) => {
  const { world, counted } = await withWebhooks(webhooks, { pollMs: 1_500 });
  await world.enqueue(2);
  await untilSettled(world, 2);
  expect(await world.producer.stats()).toMatchObject({ completed: 2, unknown: 0 });
  const { forged = 0, ...others } = await counted();
  expect(forged > 0).toBe(webhooks === 'forged');
  expect(Object.values(others).filter((value) => value > 0)).toEqual([]);
});

it('with webhooks each payout that is paid at once is completed within 2 s, half of the time to its first poll', async () => {
  const pollMs = 4_000;
  const { world } = await withWebhooks('sent', { pollMs, sandbox: { settleAfterMs: 0 } });
  const payoutIds = await world.enqueue(10);
  await untilSettled(world, 10);
  const took = payoutIds.map(async (payoutId) => {
    const { state, addressTo, updatedAt = '' } = (await world.producer.get(payoutId)) ?? {};
    const paid = world.sandbox.payments().find((payment) => payment.addressTo === addressTo);
    expect({ payoutId, state }).toEqual({ payoutId, state: 'completed' });
    return Date.parse(updatedAt) - (performance.timeOrigin + (paid?.acceptedAtMs ?? Number.NaN));
  });
  const slowestMs = Math.max(...(await Promise.all(took)));
  process.stdout.write(`paid to completed with webhooks: ${slowestMs.toFixed(0)} ms at most\n`);
  expect(slowestMs).toBeLessThan(pollMs / 2);
  expectPace(world.sandbox);
});

it('a flood about one payment is a poll a second, and another payout is asked for at once', async () => {
  const rate = 5;
  const { world, url, gatewayIds, polls } = await withPayoutsInProgress(2, {}, { pollRate: rate });
  const { platformId } = world;
  const [flooded = '', other = ''] = gatewayIds.map((transactionId) => JSON.stringify({ transactionId, approve: 0 }));
  const startedAt = performance.now();
  const elapsedS = () => (performance.now() - startedAt) / 1_000;
  let [sent, isOtherSent, otherAt] = [0, false, 0];
  while (elapsedS() < 4) {
    expect(await post(url, flooded, sign(platformId, flooded))).toBe(200);
    sent += 1;
    if (!isOtherSent && elapsedS() > 2) {
      isOtherSent = true;
      const before = polls();
      expect(await post(url, other, sign(platformId, other))).toBe(200);
      void until('the other is polled', () => polls() > before).then(() => (otherAt = elapsedS()));
    }
    await delay(2);
  }
  await delay(1_500);
  expect(sent).toBeGreaterThan(50);
  // One look at once, one for each second after, and one for the other payout.
  expect(polls()).toBeGreaterThanOrEqual(3);
  expect(polls()).toBeLessThanOrEqual(Math.ceil(elapsedS()) + 2);
  expect(otherAt).toBeGreaterThan(0);
  expectPace(world.sandbox);
});

it('polls that webhooks bring forward keep to the limit of polls', async () => {
  const rate = 2;
  const { world, url, gatewayIds, polls } = await withPayoutsInProgress(5, {}, { pollRate: rate });
  const startedAt = performance.now();
  const bodies = gatewayIds.map((transactionId) => JSON.stringify({ transactionId }));
  await Promise.all(bodies.map(async (body) => post(url, body, sign(world.platformId, body))));
  await until('all are polled', () => polls() === 5);
  // Two at once, two a second later, one after that; less what BullMQ's second may begin early.
  expect(performance.now() - startedAt).toBeGreaterThan(900);
}, 60_000);

it('the first of several processes takes them for all accounts', async () => {
  const port = await findFreePort();
  const ids = [7_000_000 + Math.floor(Math.random() * 1e9)].flatMap((id) => [id, id + 1]);
  const webhookUrl = `http://127.0.0.1:${port}/gateway-events/PLATFORM_ID`;
  const world = await worldOfTest({ platformIds: ids, sandbox: { settleAfterMs: 0, v2: { webhookUrl } } });
  const accounts = ids.map((platformId) => ({ platformId, api: 'v2', pollMinMs: POLL_MS, pollMaxMs: POLL_MS }));
  const environment = { ...(await world.writeAccounts(accounts)), GATEWAY_EVENTS_PORT: String(port) };
  const worker = world.startWorker({ args: ['--processes', '2'], environment });
  await until('both serve', () => worker.log().split('serving /healthz').length > 2);
  for (const id of ids) await world.producerOf(id).enqueue({ ...PAYOUT, payoutId: `P-${id}` });
  for (const id of ids)
    await until(`${id} is completed`, async () => (await world.producerOf(id).stats()).completed === 1);
  expect(worker.log().split('taking the webhooks').length).toBe(2);
});

const PAYOUT = { paymentId: 1, amount: '0.01', addressTo: 'wallet-1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' };

it('a message that does not come to its end is ended, and counted', async () => {
  const { world, url, payoutIds, results } = await withPayoutsInProgress(1);
  const startedAt = performance.now();
  const received = await sendPart(
    url,
    'POST /gateway-events HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"trans',
    false,
  );
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  expect(received).toMatch(/^(HTTP\/1\.1 408 |$)/);
  expect(await results()).toEqual({ [`${world.platformId} refused`]: 1 });
  expect(await sendPart(url, 'POST /gateway-events HTTP/1.1\r\nHost', false)).toMatch(/^(HTTP\/1\.1 408 |$)/);
  expect((await world.producer.get(payoutIds[0] ?? ''))?.state).toBe('in_progress');
});
