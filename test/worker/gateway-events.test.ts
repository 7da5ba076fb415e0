import { expect, it } from '@jest/globals';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest } from './support/close-after-test.js';
import { startOwnRedis } from './support/own-redis.js';
import { expectPace, SECRET_KEY, untilSettled, worldOfTest } from './support/payout-world.js';
import {
  sign,
  post,
  withPayoutsInProgress,
  withWebhooks,
  sendPart,
  delayedScores,
  POLL_MS,
  MOST_BYTES,
} from './support/gateway-events-rig.js';

/** The gateway's webhooks: a hint when to ask, and nothing else. */

it.each(['sent', 'repeated', 'early'] as const)(
  'with webhooks (%s) a payout is completed soon after it is paid, long before its poll',
  async (webhooks) => {
    // A response that takes a while: an early webhook comes before the ledger knows the payment.
    const { world, counted } = await withWebhooks(webhooks, { sandbox: { settleAfterMs: 0, latencyAfterMs: 200 } });
    await world.enqueue(1);
    await until('it is paid', () => world.sandbox.payments().length === 1);
    const paidAt = performance.now();
    await untilSettled(world, 1);
    const elapsedMs = performance.now() - paidAt;
    expect(await world.producer.stats()).toMatchObject({ completed: 1 });
    expect(elapsedMs).toBeLessThan(POLL_MS / 60);
    const { unknown = 0, repeated = 0, ...others } = await counted();
    expect(others).toMatchObject({ forged: 0, refused: 0, unreadable: 0, unavailable: 0 });
    if (webhooks === 'early') expect(unknown).toBeGreaterThan(0);
    if (webhooks === 'repeated') expect(repeated).toBeGreaterThan(1);
    expectPace(world.sandbox);
  },
);

it('what is no message of the gateway for a payout in progress changes nothing, and is counted', async () => {
  const { world, worker, url, payoutIds, gatewayIds, results, polls } = await withPayoutsInProgress(2);
  const { platformId, producer } = world;
  const [, transactionId = ''] = gatewayIds;
  const body = JSON.stringify({ platformId, transactionId, approve: 1 });
  const before = await Promise.all(payoutIds.map(async (id) => producer.get(id)));
  const schedule = await delayedScores(world, worker);
  const polled = polls();
  const signed = async (text: string) => post(url, text, sign(platformId, text));

  expect(await post(url, body)).toBe(401);
  expect(await post(url, body, sign(platformId, body, 'another key'))).toBe(401);
  expect(await post(url, body, sign(platformId + 1, body))).toBe(401);
  expect(await post(url, `${body} `, sign(platformId, body))).toBe(401);
  expect(await post(url, body, 'é')).toBe(401);
  expect(await signed(JSON.stringify({ transactionId: '1' }))).toBe(404);
  expect(await signed('no JSON')).toBe(200);
  expect(await signed('{"approve":1}')).toBe(200);
  expect(await signed(`{"transactionId":"1","transactionId":"${transactionId}"}`)).toBe(200);
  expect(await signed(JSON.stringify({ transactionId: { $gt: '' } }))).toBe(200);
  expect(await post(url, '', undefined, 'GET')).toBe(405);
  expect(await post(`${url}/1`, body, sign(platformId, body))).toBe(404);
  expect(await post(url.replace('/gateway-events', '/'), body, sign(platformId, body))).toBe(404);
  expect(await signed(body.padEnd(MOST_BYTES + 1))).toBe(413);
  expect(await sendPart(url, `POST /gateway-events HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"trans`)).toBe('');

  await until('all are counted', async () => (await results())[`${platformId} refused`] === 3);
  expect(await results()).toEqual({
    ...{ [`${platformId} forged`]: 5, [`${platformId} unknown`]: 1, [`${platformId} unreadable`]: 4 },
    ...{ [`${platformId} refused`]: 3, 'none refused': 2 },
  });
  expect(await Promise.all(payoutIds.map(async (id) => producer.get(id)))).toEqual(before);
  expect(await delayedScores(world, worker)).toEqual(schedule);
  expect(polls()).toBe(polled);

  // The same by the rules, at the longest allowed: one poll, and no state.
  expect(await signed(body.padEnd(MOST_BYTES))).toBe(200);
  await until('it was polled', () => polls() === polled + 1);
  expect(await Promise.all(payoutIds.map(async (id) => producer.get(id)))).toEqual(before);
  expect((await results())[`${platformId} heeded`]).toBe(1);
});

it('a webhook that says "failed" or another amount is believed in nothing: the gateway is asked', async () => {
  const { world, url, payoutIds, gatewayIds, results } = await withPayoutsInProgress(1, {
    sandbox: { settleAfterMs: 0 },
  });
  const { platformId } = world;
  const lies = JSON.stringify({ transactionId: gatewayIds[0], approve: 2, amount: '9999', addressTo: 'thief' });
  expect(await post(url, lies, sign(platformId, lies))).toBe(200);
  await untilSettled(world, 1);
  expect(await world.producer.get(payoutIds[0] ?? '')).toMatchObject({ state: 'completed', amount: '0.01' });
  expect(await post(url, lies, sign(platformId, lies))).toBe(200);
  await until('the second is over', async () => {
    const { [`${platformId} settled`]: settled = 0, [`${platformId} repeated`]: repeated = 0 } = await results();
    return settled + repeated === 1;
  });
  expect((await world.producer.stats()).completed).toBe(1);
});

it('each account has its own path, and its own key', async () => {
  const { world, worker, url, gatewayIds, polls } = await withPayoutsInProgress(1, { accounts: 2 });
  const { platformId } = world;
  const [, neighbour = 0] = worker.accounts.map((account) => account.platformId);
  const body = JSON.stringify({ transactionId: gatewayIds[0] });
  const polled = polls();
  expect(await post(url, body, sign(platformId, body))).toBe(404);
  expect(await post(`${url}/${neighbour}`, body, sign(platformId, body))).toBe(401);
  expect(await post(`${url}/${neighbour}`, body, sign(neighbour, body))).toBe(404);
  expect(polls()).toBe(polled);
  expect(await post(`${url}/${platformId}`, body, sign(platformId, body))).toBe(200);
  await until('it was polled', () => polls() === polled + 1);
});

it('while Redis does not answer, the gateway is told to come again', async () => {
  const redis = closeAfterTest(await startOwnRedis());
  const { world, url, gatewayIds, results } = await withPayoutsInProgress(1, { redis });
  const body = JSON.stringify({ transactionId: gatewayIds[0] });
  await redis.stop();
  expect(await post(url, body, sign(world.platformId, body))).toBe(503);
  expect(await results()).toEqual({ [`${world.platformId} unavailable`]: 1 });
  await redis.startAgain();
  await until('it is heeded', async () => (await post(url, body, sign(world.platformId, body))) === 200);
});

it.each([
  ['without an account of API v2', { GATEWAY_EVENTS_PORT: '0' }, /GATEWAY_EVENTS_PORT: must not be set: no account/],
  ['with no port', { GATEWAY_API: 'v2', GATEWAY_EVENTS_PORT: 'http' }, /GATEWAY_EVENTS_PORT: .*0 .*65535.*"http"/],
  [
    'on a host that is not here',
    { GATEWAY_API: 'v2', GATEWAY_EVENTS_PORT: '0', GATEWAY_EVENTS_HOST: '192.0.2.1' },
    /GATEWAY_EVENTS_PORT: cannot listen on 192\.0\.2\.1 port 0/,
  ],
])('the worker refuses to take webhooks %s, and ends', async (_name, environment, message) => {
  const world = await worldOfTest();
  const access = { GATEWAY_BASE_URL: world.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY, HEALTH_PORT: '0' };
  const { code, stderr } = await runCli(['worker'], { env: { ...world.env, ...access, ...environment } });
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
});
