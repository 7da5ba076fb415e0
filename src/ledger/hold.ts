import { z } from 'zod';
import { toLine, type HeldFor } from './payout.js';

/** Why a payout may not be sent. */
export interface Hold extends HeldFor {
  /** Somebody altered what is in Redis: the account has an event `tampering` then. */
  readonly isTampering: boolean;
}

/** The `held` field of a record. What cannot be read holds all the same. */
const heldSchema = z.object({
  kind: z.enum(['signature', 'journal', 'policy']).catch('signature'),
  reason: z.string().catch('unreadable'),
  message: z.string().catch('why it is held cannot be read: somebody has altered its record in Redis'),
  rule: z.string().optional().catch(undefined),
  until: z.string().optional().catch(undefined),
  needs: z.object({ by: z.string(), persons: z.number() }).optional().catch(undefined),
});

/** A hold as the record has it: one line of JSON. */
export function toHeldField({ kind, reason, message, isTampering, rule, until, needs }: Hold): string {
  return JSON.stringify({ kind, reason: toLine(reason), message: toLine(message), isTampering, rule, until, needs });
}

/** Reads the `held` field of a record. */
export function parseHeldField(text: string): HeldFor {
  return heldSchema.parse(parseJson(text));
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}
