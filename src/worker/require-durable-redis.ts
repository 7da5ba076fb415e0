import { untilAborted, type Clock } from '../clock.js';
import { InvalidConfigError, StoppedError } from '../errors.js';
import { checkDurability } from '../ledger/redis-durability.js';
import type { Logger } from '../logger.js';
import { toRedisError, type RedisClient } from '../redis.js';

const DURABILITY_RETRY_MS = 1_000;

/**
 * A Redis that is unavailable at the start is waited for; one that may forget is refused.
 * @throws InvalidConfigError when it may forget and nobody allowed that
 * @throws StoppedError when the signal ended the waiting
 */
export async function requireDurableRedis(
  redis: RedisClient,
  { allowVolatileRedis, logger, clock }: { allowVolatileRedis: boolean; logger: Logger; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const aborted = untilAborted(signal);
  for (;;) {
    try {
      const report = await Promise.race([checkDurability(redis), aborted]);
      if (report === undefined) throw new StoppedError('The worker was stopped while it waited for Redis.');
      const { problems, warnings } = report;
      for (const warning of warnings) logger.warn({}, `Redis: ${warning}`);
      if (problems.length === 0) return;
      if (!allowVolatileRedis) {
        throw new InvalidConfigError(
          problems.map((message) => ({
            field: 'REDIS_URL',
            message: `this Redis may forget what was sent: ${message}`,
          })),
        );
      }
      logger.warn({ problems }, 'ALLOW_VOLATILE_REDIS: this Redis may forget what was sent');
      return;
    } catch (error) {
      if (error instanceof InvalidConfigError || error instanceof StoppedError) throw error;
      logger.warn({ error: (toRedisError(error) as Error).message }, 'waiting for Redis');
      await clock.sleep(DURABILITY_RETRY_MS, signal);
    }
  }
}
