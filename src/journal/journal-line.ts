import { z } from 'zod';
import { UnsupportedFormatError } from '../errors.js';
import type { JournalPlace, SendAttempt } from '../ledger/sender-ledger.js';
import type { WithdrawRequest } from '../gateway/withdraw-gateway.js';

/** The lines of a send journal: JSON objects, one a line. What a line is follows from its fields. */

/**
 * The version of the journal's format, named by the first line of each file. Format 1 had no such line, knew an attempt by its
 * epoch, and held neither outcomes nor the journal's id.
 */
export const JOURNAL_FORMAT = 2;

/** Which journal this is. */
export interface HeaderLine {
  readonly v: number;
  readonly journalId: string;
}

/** The ledger that the sends which follow belong to, and where its line of sends stood. */
export interface JournaledLedger {
  readonly ledgerId: string;
  /** The highest epoch seen. */
  readonly epoch: number;
  /** The number of the last send begun in the ledger, and its token ('' before the first). */
  readonly sends: number;
  readonly token: string;
  /** An adoption has the number `sends` for itself: nothing was sent under it. */
  readonly adopted?: true | undefined;
}

/** A send that is about to be written, with all that is needed to make its payout known again to a ledger that forgot it. */
export interface SendLine extends SendAttempt {
  readonly epoch: number;
  /** Its number among the ledger's sends. */
  readonly sends: number;
  /**
   * The send before it that a journal has: sends between the two were begun with this journal, and never written.
   * Format 1 knew the number only.
   */
  readonly after: { readonly sends: number; readonly token?: string | undefined };
  readonly request: WithdrawRequest;
  /** Wall clock, ms. */
  readonly at: number;
}

/** What came of a send, as its sender saw it. */
export type JournaledOutcome =
  | { readonly kind: 'accepted'; readonly txhash: string }
  | { readonly kind: 'rejected'; readonly message: string }
  | { readonly kind: 'unknown'; readonly reason: string }
  /** It was journaled, and then not written after all. */
  | { readonly kind: 'not_sent'; readonly reason: string };

export interface OutcomeLine extends SendAttempt {
  readonly outcome: JournaledOutcome;
  /** Wall clock, ms. */
  readonly at: number;
}

/** Other journals that have sends of the same account: without them this one does not tell the whole. */
export interface PeersLine {
  readonly peers: readonly JournalPeer[];
}

export interface JournalPeer extends JournalPlace {
  readonly journalId: string;
}

export type JournalLine = HeaderLine | JournaledLedger | PeersLine | SendLine | OutcomeLine;

/** A send with what came of it, where that is known. */
export interface JournalEntry extends SendLine {
  readonly outcome?: JournaledOutcome | undefined;
}

/** What a whole journal is read as: its sends with their outcomes, and what stands between them. */
export type JournalItem = JournalEntry | JournaledLedger | PeersLine;

const headerLine = z.object({ v: z.int(), journalId: z.string() });
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
  })
  .transform(({ token = '', ...ledger }) => ({ ...ledger, token }));
const peersLine = z.object({
  peers: z.array(z.object({ journalId: z.string(), host: z.string(), dir: z.string() })),
});
const journalLine = z.union([outcomeLine, sendLine, ledgerLine, peersLine, headerLine]);

/** How the ledger calls an attempt of format 1, which knew it by its epoch. */
function formerToken(epoch: number): string {
  return `e:${epoch}`;
}

/** A torn line that a later start ended with a line break is recognised by its mark. */
export const TORN_MARK = ' torn';

/**
 * Reads one line.
 * @param place - file and line, for the error
 * @returns undefined for a line that a crash tore: its send was never written
 * @throws UnsupportedFormatError for the header of a newer format; Error for a line that makes no sense
 */
export function parseLine(line: string, place: string): JournalLine | undefined {
  if (line === '' || line.endsWith(TORN_MARK)) return undefined;
  const parsed = journalLine.safeParse(parseJson(line));
  if (!parsed.success) {
    throw new Error(
      `The send journal cannot be read at ${place}. Nothing may be sent without it; see docs/operations.md.`,
    );
  }
  if ('v' in parsed.data && parsed.data.v > JOURNAL_FORMAT) {
    throw new UnsupportedFormatError(
      `The send journal has format ${parsed.data.v} at ${place}; this version of payout-queue reads formats 1 to ${JOURNAL_FORMAT}. Run the version that wrote it, or a newer one.`,
    );
  }
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
