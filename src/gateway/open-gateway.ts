import type { GatewayClientOptions } from './exchange/client-options.js';
import { createGatewayClient } from './v1/client.js';
import type { Gateway } from './gateway.js';

export { examineConnection, type ExaminedConnection } from './exchange/examine-connection.js';
export type { GatewayClientOptions } from './exchange/client-options.js';
export { createGatewayClient, type GatewayClient } from './v1/client.js';
export type { Approve, CurrencyItem, TransactionStatus } from './v1/endpoints.js';

/**
 * The one place that chooses which API is spoken.
 * @throws InvalidInputError if an option is unknown or not usable
 */
export function openGateway(options: GatewayClientOptions): Gateway {
  return createGatewayClient(options);
}
