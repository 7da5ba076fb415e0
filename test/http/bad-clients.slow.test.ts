import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { createToken } from '../../src/http/tokens.js';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { testRedisUrl } from '../support/account.js';
import { startCli, type RunningCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { expectPromisesKept, openWorld, type PayoutWorld, untilSettled } from '../worker/support/payout-world.js';
import { askDoor, EventStream, openDoor, payout } from './support/door-rig.js';

/** Clients that are slow, broken or many, at a real door beside a real worker. */

let redis: LocalRedis;
let world: PayoutWorld;
let door: RunningCli;
let url: string;
let token: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  redis = await startLocalRedis();
  world = await openWorld({ redis });
  const made = createToken({ name: 'shop', account: world.platformId, rights: ['enqueue', 'read'] });
  ({ token } = made);
  const tokensFile = join(world.dir, 'tokens.yaml');
  await writeFile(tokensFile, made.line, { mode: 0o600 });
  const port = await findFreePort();
  door = startCli(['serve'], {
    env: {
      ...{ REDIS_URL: redis.url, GATEWAY_PLATFORM_ID: String(world.platformId), SERVE_TOKENS_FILE: tokensFile },
      ...{ SERVE_PORT: String(port), SERVE_HEALTH_PORT: '0', LOG_LEVEL: 'info' },
    },
  });
  url = `http://127.0.0.1:${port}`;
  await door.waitForOutput(/the HTTP door serves/);
}, 120_000);

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

afterAll(async () => {
  door.kill('SIGTERM');
  await door.result;
  await world.close();
  await redis.stop();
});

async function open(to = url): Promise<Socket> {
  const { hostname, port } = new URL(to);
  const socket = connect({ host: hostname, port: Number(port) });
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function isServed() {
  const startedAt = performance.now();
  // A kept connection is one that the door may end meanwhile, if it has too many.
  const headers = { connection: 'close' };
  const { status } = await askDoor(url, 'GET', '/v1/stats', { token, headers });
  return status === 200 && performance.now() - startedAt < 5_000;
}

/** Sends a byte a second. @returns how long the door bore it, in ms, and what it said */
async function trickle(start: string): Promise<{ readonly ms: number; readonly text: string }> {
  const socket = await open();
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const startedAt = performance.now();
  const closed = once(socket, 'close');
  socket.write(start);
  const timer = setInterval(() => socket.write('a'), 1_000);
  await closed;
  clearInterval(timer);
  return { ms: performance.now() - startedAt, text };
}

it('ends requests whose headers or bodies come slowly, and serves others meanwhile', async () => {
  const headers = Array.from({ length: 100 }, async () => trickle('GET /v1/stats HTTP/1.1\r\nHost: x\r\nX-Slow: '));
  const head = `POST /v1/payouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n`;
  const bodies = Array.from({ length: 100 }, async () => trickle(head));
  const checks = { good: 0, bad: 0 };
  const served = setInterval(() => {
    void isServed().then((is) => (checks[is ? 'good' : 'bad'] += 1));
  }, 1_000);
  const ended = await Promise.all([...headers, ...bodies]);
  clearInterval(served);
  for (const { ms, text } of ended.slice(0, 100)) {
    expect(ms).toBeLessThan(25_000);
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
  }
  for (const { ms } of ended.slice(100)) expect(ms).toBeLessThan(60_000);
  expect(checks.bad).toBe(0);
  expect(checks.good).toBeGreaterThan(10);
});

it('serves while more connections than it takes are idle, before and after a request', async () => {
  const request = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
  for (let count = 0; count < 1_100; count += 1) {
    const socket = await open();
    socket.resume();
    if (count % 2 === 0) socket.write(request);
  }
  for (let times = 0; times < 3; times += 1) expect(await isServed()).toBe(true);
});

it('reads a long header about as fast as a short one', async () => {
  const ask = async (spaces: number) => {
    const startedAt = performance.now();
    for (let times = 0; times < 60; times += 1) {
      const headers = { 'content-type': `application/json${' '.repeat(spaces)}x` };
      expect((await askDoor(url, 'POST', '/v1/payouts', { token, text: '{}', headers })).status).toBe(415);
    }
    return performance.now() - startedAt;
  };
  const times = { short: [await ask(1)], long: [await ask(7_000)] };
  for (let round = 0; round < 2; round += 1) {
    times.short.push(await ask(1));
    times.long.push(await ask(7_000));
  }
  // The least of three: a busy machine slows down a single one.
  expect(Math.min(...times.long)).toBeLessThan(500 + 3 * Math.min(...times.short));
});

const BAD = [
  'GET /v1/stats HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /v1/payouts/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pq_0000000000000000000000000000000000000000000\r\n\r\n',
  'DELETE /v1/payouts HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /nowhere?x=1 HTTP/1.1\r\nHost: x\r\n\r\n',
];

/** Sends bad requests over some connections as fast as they are answered. */
async function flood(count: number) {
  let left = count;
  const lane = async (): Promise<void> => {
    const socket = await open();
    while (left > 0) {
      left -= 40;
      let due = 40;
      socket.write(BAD.join('').repeat(10));
      while (due > 0) {
        const [chunk] = (await once(socket, 'data')) as [Buffer];
        due -= chunk.toString('latin1').match(/HTTP\/1\.1 4\d\d /g)?.length ?? 0;
      }
    }
  };
  await Promise.all(Array.from({ length: 10 }, lane));
}

it('bad requests reach neither Redis nor the worker, however many come', async () => {
  const client = new Redis(redis.url);
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1]);
  const before = await commands();
  await flood(10_000);
  expect((await commands()) - before).toBeLessThan(50);

  world.startWorker();
  const ids = Array.from({ length: 8 }, (_, index) => `flood-${index}`);
  for (const id of ids) {
    const body = payout(id, { addressTo: `wallet-${id}xxxxxxxxxxxxxxxxxxxx`, paymentId: 1 });
    expect((await askDoor(url, 'POST', '/v1/payouts', { token, body })).status).toBe(201);
  }
  const end = { isDue: false };
  const flooding = (async () => {
    while (!end.isDue) await flood(20_000);
  })();
  await untilSettled(world, ids.length);
  end.isDue = true;
  await flooding;
  await expectPromisesKept(world);
  expect(await world.producer.stats()).toMatchObject({ completed: ids.length, unknown: 0 });
  await client.quit();
}, 240_000);

it('tells a reader of events that it is alive, and disconnects one that takes nothing', async () => {
  const rig = await openDoor();
  const stream = await EventStream.open(rig);
  await until('a comment came', () => stream.text.includes('\n: keep-alive\n\n'), 30_000);
  expect(stream.events).toEqual([]);
  stream.close();
  const client = new Redis(testRedisUrl());
  const pipeline = client.pipeline();
  const key = `{payouts:${rig.platformId}}:events`;
  // More than the buffers of both sockets hold.
  for (let index = 0; index < 8_000; index += 1) {
    pipeline.xadd(key, '*', 'type', 'paused', 'at', '1', 'by', 'x', 'reason', 'r'.repeat(4_000));
  }
  await pipeline.exec();
  const socket = await open(rig.door.url);
  socket.pause();
  socket.write(`GET /v1/events?after=0-0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${rig.tokens.read}\r\n\r\n`);
  const untilStreams = async (count: number): Promise<void> =>
    until(`${count} open`, async () => (await rig.metrics()).includes(`payouts_http_streams ${count}\n`), 90_000);
  const before = process.memoryUsage();
  await untilStreams(1);
  // Others are served meanwhile.
  expect((await rig.ask('GET', '/v1/stats')).status).toBe(200);
  await untilStreams(0);
  const after = process.memoryUsage();
  // It held a page or two.
  expect(after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed).toBeLessThan(64_000_000);
  await client.del(key);
  await client.quit();
  await rig.close();
});

it('refuses headers of more than 8 kB', async () => {
  const socket = await open();
  socket.write(`GET /v1/stats HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(9_000)}\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 431 /);
});
