import { z } from 'zod';
import { batchField, lineField, payoutInputSchema } from '../ledger/payout.js';
import { PAYOUT_STATES } from '../ledger/states.js';

/** What requests must be, and what responses are. `/openapi.json` is made from these. */

export const MAX_PAYOUTS = 1_000;

export const payoutsBody = z.union([payoutInputSchema, z.array(payoutInputSchema).min(1).max(MAX_PAYOUTS)]);

export const cancelBody = z.strictObject({
  /** Why, for the history. */
  reason: lineField.optional(),
});

const stateField = z.enum(PAYOUT_STATES, { error: `must be one of ${PAYOUT_STATES.join(', ')}` });

/** As text, because it is a query; the producer checks the rest. */
export const listQuery = z.strictObject({
  state: stateField.exactOptional(),
  batch: batchField.exactOptional(),
  limit: z
    .string('must be given once')
    .regex(/^([1-9]\d{0,2}|1000)$/, 'must be a whole number from 1 to 1000')
    .exactOptional(),
  cursor: z
    .string('must be given once')
    .regex(/^\d{1,15}$/, 'must be the next of the page before')
    .exactOptional(),
});

/** Within the numbers of Redis, and below the last of them. */
export const eventIdField = z
  .string('must be given once')
  .regex(/^\d{1,19}-\d{1,19}$/, 'must be the id of an event, such as 1738314000000-0, or 0-0 for the oldest kept');

export const eventsQuery = z.strictObject({ after: eventIdField.exactOptional() });

export const noQuery = z.strictObject({});

const acceptedShape = { payoutId: z.string(), state: stateField, created: z.boolean() };

export const acceptedSchema = z.object(acceptedShape);

const bulkShape = {
  created: z.int(),
  existing: z.int(),
  conflicts: z.int(),
  results: z.array(
    z.union([
      z.object({ kind: z.enum(['created', 'existing']), ...acceptedShape }),
      z.object({
        kind: z.literal('conflict'),
        payoutId: z.string(),
        state: stateField,
        fields: z.array(z.string()),
        removed: z.boolean().optional(),
      }),
    ]),
  ),
};

export const bulkSchema = z.object(bulkShape);

const timeField = z.iso.datetime();

export const payoutSchema = z.looseObject({
  payoutId: z.string(),
  paymentId: z.int(),
  amount: z.string(),
  addressTo: z.string(),
  state: stateField,
  attempt: z.int(),
  txhash: z.string().optional(),
  fee: z.string().optional(),
  message: z.string().optional(),
  held: z.looseObject({ kind: z.string(), reason: z.string(), message: z.string() }).optional(),
  lateTxhash: z.string().optional(),
  signedBy: z.string().optional(),
  verified: z.boolean().optional(),
  createdAt: timeField,
  updatedAt: timeField,
  history: z.array(
    z.object({
      at: timeField,
      from: stateField.optional(),
      to: stateField,
      by: z.string().optional(),
      reason: z.string().optional(),
    }),
  ),
});

export const pageSchema = z.object({ payouts: z.array(payoutSchema), next: z.string().nullable() });

export const statsSchema = z.looseObject({
  platformId: z.int(),
  ...(Object.fromEntries(PAYOUT_STATES.map((state) => [state, z.int()])) as Record<
    (typeof PAYOUT_STATES)[number],
    z.ZodInt
  >),
  paused: z.boolean(),
  pausedReason: z.string().nullable(),
});

export const eventSchema = z.looseObject({
  eventId: z.string(),
  type: z.string(),
  payoutId: z.string().optional(),
  from: stateField.optional(),
  to: stateField.optional(),
  at: timeField,
});

export const problemSchema = z.object({
  type: z.literal('about:blank'),
  title: z.string(),
  status: z.int(),
  /** A word to branch on, such as CONFLICT. */
  code: z.string(),
  detail: z.string(),
  problems: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
  fields: z.array(z.string()).optional(),
  ...z.object(bulkShape).partial().shape,
});
