import { z } from 'zod';
import { readJson } from '../base/parse-json.js';
import { LAST_TIME_MS } from '../base/format.js';

/** A stored JSON text that only people read. @returns undefined if it has another form: someone has altered it */
export function parseStored<Value>(schema: z.ZodType<Value>, text: string | null | undefined): Value | undefined {
  return schema.safeParse(readJson(text ?? 'null')).data;
}

/** ms since 1970. */
export const storedTime = z.number().min(0).max(LAST_TIME_MS);

/** A decimal string, which may be negative. */
export const storedAmount = z.string().regex(/^-?\d{1,40}(\.\d{1,40})?$/);
