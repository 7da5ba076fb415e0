import { z } from 'zod';
import type { KnownJournal, Objection } from './sender-ledger.js';

const objectionSchema = z.object({
  kind: z.enum(['ledger', 'journal']).catch('ledger'),
  reason: z.string().catch('no reason was noted'),
  host: z.string().catch(''),
  dir: z.string().catch(''),
  sends: z.number().catch(0),
  at: z.coerce.number().catch(0),
});

const journalSchema = z.object({
  host: z.string().catch(''),
  dir: z.string().catch(''),
  sends: z.number().catch(0),
  token: z.string().catch(''),
  at: z.number().catch(0),
});

/** An unreadable objection stays: it must not vanish by a typing error. */
export function parseObjections(hash: Readonly<Record<string, string>>): Objection[] {
  return inOrder(hash).map(([journalId, text]) => ({ journalId, ...objectionSchema.parse(parseJson(text)) }));
}

export function parseJournals(hash: Readonly<Record<string, string>>): KnownJournal[] {
  return inOrder(hash).map(([journalId, text]) => ({ journalId, ...journalSchema.parse(parseJson(text)) }));
}

/** The journal's id is the field. */
export function toHashValue(entry: Objection | KnownJournal): string {
  return JSON.stringify({ ...entry, journalId: undefined });
}

/** Redis returns a hash's fields in no order. */
function inOrder(hash: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(hash).sort(([one], [other]) => (one < other ? -1 : 1));
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}
