import { z } from 'zod';
import { UnsupportedFormatError } from '../errors.js';
import { JOURNAL_FORMAT, type JournalLine } from './journal-line.js';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const completeNote = z.object({ at: z.number(), by: z.string(), reason: z.string() });
const actNote = z.object({ at: z.number(), act: sha256 });
const formerHeaderLine = z.object({ v: z.literal(2), journalId: z.string() });
const headerLine = z.object({
  v: z.literal(JOURNAL_FORMAT),
  journalId: z.string(),
  bornAt: z.number(),
  complete: completeNote.exactOptional(),
  prunedUpTo: z.number().exactOptional(),
});
const newerHeaderLine = z.object({ v: z.int().min(JOURNAL_FORMAT + 1) });
const attemptFields = { payoutId: z.string(), attempt: z.int() };
const outcomeLine = z.object({
  ...attemptFields,
  token: z.string(),
  at: z.number(),
  outcome: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('accepted'), txhash: z.string() }),
    z.object({ kind: z.literal('rejected'), message: z.string() }),
    z.object({ kind: z.literal('unknown'), reason: z.string() }),
    z.object({ kind: z.literal('not_sent'), reason: z.string() }),
  ]),
});
const intentProof = z.object({
  signature: z.string(),
  audience: z.string().exactOptional(),
  issuedAt: z.string().exactOptional(),
  expiresAt: z.string().exactOptional(),
  metadataHash: sha256.exactOptional(),
  requestedBy: z.string().exactOptional(),
  reference: z.string().exactOptional(),
  notBefore: z.string().exactOptional(),
});
const sendLine = z
  .object({
    ...attemptFields,
    token: z.string().optional(),
    epoch: z.int(),
    sends: z.int(),
    after: z.object({ sends: z.int(), token: z.string() }).optional(),
    at: z.number(),
    request: z.object({
      paymentId: z.int(),
      amount: z.string(),
      addressTo: z.string(),
      symbol: z.string().exactOptional(),
    }),
    signed: z
      .object({
        intent: sha256,
        key: z.string(),
        issuedAt: z.number(),
        expiresAt: z.number(),
        proof: intentProof.exactOptional(),
        doubtMs: z.number().exactOptional(),
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
        approvals: z.array(sha256).exactOptional(),
      })
      .exactOptional(),
  })
  .transform(({ token, after, ...send }) => ({
    ...send,
    token: token ?? formerToken(send.epoch),
    after: after ?? { sends: send.sends - 1 },
  }));
const ledgerLine = z
  .object({
    ledgerId: z.string(),
    epoch: z.int(),
    sends: z.int(),
    token: z.string().optional(),
    adopted: z.literal(true).exactOptional(),
    gaveUp: z.literal(true).exactOptional(),
  })
  .transform(({ token = '', ...ledger }) => ({ ...ledger, token }));
const peersLine = z.object({
  peers: z.array(z.object({ journalId: z.string(), host: z.string(), dir: z.string() })),
});
const rate = z.string().regex(/^\d{1,30}(\.\d{1,18})?$/);
const controlLine = z.union([
  z.object({ complete: completeNote }),
  z.object({ paused: z.object({ at: z.number(), reason: z.string() }) }),
  z.object({ resumed: actNote }),
  z.object({
    seen: z.object({ at: z.number(), addresses: z.array(z.string()), exact: z.literal(true).exactOptional() }),
  }),
  z.object({
    rejected: z.object({
      ...{ payoutId: z.string(), intent: sha256, issuedAt: z.number(), by: z.string(), expiresAt: z.number() },
    }),
  }),
  z.object({ rates: z.object({ at: z.number(), usd: z.record(z.string().regex(/^\d{1,15}$/), rate) }) }),
]);
const anyHeaderLine = z.union([headerLine, formerHeaderLine, newerHeaderLine]);
const prevField = z.object({
  prev: z.union([sha256.transform((hash) => [hash]), z.array(sha256)]).exactOptional(),
});

/** How the ledger calls an attempt of format 1, which knew it by its epoch. */
function formerToken(epoch: number): string {
  return `e:${epoch}`;
}

/** A torn line that a later start ended with a line break is recognised by its mark. */
export const TORN_MARK = ' torn';

/** Whether a line says nothing: a crash tore it, and its send was never written. */
export function isTorn(text: string): boolean {
  return text === '' || text.endsWith(TORN_MARK);
}

/** A line as it stands in a file. */
export interface StoredLine {
  readonly line: JournalLine;
  /** The hashes of the lines that it follows; undefined in formats that had none. */
  readonly prev: readonly string[] | undefined;
}

/**
 * Reads one line.
 * @param place - file and line, for the error
 * @returns undefined for a line that a crash tore: its send was never written
 * @throws UnsupportedFormatError for the header of a newer format; Error for a line that makes no sense
 */
export function parseLine(text: string, place: string): StoredLine | undefined {
  if (isTorn(text)) return undefined;
  const json = parseJson(text);
  const parsed = findSchema(json).safeParse(json);
  const chained = prevField.safeParse(json);
  if (!parsed.success || !chained.success) {
    throw new Error(
      `The send journal cannot be read at ${place}. Nothing may be sent without it; see docs/operations.md.`,
    );
  }
  const line = parsed.data;
  if ('v' in line && line.v > JOURNAL_FORMAT) {
    throw new UnsupportedFormatError(
      `The send journal has format ${line.v} at ${place}; this version of payout-queue reads formats 1 to ${JOURNAL_FORMAT}. Run the version that wrote it, or a newer one.`,
    );
  }
  return { line: line as JournalLine, prev: chained.data.prev };
}

/**
 * Reads a send or an outcome that its writer read back before it wrote it (see `FileSendJournal`), and that the next line
 * names by its hash: what it says need not be checked again, which takes more time than all else.
 * @throws as {@link parseLine}
 */
export function parseWrittenLine(text: string, place: string): StoredLine | undefined {
  if (!text.startsWith(ATTEMPT_START)) return parseLine(text, place);
  const json = parseJson(text) as (JournalLine & { readonly prev?: unknown }) | undefined;
  if (typeof json?.prev !== 'string') return parseLine(text, place);
  return { line: json, prev: [json.prev] };
}

/**
 * Checks a line before it is written: one that no reader accepts, for example because Redis gave no number, would keep
 * everything after it from being read.
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

/** One schema is tried: to try them all takes twice as long as everything else, and a start reads every file that is kept. */
function findSchema(json: unknown): z.ZodType<JournalLine | { readonly v: number }> {
  const fields = typeof json === 'object' && json !== null ? json : {};
  if ('outcome' in fields) return outcomeLine;
  if ('payoutId' in fields) return sendLine;
  // A header has `complete` too: it comes before the statement.
  if ('v' in fields) return anyHeaderLine;
  if ('ledgerId' in fields) return ledgerLine;
  if ('peers' in fields) return peersLine;
  return controlLine;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
