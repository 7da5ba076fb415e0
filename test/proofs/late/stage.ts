import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { until } from '../../support/until.js';
import { endChild } from './children.js';
import { CENTRE, openNetwork } from './network.js';

export const REDIS_PORT = 6_379;

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** What many cells share: the network, and in its centre a Redis. This process reaches that by a socket in the file system. */
export async function openStage() {
  const network = await openNetwork();
  const dir = await mkdtemp(join(tmpdir(), 'payouts-late-'));
  const socket = join(dir, 'redis.sock');
  const listening = [
    '--port',
    String(REDIS_PORT),
    '--bind',
    '0.0.0.0',
    '--protected-mode',
    'no',
    '--unixsocket',
    socket,
  ];
  const safe = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--maxmemory-policy', 'noeviction'];
  const server = network.start(['redis-server', '--dir', dir, ...listening, ...safe], { stdio: 'ignore' });
  // Producers take it: this server never leads to another one.
  const waits = { commandTimeout: 20_000, retryStrategy: () => 100, reconnectOnError: () => false };
  const redis = new Redis({ path: socket, ...waits });
  redis.on('error', () => undefined);
  await until('Redis answers', async () => (await redis.ping().catch(() => '')) === 'PONG');
  return {
    ...{ network, dir, redis },
    redisUrl: `redis://${CENTRE}:${REDIS_PORT}`,
    async close() {
      redis.disconnect();
      await endChild(server);
      await network.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
