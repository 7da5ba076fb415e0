import { z } from 'zod';
import { toLine, type HeldFor } from './payout.js';

export interface Hold extends HeldFor {
  /** Someone altered data in Redis: the account then gets an event `tampering`. */
  readonly isTampering: boolean;
}

/** An unreadable field still holds the payout. */
const heldSchema = z.object({
  kind: z.enum(['signature', 'journal', 'policy']).catch('signature'),
  reason: z.string().catch('unreadable'),
  message: z.string().catch('why it is held cannot be read: somebody has altered its record in Redis'),
  rule: z.string().optional().catch(undefined),
  until: z.string().optional().catch(undefined),
  needs: z.object({ by: z.string(), persons: z.number() }).optional().catch(undefined),
});

export function toHeldField({ kind, reason, message, isTampering, rule, until, needs }: Hold): string {
  return JSON.stringify({ kind, reason: toLine(reason), message: toLine(message), isTampering, rule, until, needs });
}

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
