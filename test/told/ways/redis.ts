import type { Way } from '../way.js';

/** Redis is unavailable, or unfit for a send. */
export const REDIS_WAYS: readonly Way[] = [
  {
    name: 'Redis is down',
    happens: async ({ redis }) => redis.stop(),
    told: {
      alerts: ['PayoutsRedisDown'],
      readyz: { status: 503, words: '"redis":"unavailable"' },
      doctor: { exit: 1, check: 'Redis', words: 'not reachable' },
    },
  },
];
