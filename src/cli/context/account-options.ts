import { readConfig } from '../../config.js';
import type { AccountConnectionOptions } from '../../queues/open-ledger.js';
import type { CliContext } from './cli-context.js';

/**
 * How the account of the environment is opened.
 * @throws InvalidConfigError when the environment is not usable
 */
export function readAccountOptions({ environment, logger }: CliContext): AccountConnectionOptions {
  const config = readConfig(['REDIS_URL', 'REDIS_REPLICAS', 'GATEWAY_PLATFORM_ID'], environment);
  return {
    redisUrl: config.REDIS_URL,
    redisReplicas: config.REDIS_REPLICAS,
    platformId: config.GATEWAY_PLATFORM_ID,
    logger,
  };
}
