import { z } from 'zod';
import { parseInput } from '../base/fields.js';
import { ACCOUNT_SETTINGS, type GatewayApi } from '../base/settings.js';
import type { GatewayClientOptions } from './exchange/client-options.js';
import { createGatewayClient } from './v1/client.js';
import type { Gateway } from './gateway.js';
import { openV2 } from './v2/client.js';

export { examineConnection, type ExaminedConnection } from './exchange/examine-connection.js';
export type { GatewayClientOptions } from './exchange/client-options.js';
export { createGatewayClient, type GatewayClient } from './v1/client.js';
export type { Approve, CurrencyItem } from './response-fields.js';
export type { TransactionStatus } from './v1/endpoints.js';

/** How an account's gateway is reached, and which of its APIs it speaks. */
export interface OpenGatewayOptions extends GatewayClientOptions {
  /** The generation of the API. @defaultValue `'v1'` */
  readonly api?: GatewayApi | undefined;
}

const OPEN: Readonly<Record<GatewayApi, (options: GatewayClientOptions) => Gateway>> = {
  v1: createGatewayClient,
  v2: openV2,
};

/**
 * The one place that chooses which API is spoken.
 * @throws InvalidInputError if an option is unknown or not usable
 */
export function openGateway({ api, ...options }: OpenGatewayOptions): Gateway {
  return OPEN[parseInput(apiOption, { api }).api](options);
}

const apiOption = z.object({ api: ACCOUNT_SETTINGS.api.rule.default(ACCOUNT_SETTINGS.api.default) });
