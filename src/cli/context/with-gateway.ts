import { systemClock } from '../../clock.js';
import { readConfig } from '../../config.js';
import { createGatewayClient, type GatewayClient } from '../../gateway/gateway-client.js';
import { silentLogger } from '../../logger.js';
import type { CliContext } from './cli-context.js';

/**
 * Runs `use` with the gateway of the environment's account, and closes it on every way out.
 * @throws InvalidConfigError when the environment is not usable; what `use` throws
 */
export async function withGateway<Result>(
  { environment }: CliContext,
  use: (gateway: GatewayClient) => Promise<Result>,
): Promise<Result> {
  const names = ['GATEWAY_PLATFORM_ID', 'GATEWAY_BASE_URL', 'GATEWAY_SECRET_KEY', 'GATEWAY_TIMEOUT_MS'] as const;
  const config = readConfig(names, environment);
  const gateway = createGatewayClient({
    baseUrl: config.GATEWAY_BASE_URL,
    platformId: config.GATEWAY_PLATFORM_ID,
    secretKey: config.GATEWAY_SECRET_KEY,
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    clock: systemClock,
    // A call that fails throws, and what it throws is shown.
    logger: silentLogger,
  });
  try {
    return await use(gateway);
  } finally {
    gateway.close();
  }
}
