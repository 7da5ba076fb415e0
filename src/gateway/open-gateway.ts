import { z } from 'zod';
import { parseInput } from '../base/fields.js';
import { ACCOUNT_SETTINGS, type GatewayApi } from '../base/settings.js';
import type { GatewayClientOptions } from './exchange/client-options.js';
import { createGatewayClient } from './v1/client.js';
import type { Gateway, OwnGateway } from './gateway.js';
import { guardGateway, type OwnGatewayLimits } from './own-gateway.js';
import { openV2 } from './v2/client.js';
import { ENDPOINTS } from './v2/endpoints.js';

export { examineConnection, type ExaminedConnection } from './exchange/examine-connection.js';
export type { GatewayClientOptions } from './exchange/client-options.js';
export { createGatewayClient, type GatewayClient } from './v1/client.js';
export type { Approve, CurrencyItem } from './response-fields.js';
export type { TransactionStatus } from './v1/endpoints.js';
export { hearHttpStatus } from './http-status.js';
export { findFaults, type OwnGatewayLimits, ownGatewayRule } from './own-gateway.js';

/** How an account reaches its gateway: by address and key of an API, or through an object of its own. */
export type GatewayAccess =
  | { readonly baseUrl: string; readonly secretKey: string; readonly gateway?: undefined }
  | { readonly gateway: OwnGateway; readonly baseUrl?: undefined; readonly secretKey?: undefined };

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
export function openGateway(
  given: GatewayAccess & Omit<OpenGatewayOptions, 'baseUrl' | 'secretKey'> & OwnGatewayLimits,
): Gateway {
  if (given.gateway !== undefined) return guardGateway(given.gateway, given);
  const { api, ...options } = given;
  return OPEN[parseInput(apiOption, { api }).api](options);
}

const apiOption = z.object({ api: ACCOUNT_SETTINGS.api.rule.default(ACCOUNT_SETTINGS.api.default) });

const V2_PATHS = {
  withdraw: ENDPOINTS.withdraw.path,
  transactionstatus: ENDPOINTS.withdrawstatus.path,
  currencies: ENDPOINTS.currencies.path,
  balance: ENDPOINTS.balance.path,
};

/** The path of a call, which metrics and traces name by its path in the first generation of the API. */
export function pathOf(api: GatewayApi, call: keyof typeof V2_PATHS): string {
  return api === 'v1' ? call : V2_PATHS[call];
}
