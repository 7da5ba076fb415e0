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
        act: sha256.exactOptional(),
        clears: z.array(z.int()).exactOptional(),
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
const controlLine = z.union([
  z.object({ complete: completeNote }),
  z.object({ paused: z.object({ at: z.number(), reason: z.string() }) }),
  z.object({ resumed: actNote }),
  z.object({ ledgerAdopted: actNote }),
]);
// A header has `complete` too: it comes first.
const journalLine = z.union([
  outcomeLine,
  sendLine,
  ledgerLine,
  peersLine,
  headerLine,
  formerHeaderLine,
  newerHeaderLine,
  controlLine,
]);
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
  const parsed = journalLine.safeParse(json);
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
