import { z } from 'zod';
import { platformIdField } from '../base/fields.js';
import { addressToField } from '../gateway/gateway.js';
import { delayRangeField, type DelayRange } from './latency.js';
import { ENDPOINT_NAMES, type EndpointName } from './endpoint-name.js';

/** Every fault and its effect for a caller. "Processed" means that a withdrawal has paid. */
export const FAULT_DESCRIPTIONS = {
  'latency-before': 'the call takes longer to arrive (delay)',
  'latency-after': 'the response takes longer to arrive (delay)',
  'drop-before': 'connection closed, call not processed',
  'drop-after': 'call processed, then the connection closed',
  'hang-before': 'no response, call not processed',
  hang: 'call processed, no response',
  truncated: 'call processed, half of the response, then the connection closed',
  'html-502': "call processed, a proxy's HTML page with status 502",
  'json-500': 'call processed, status 500 with a JSON message and no result',
  'wrong-json': 'call processed, JSON of another shape',
  'no-txhash': 'call processed, the response does not name the payment',
  'string-result': 'call processed, result as a string',
  'redirect-307': 'call not processed, a redirect to the same address',
  'rate-429': 'call not processed, status 429',
  reject: 'call not processed, result 0 (message)',
  block: 'call not processed, response as for a blocked account, which it is not',
} as const;

/** A fault that the sandbox can inject; {@link FAULT_DESCRIPTIONS} describes each. */
export type FaultKind = keyof typeof FAULT_DESCRIPTIONS;

const FAULT_KINDS = Object.keys(FAULT_DESCRIPTIONS) as [FaultKind, ...FaultKind[]];

/**
 * Which calls meet a fault. All given conditions must hold; without any, every call of the endpoint meets it. If
 * several rules match, latencies add up and the first other rule wins.
 */
export interface FaultRule {
  readonly kind: FaultKind;
  /** Of both dialects. @defaultValue `'withdraw'` */
  readonly endpoint?: EndpointName | 'any' | undefined;
  /** One call in N: the N-th, the 2N-th, … of those that meet the other conditions. */
  readonly every?: number | undefined;
  /** The number of calls after which the rule ends. */
  readonly times?: number | undefined;
  /** Only payments to these recipients; for `/transactionstatus`, only about them. */
  readonly addresses?: readonly string[] | undefined;
  /** Only calls of this account. */
  readonly platformId?: number | undefined;
  /** Milliseconds, for the two latencies only. */
  readonly delayMs?: number | DelayRange | undefined;
  /** The gateway's message, for `reject` only. */
  readonly message?: string | undefined;
}

const count = z.int({ error: 'must be a whole number' }).positive('must be more than 0');

export const faultRuleField = z
  .strictObject({
    kind: z.enum(FAULT_KINDS, { error: `must be one of ${FAULT_KINDS.join(', ')}` }),
    endpoint: z
      .enum([...ENDPOINT_NAMES, 'any'], { error: `must be one of ${ENDPOINT_NAMES.join(', ')}, any` })
      .default('withdraw'),
    every: count.optional(),
    times: count.optional(),
    addresses: z.array(addressToField).min(1, 'must name at least one address').optional(),
    platformId: platformIdField.optional(),
    delayMs: delayRangeField.optional(),
    message: z.string().min(1).max(1000).optional(),
  })
  .refine((rule) => isLatency(rule.kind) === (rule.delayMs !== undefined), {
    path: ['delayMs'],
    error: 'belongs to latency-before and latency-after, and these need it',
  })
  .refine((rule) => rule.kind === 'reject' || rule.message === undefined, {
    path: ['message'],
    error: 'belongs to reject',
  })
  .refine((rule) => rule.addresses === undefined || ['withdraw', 'transactionstatus'].includes(rule.endpoint), {
    path: ['addresses'],
    error: 'needs endpoint withdraw or transactionstatus: the other calls name no recipient',
  });

export type ParsedFaultRule = z.output<typeof faultRuleField>;

function isLatency(kind: FaultKind): boolean {
  return kind === 'latency-before' || kind === 'latency-after';
}
