import { z } from 'zod';
import { parseStored } from './parse-stored.js';

export const LOOK_UP_ANSWERS = ['refused', 'failed', 'other_payment', 'found'] as const;

/**
 * What the gateway answered last, when the worker asked it for a payout by the order ids of its attempts.
 *
 * - `refused`: it does not know them, or refused for another reason. That is no evidence that nothing was paid.
 * - `failed`: it gave no answer that can be read, or one that leaves out what must be compared.
 * - `other_payment`: it has a payment with such an order id, and its currency, address or amount are other ones.
 * - `found`: it has the payment.
 */
export type LookUpAnswer = (typeof LOOK_UP_ANSWERS)[number];

/** How the worker itself has asked the gateway for a payout: what a person needs for a decision about it. */
export interface OrderLookUp {
  readonly answer: LookUpAnswer;
  /** The answer in words. */
  readonly message: string;
  /** How many times it was asked. */
  readonly count: number;
  /** Of the first question, and of the last one; ISO 8601, UTC. */
  readonly since: string;
  readonly at: string;
  /** The payout's newest attempt when the first question was asked: a later one is asked for from the beginning. */
  readonly attempt: number;
}

const isoTime = z.iso.datetime();

const schema = z.object({
  answer: z.enum(LOOK_UP_ANSWERS),
  message: z.string(),
  count: z.int().min(1),
  since: isoTime,
  at: isoTime,
  attempt: z.int().min(0),
});

/** @returns undefined if it was never asked, or someone has altered the text */
export function parseLookUp(text: string | undefined): OrderLookUp | undefined {
  return text === undefined ? undefined : parseStored(schema, text);
}

const HOUR_MS = 60 * 60_000;
/** Before the first question, the second, … After these it is asked hourly. */
export const LOOK_UP_WAITS_MS = [10_000, 30_000, 2 * 60_000, 10 * 60_000];
/** Between two questions. */
export const LONGEST_WAIT_MS = HOUR_MS;
const ASKED_FOR_MS = 3 * 24 * HOUR_MS;

/** @param asked - how many times */
export function waitBefore(asked: number): number {
  return LOOK_UP_WAITS_MS[asked] ?? HOUR_MS;
}

/** @returns wall clock, ms; undefined if it was asked for three days */
export function nextLookUpAt({ count, since, at }: Pick<OrderLookUp, 'count' | 'since' | 'at'>): number | undefined {
  const next = Date.parse(at) + waitBefore(count);
  return next - Date.parse(since) > ASKED_FOR_MS ? undefined : next;
}
