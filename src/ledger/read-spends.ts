import { z } from 'zod';
import { readJson } from '../base/parse-json.js';
import type { Spend, SpendEvent } from './control-record.js';
import { amountField } from '../base/fields.js';
import { ask, type LedgerConnection } from './ledger-connection.js';

/** Takes Redis some 2 ms. */
const PAGE = 1_000;

const spendField = z
  .object({
    id: z.string(),
    payoutId: z.string(),
    attempt: z.int(),
    paymentId: z.int(),
    amount: amountField,
    addressTo: z.string(),
    symbol: z.string().optional(),
    signer: z.string().optional(),
    inFlightMs: z.number(),
    coins: z
      .string()
      .regex(/^\d{1,60}(\.\d{1,18})?$/)
      .optional(),
    usd: z
      .string()
      .regex(/^\d{1,60}$/)
      .transform(BigInt)
      .optional(),
  })
  .transform((spend): Spend => spend);

export function toSpentField({ usd, ...spend }: Spend): string {
  return JSON.stringify({ ...spend, usd: usd?.toString() });
}

/** Oldest first. Skips unreadable entries: someone may alter the stream, but it only adds holds. */
export async function readSpends({ redis, keys }: LedgerConnection): Promise<readonly SpendEvent[]> {
  const events: SpendEvent[] = [];
  const ids = new Map<string, string>();
  for (let from = '-'; ;) {
    const page = await ask(redis.xrange(keys.spent, from, '+', 'COUNT', PAGE));
    for (const [, fields] of page) {
      const event = toEvent(fields, ids);
      if (event !== undefined) events.push(event);
    }
    const last = page.at(-1)?.[0];
    if (last === undefined || page.length < PAGE) return events;
    from = `(${last}`;
  }
}

/** A page needs a few hundred sends. */
const MOST_AT_ONCE = 1_000;

/** For people. @param since - by the clock of Redis, ms, like `until` */
export async function readBegunSpends(
  { redis, keys }: LedgerConnection,
  since: number,
  until: number,
): Promise<readonly Extract<SpendEvent, { kind: 'begun' }>[]> {
  const page = await ask(redis.xrange(keys.spent, String(since), String(until), 'COUNT', MOST_AT_ONCE));
  return page.flatMap(([, fields]) => {
    const event = toEvent(fields, new Map());
    return event?.kind === 'begun' ? [event] : [];
  });
}

function toEvent(fields: readonly string[], ids: Map<string, string>): SpendEvent | undefined {
  const [, token = '', , kind = '', , time = '', , text = ''] = fields;
  const at = Number(time);
  if (!Number.isFinite(at)) return undefined;
  if (kind === 'begun') {
    const parsed = spendField.safeParse(readJson(text));
    if (!parsed.success) return undefined;
    ids.set(token, parsed.data.id);
    return { kind: 'begun', spend: parsed.data, at };
  }
  const id = ids.get(token);
  if (id === undefined) return undefined;
  if (kind === 'accepted') return { kind: 'accepted', id, at };
  return kind === 'unpaid' ? { kind: 'unpaid', id } : undefined;
}
