import { expect, it } from '@jest/globals';
import { PayoutProducer } from '../src/control/payout-producer.js';
import { findFreePort } from '../src/sandbox/local-redis.js';
import { newPlatformId, testRedisUrl } from './support/account.js';
import { closeAfterTest } from './worker/support/close-after-test.js';
import { startOwnRedis } from './worker/support/own-redis.js';

/** A wrong address of Redis: what a program is told has the cause, and no password. */

const CASES: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
  [
    'a host that is not known',
    async () => Promise.resolve('redis://no-such-host.invalid:6379'),
    /(ENOTFOUND|EAI_AGAIN) no-such-host\.invalid/,
  ],
  ['nobody at the port', async () => `redis://127.0.0.1:${await findFreePort()}`, /ECONNREFUSED 127\.0\.0\.1:\d+/],
  [
    'TLS at a plain port',
    async () => Promise.resolve(testRedisUrl().replace('redis://', 'rediss://')),
    /the port is open, but does not speak TLS: .* or redis:\/\/ in place of rediss:\/\//,
  ],
  [
    'a database that does not exist',
    async () => `${closeAfterTest(await startOwnRedis()).url}/99`,
    /DB index is out of range/,
  ],
];

it.each(CASES)(
  'a producer is told of %s',
  async (_name, makeUrl, cause) => {
    const redisUrl = await makeUrl();
    const producer = closeAfterTest(new PayoutProducer({ redisUrl, platformId: newPlatformId() }));
    const failure = await producer.stats().then(
      () => undefined,
      (error: unknown) => error as Error & { readonly code?: unknown },
    );
    expect(failure?.code).toBe('REDIS_UNAVAILABLE');
    expect(failure?.message).toMatch(cause);
    expect(failure?.message).toMatch(/^Redis unavailable \(.*\): check .* REDIS_URL/);
  },
  30_000,
);
