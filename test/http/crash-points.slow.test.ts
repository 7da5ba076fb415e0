import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { CRASHED_DOOR } from '../proofs/crash/enqueuer-points.js';
import { tryPoints } from '../proofs/crash/try-points.js';

let redis: LocalRedis;

beforeAll(async () => {
  redis = await startLocalRedis();
});

afterAll(async () => {
  await redis.stop();
});

it('a door that is killed before and after each of its commands has what it answered, and can be asked again', async () => {
  const { passed, failed } = await tryPoints(CRASHED_DOOR, { redis, isSigned: false }, 4);
  expect(failed).toBe(0);
  expect(passed).toBeGreaterThan(40);
}, 1_800_000);
