import type { GatewayApi } from '../../src/base/settings.js';
import type { Random } from '../doubles/random.js';

/**
 * What the two generations of the gateway's API differ in at the port, and how a gateway reads the second's open points.
 * Whether it refuses an order id that it has seen makes no difference: a world fails if one is sent twice.
 */
export type Dialect = Readonly<{
  api: GatewayApi;
  /** A payment can be found by the order id that it was sent with. */
  knowsOrderIds: boolean;
  /** What is found by an order id has the name by which it is polled. */
  statusNamesPayment: boolean;
  /** By an order id it shows a payment of another amount, under a name of its own. */
  isMistaken: boolean;
}>;

export const FIRST_API: Dialect = {
  ...{ api: 'v1', knowsOrderIds: false, statusNamesPayment: false, isMistaken: false },
};

export function drawDialect(random: Random): Dialect {
  if (random.chance(0.5)) return FIRST_API;
  return {
    ...{ api: 'v2', knowsOrderIds: random.chance(0.75), statusNamesPayment: random.chance(0.75) },
    isMistaken: random.chance(0.15),
  };
}
