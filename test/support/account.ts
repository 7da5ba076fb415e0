import { randomInt } from 'node:crypto';

/** An account that no other test has: tests share one Redis, and each keeps to its own keys. */
export function newPlatformId(): number {
  return randomInt(1_000_000, 2 ** 40);
}

export function testRedisUrl(): string {
  const url = process.env['REDIS_URL'];
  if (url === undefined)
    throw new Error('REDIS_URL is not set: run the tests through jest, whose global setup does it');
  return url;
}
