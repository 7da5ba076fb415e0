import { z } from 'zod';
import { readJson } from '../base/parse-json.js';
import { otherFormat, STORED_FORMAT } from '../base/stored-format.js';
import { KEPT_STATES } from '../ledger/states.js';
import type { JournalLine } from './journal-line.js';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const completeNote = z.object({ at: z.number(), by: z.string(), reason: z.string() });
const actNote = z.object({ at: z.number(), act: sha256 });
const headerLine = z.object({
  v: z.literal(STORED_FORMAT),
  journalId: z.string(),
  bornAt: z.number(),
  complete: completeNote.exactOptional(),
  prunedUpTo: z.number().exactOptional(),
});
const otherHeaderLine = z.object({ v: z.int().refine((format) => format !== STORED_FORMAT) });
const attemptFields = { payoutId: z.string(), attempt: z.int() };
const outcomeLine = z.object({
  ...attemptFields,
  token: z.string(),
  at: z.number(),
  outcome: z.discriminatedUnion('kind', [
    z.object({
      kind: z.literal('accepted'),
      gatewayId: z.string(),
      txhash: z.string().exactOptional(),
      found: z.literal(true).exactOptional(),
    }),
    z.object({ kind: z.literal('rejected'), message: z.string() }),
    z.object({ kind: z.literal('unknown'), reason: z.string(), inFlightUntil: z.number() }),
    z.object({ kind: z.literal('not_sent'), reason: z.string() }),
  ]),
});
const intentProof = z.object({
  signature: z.string(),
  audience: z.string(),
  issuedAt: z.string().exactOptional(),
  expiresAt: z.string().exactOptional(),
  metadataHash: sha256.exactOptional(),
  requestedBy: z.string().exactOptional(),
  reference: z.string().exactOptional(),
  notBefore: z.string().exactOptional(),
});
const requestSchema = z.object({
  paymentId: z.int(),
  amount: z.string(),
  addressTo: z.string(),
  symbol: z.string().exactOptional(),
});
const sendLine = z.object({
  ...attemptFields,
  token: z.string(),
  epoch: z.int(),
  sends: z.int(),
  after: z.object({ sends: z.int(), token: z.string() }),
  at: z.number(),
  inFlightMs: z.number(),
  knownActs: z.int().exactOptional(),
  request: requestSchema,
  signed: z
    .object({
      intent: sha256,
      key: z.string(),
      issuedAt: z.number(),
      expiresAt: z.number(),
      proof: intentProof,
      act: sha256.exactOptional(),
      clears: z.array(z.int()).exactOptional(),
    })
    .exactOptional(),
  judged: z
    .object({
      policy: sha256,
      usd: z
        .string()
        .regex(/^\d{1,60}$/)
        .exactOptional(),
      coins: z
        .string()
        .regex(/^\d{1,60}(\.\d{1,18})?$/)
        .exactOptional(),
      approvals: z.array(sha256).exactOptional(),
    })
    .exactOptional(),
});
const ledgerLine = z.object({
  ledgerId: z.string(),
  epoch: z.int(),
  sends: z.int(),
  token: z.string(),
  adopted: z.literal(true).exactOptional(),
  gaveUp: z.literal(true).exactOptional(),
});
const peersLine = z.object({
  peers: z.array(z.object({ journalId: z.string(), host: z.string(), dir: z.string() })),
});
const actsLine = z.object({
  acts: z.object({
    at: z.number(),
    count: z.int(),
    ended: z.array(
      z.object({
        payoutId: z.string(),
        state: z.enum(KEPT_STATES),
        at: z.number(),
        by: z.string(),
        reason: z.string(),
        request: requestSchema,
      }),
    ),
  }),
});
const rate = z.string().regex(/^\d{1,30}(\.\d{1,18})?$/);
const controlLine = z.union([
  z.object({ complete: completeNote }),
  z.object({ paused: z.object({ at: z.number(), reason: z.string() }) }),
  z.object({ resumed: actNote }),
  z.object({
    seen: z.object({ at: z.number(), addresses: z.array(z.string()) }),
  }),
  z.object({
    rejected: z.object({
      ...{ payoutId: z.string(), rejection: sha256, by: z.string(), person: z.string().exactOptional() },
    }),
  }),
  z.object({
    replicas: z.object({
      at: z.number(),
      count: z.int().min(0),
      names: z.array(z.string()),
      lowered: z.object({ by: z.string(), reason: z.string() }).exactOptional(),
    }),
  }),
  z.object({ unrejected: z.object({ payoutId: z.string(), rejection: sha256 }) }),
  z.object({ rates: z.object({ at: z.number(), usd: z.record(z.string().regex(/^\d{1,15}$/), rate) }) }),
]);
const anyHeaderLine = z.union([headerLine, otherHeaderLine]);
const prevField = z.object({
  prev: z.union([sha256.transform((hash) => [hash]), z.array(sha256)]).exactOptional(),
});

/** A later start ends a torn line with this mark and a line break. */
export const TORN_MARK = ' torn';

export function isTorn(text: string): boolean {
  return text === '' || text.endsWith(TORN_MARK);
}

export interface StoredLine {
  readonly line: JournalLine;
  readonly prev: readonly string[] | undefined;
}

/**
 * @param location - for the error
 * @returns undefined for a torn line, whose send was never written
 * @throws UnsupportedFormatError for a header of another format; Error for an invalid line
 */
export function parseLine(text: string, location: string): StoredLine | undefined {
  if (isTorn(text)) return undefined;
  const json = readJson(text);
  const parsed = findSchema(json).safeParse(json);
  const chained = prevField.safeParse(json);
  if (!parsed.success || !chained.success) {
    throw new Error(
      `The send journal cannot be read at ${location}. Nothing may be sent without it; see docs/runbooks/journal.md.`,
    );
  }
  const line = parsed.data;
  if ('v' in line && line.v !== STORED_FORMAT) throw otherFormat(`send journal at ${location}`, line.v);
  return { line: line as JournalLine, prev: chained.data.prev };
}

/**
 * Parses a send or an outcome without checking it, which would take most of the time. Its writer checked it before
 * writing (see `FileSendJournal`), and the next line names it by its hash.
 */
export function parseWrittenLine(text: string, location: string): StoredLine | undefined {
  if (!text.startsWith(ATTEMPT_START)) return parseLine(text, location);
  const json = readJson(text) as (JournalLine & { readonly prev?: unknown }) | undefined;
  if (typeof json?.prev !== 'string') return parseLine(text, location);
  return { line: json, prev: [json.prev] };
}

/**
 * Checks a line before it is written. An unreadable line, for example because Redis gave no number, would block
 * everything after it.
 * @throws Error that names the line
 */
export function requireReadable(line: JournalLine, text: string): void {
  try {
    parseLine(text, 'the new line');
  } catch (error) {
    const name = 'payoutId' in line ? `payout ${line.payoutId}` : Object.keys(line).join(', ');
    throw new Error(`A line of ${name} was not written to the send journal: nobody could read it again.`, {
      cause: error,
    });
  }
}

const ATTEMPT_START = '{"payoutId":';

/** Picks one schema. Trying all would double the time of a start, which reads every kept file. */
function findSchema(json: unknown): z.ZodType<JournalLine | { readonly v: number }> {
  const fields = typeof json === 'object' && json !== null ? json : {};
  if ('outcome' in fields) return outcomeLine;
  if ('payoutId' in fields) return sendLine;
  // A header also has `complete`, so it is tested first.
  if ('v' in fields) return anyHeaderLine;
  if ('ledgerId' in fields) return ledgerLine;
  if ('peers' in fields) return peersLine;
  if ('acts' in fields) return actsLine;
  return controlLine;
}
