import { once } from 'node:events';
import { connect } from 'node:net';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { openDoor, type DoorRig } from './support/door-rig.js';
import { EventStream } from './support/event-stream.js';

let rig: DoorRig;

beforeEach(async () => {
  rig = await openDoor();
});

afterEach(async () => {
  await rig.close();
});

it('says that it is alive while nothing happens', async () => {
  const stream = await EventStream.open(rig);
  await until('a comment came', () => stream.text.includes('\n: keep-alive\n\n'), 30_000);
  expect(stream.events).toEqual([]);
  stream.close();
});

it('holds a page or two for a reader that takes nothing, and disconnects it after 30 s', async () => {
  const redis = new Redis(testRedisUrl());
  const pipeline = redis.pipeline();
  const key = `{payouts:${rig.platformId}}:events`;
  // More than the buffers of both sockets hold.
  for (let index = 0; index < 8_000; index += 1) {
    pipeline.xadd(key, '*', 'type', 'paused', 'at', '1', 'by', 'x', 'reason', 'r'.repeat(4_000));
  }
  await pipeline.exec();
  const { hostname, port } = new URL(rig.door.url);
  const socket = connect({ host: hostname, port: Number(port) });
  await once(socket, 'connect');
  socket.pause();
  socket.write(`GET /v1/events?after=0-0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${rig.tokens.read}\r\n\r\n`);
  const readOpen = async (): Promise<string> =>
    /payouts_http_streams (\d+)/.exec(await (await fetch(`${rig.door.healthUrl}/metrics`)).text())?.[1] ?? '';
  const before = process.memoryUsage();
  await until('it is open', async () => (await readOpen()) === '1');
  // Others are served meanwhile.
  expect((await rig.ask('GET', '/v1/stats')).status).toBe(200);
  await until('it is disconnected', async () => (await readOpen()) === '0', 90_000);
  const after = process.memoryUsage();
  expect(after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed).toBeLessThan(64_000_000);
  socket.destroy();
  await redis.del(key);
  await redis.quit();
});
