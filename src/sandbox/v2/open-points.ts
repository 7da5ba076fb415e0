import { z } from 'zod';

/**
 * How a sandbox behaves where the pages of the second generation leave it open, or differ from each other.
 * @see docs/gateway-api-v2.md#open-points
 */
export interface SandboxV2Options {
  /**
   * What becomes of an `orderId` in `/v2/withdraw`: the payment can be found by it, it is ignored, or the call fails.
   * @defaultValue `'known'`
   */
  readonly orderIds?: 'known' | 'ignored' | 'refused' | undefined;
  /** Milliseconds from a withdrawal until `/v2/withdrawstatus` finds it by its `orderId`. @defaultValue `0` */
  readonly orderIdKnownAfterMs?: number | undefined;
  /** A second withdrawal with the same `orderId` fails. @defaultValue `false`: it pays again */
  readonly refusesRepeatedOrderId?: boolean | undefined;
  /**
   * What a signature must be of: the bytes as sent, or the same fields as PHP's `json_encode` writes them (`\/`), or as
   * most others do (`/`).
   * @defaultValue `'as-sent'`
   */
  readonly signed?: 'as-sent' | 'slashes-escaped' | 'slashes-plain' | undefined;
  /** The `amount` in answers to a withdrawal with a `symbol`: in the coin, or as asked for. @defaultValue `'coin'` */
  readonly amounts?: 'coin' | 'as-asked' | undefined;
  /** HTTP status of a `/v2/withdrawstatus` that failed. @defaultValue `400` */
  readonly failedStatusCode?: 200 | 400 | undefined;
  /** `/v2/withdrawstatus` repeats the `transactionId`, also if it was asked by an `orderId`. @defaultValue `true` */
  readonly statusNamesPayment?: boolean | undefined;
  /** Where a signed webhook is posted once a payment of `/v2/withdraw` has settled. @defaultValue none is */
  readonly webhookUrl?: string | undefined;
  /**
   * What becomes of them. `repeated`: each comes six times. `forged`: signed with another key. `early`: each comes before
   * the response to the withdrawal, too.
   * @defaultValue `'sent'`
   */
  readonly webhooks?: 'sent' | 'lost' | 'repeated' | 'forged' | 'early' | undefined;
}

export const v2Field = z.strictObject({
  orderIds: z.enum(['known', 'ignored', 'refused']).default('known'),
  orderIdKnownAfterMs: z.number({ error: 'must be milliseconds' }).min(0, 'must be 0 or more').default(0),
  refusesRepeatedOrderId: z.boolean().default(false),
  signed: z.enum(['as-sent', 'slashes-escaped', 'slashes-plain']).default('as-sent'),
  amounts: z.enum(['coin', 'as-asked']).default('coin'),
  failedStatusCode: z.literal([200, 400]).default(400),
  statusNamesPayment: z.boolean().default(true),
  webhookUrl: z.url({ protocol: /^https?$/, error: 'must be a URL of http:// or https://' }).optional(),
  webhooks: z.enum(['sent', 'lost', 'repeated', 'forged', 'early']).default('sent'),
});

/** The switches of {@link SandboxV2Options}. */
export const OPEN_POINT_NAMES: readonly string[] = Object.keys(v2Field.shape);

export type OpenPoints = z.output<typeof v2Field>;
