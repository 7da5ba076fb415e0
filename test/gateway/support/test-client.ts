import { systemClock } from '../../../src/base/clock.js';
import type { GatewayClientOptions } from '../../../src/gateway/exchange/client-options.js';
import type { Gateway } from '../../../src/gateway/gateway.js';
import { openV2 } from '../../../src/gateway/v2/client.js';
import { createGatewayClient, type GatewayClient } from '../../../src/gateway/v1/client.js';
import { type Logger, silentLogger } from '../../../src/base/logger.js';

export const SECRET_KEY = 'k-0123456789abcdef-secret';

interface Server {
  readonly baseUrl: string;
  readonly ca?: string | undefined;
}

/** A client of a test's own server, with a secret that must be found nowhere. */
export function clientOf(server: Server, options: Partial<GatewayClientOptions> = {}): GatewayClient {
  return createGatewayClient(toOptions(server, options));
}

/** The same of the second generation. */
export function v2Of(server: Server, options: Partial<GatewayClientOptions> = {}): Gateway {
  return openV2(toOptions(server, options));
}

function toOptions(server: Server, options: Partial<GatewayClientOptions>): GatewayClientOptions {
  return {
    baseUrl: server.baseUrl,
    platformId: 4242,
    secretKey: SECRET_KEY,
    logger: silentLogger,
    clock: systemClock,
    ...(server.ca === undefined ? {} : { ca: server.ca }),
    ...options,
  };
}

export function recordingLogger(): Logger & { readonly lines: { message: string; fields: object }[] } {
  const lines: { message: string; fields: object }[] = [];
  const loggerWith = (bound: object): Logger => {
    const log = (fields: object, message: string) => void lines.push({ message, fields: { ...bound, ...fields } });
    return { debug: log, info: log, warn: log, error: log, child: (fields) => loggerWith({ ...bound, ...fields }) };
  };
  return Object.assign(loggerWith({}), { lines });
}
