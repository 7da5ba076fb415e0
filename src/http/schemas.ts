import { z } from 'zod';
import { payoutIdField } from '../base/fields.js';
import { batchField, lineField, payoutInputSchema } from '../ledger/payout.js';
import { PAYOUT_STATES } from '../ledger/states.js';
import { PROBLEM_CODES } from './problem.js';

/** What requests must be, and what responses are. `/openapi.json` is made from these. */

export const MAX_PAYOUTS = 1_000;

export const payoutsBody = z.union([payoutInputSchema, z.array(payoutInputSchema).min(1).max(MAX_PAYOUTS)]);

export const cancelBody = z.strictObject({
  reason: lineField.optional(),
});

const stateField = z.enum(PAYOUT_STATES, { error: `must be one of ${PAYOUT_STATES.join(', ')}` });

const MAX_PAGE = 1_000;

export const listQuery = z
  .strictObject({
    state: stateField.exactOptional(),
    batch: batchField.exactOptional(),
    payoutId: payoutIdField.exactOptional(),
    limit: z
      .string('must be given once')
      .regex(/^([1-9]\d{0,2}|1000)$/, `must be a whole number from 1 to ${MAX_PAGE}`)
      .meta({ type: 'integer', minimum: 1, maximum: MAX_PAGE })
      .transform(Number)
      .exactOptional(),
    cursor: z
      .string('must be given once')
      .regex(/^\d{1,15}$/, 'must be the next of the page before')
      .exactOptional(),
  })
  .refine(({ payoutId, ...others }) => payoutId === undefined || Object.keys(others).length === 0, {
    path: ['payoutId'],
    error: 'must be asked for alone, without state, batch, limit and cursor',
  });

const eventIdField = z
  .string('must be given once')
  .regex(/^\d{1,19}-\d{1,19}$/, 'must be the id of an event, such as 1738314000000-0, or 0-0 for the oldest kept');

export const eventsQuery = z.strictObject({ after: eventIdField.exactOptional() });

const acceptedSchema = z.object({ payoutId: z.string(), state: stateField, created: z.boolean() });

const bulkSchema = z.object({
  created: z.int(),
  existing: z.int(),
  conflicts: z.int(),
  results: z.array(
    z.union([
      z.object({ kind: z.enum(['created', 'existing']), ...acceptedSchema.shape }),
      z.object({
        kind: z.literal('conflict'),
        payoutId: z.string(),
        state: stateField,
        fields: z.array(z.string()),
        removed: z.boolean().optional(),
      }),
    ]),
  ),
});

const timeField = z.iso.datetime();
const optionalText = z.string().optional();

const STATE_TEXT =
  'Book `completed` as paid; `failed` and `cancelled` as not paid, unless there is a `lateGatewayId`. `written_off` says nothing about payment, and what is `unknown` may be paid.';

const payoutSchema = z.looseObject({
  payoutId: z.string(),
  paymentId: z.int(),
  amount: z.string(),
  addressTo: z.string(),
  state: stateField.describe(STATE_TEXT),
  final: z.boolean(),
  attempt: z.int(),
  gatewayId: optionalText.describe('What its payment is called at the gateway'),
  txhash: optionalText.describe('The transaction on the chain, once the gateway has told it'),
  lateGatewayId: optionalText.describe('Whatever the state: the payout was paid by this payment'),
  lateTxhash: optionalText.describe('Its transaction on the chain, if the gateway told it'),
  fee: optionalText,
  message: optionalText,
  held: z.looseObject({ kind: z.string(), reason: z.string(), message: z.string() }).optional(),
  signedBy: optionalText,
  verified: z.boolean().optional(),
  createdAt: timeField,
  updatedAt: timeField,
  comments: z
    .array(z.object({ at: timeField, by: z.string(), text: z.string() }))
    .optional()
    .describe('What people wrote about it, the oldest first; not signed'),
  history: z.array(
    z.object({
      at: timeField,
      from: stateField.optional(),
      to: stateField,
      by: optionalText,
      reason: optionalText,
    }),
  ),
});

const pageSchema = z.object({ payouts: z.array(payoutSchema), next: z.string().nullable() });

const statsSchema = z.looseObject({
  platformId: z.int(),
  ...Object.fromEntries(PAYOUT_STATES.map((state) => [state, z.int()])),
  paused: z.boolean(),
  pausedReason: z.string().nullable(),
});

const eventSchema = z.looseObject({
  id: z.string(),
  eventId: z.string(),
  type: z.string(),
  payoutId: optionalText,
  attempt: z.int().optional(),
  from: stateField.optional(),
  to: stateField.optional(),
  final: z.boolean().optional(),
  at: timeField,
});

const problemSchema = z.object({
  type: z.literal('about:blank'),
  title: z.string(),
  status: z.int(),
  code: z.enum(PROBLEM_CODES),
  detail: z.string(),
  problems: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
  fields: z.array(z.string()).optional(),
  ...bulkSchema.partial().shape,
});

/** By the names that they have in the document. */
export const REPLY_SCHEMAS = {
  Accepted: z.union([acceptedSchema, bulkSchema]),
  Payout: payoutSchema,
  Page: pageSchema,
  Stats: statsSchema,
  Event: eventSchema,
  Problem: problemSchema,
};
