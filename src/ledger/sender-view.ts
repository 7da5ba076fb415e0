import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { readJson, readJsonObject } from '../base/parse-json.js';
import { toIsoTime } from '../base/format.js';
import { checkFormat, type LedgerConnection, pipelined } from './ledger-connection.js';
import { pairsToRecord } from './payout-record.js';
import { storedTime } from './parse-stored.js';
import type { KnownJournal, LeaseView, Objection, Pause, SenderView } from './sender-ledger.js';

type Hash = Readonly<Record<string, string>>;

export type LeaseHolder = Pick<LeaseView, 'owner' | 'epoch' | 'heartbeat'>;

/**
 * At one moment. Creates the ledger's random id if there is none: a flushed or exchanged Redis has another.
 * @throws UnsupportedFormatError
 */
export async function readSenderView({ run }: LedgerConnection): Promise<SenderView> {
  const replies = (await run('read-sender', { newId: randomUUID() })) as string[][];
  return toSenderView(replies.map((pairs): Hash => pairsToRecord(pairs)));
}

/** As {@link readSenderView} for readers: creates and marks nothing; its parts may be of different moments. */
export async function peekSenderView(connection: LedgerConnection): Promise<SenderView> {
  const { keys } = connection;
  const replies = await pipelined(connection, (pipeline) =>
    pipeline.hgetall(keys.ledger).hgetall(keys.sender).hgetall(keys.journals).hgetall(keys.objections),
  );
  const hashes = replies as Hash[];
  checkFormat(hashes[0]?.['format']);
  return toSenderView(hashes);
}

function toSenderView([ledger = {}, sender = {}, journals = {}, objections = {}]: readonly Hash[]): SenderView {
  return {
    ledgerId: ledger['id'] ?? 'none',
    audience: ledger['audience'],
    acts: Number(ledger['acts'] ?? 0) || 0,
    keptActs: Number(ledger['keptActs'] ?? 0),
    pausedReason: ledger['pausedReason'],
    pauses: parsePauses(ledger),
    lease: parseLease(sender),
    sendCount: Number(sender['sends'] ?? 0),
    last: sender['last'] ?? '',
    lastJournalId: sender['journal'],
    awaitingAnswer: (sender['unanswered'] ?? '') !== '',
    inFlightMs: sender['inFlightMs'] === undefined ? undefined : Number(sender['inFlightMs']),
    resumeAct: ledger['resumeAct'],
    adoptAct: ledger['adoptAct'],
    objections: parseObjections(objections),
    journals: parseJournals(journals),
  };
}

/** Null if no process ever had the lease, or the last one gave it back. */
export function holderOf(lease: LeaseView | undefined): LeaseHolder | null {
  if (lease === undefined || lease.released || lease.owner === '') return null;
  const { owner, epoch, heartbeat } = lease;
  return { owner, epoch, heartbeat };
}

export function parseLease(sender: Hash): LeaseView | undefined {
  if (sender['epoch'] === undefined) return undefined;
  return {
    owner: sender['owner'] ?? '',
    epoch: Number(sender['epoch']),
    heartbeat: Number(sender['beat']),
    released: sender['released'] === '1',
  };
}

const pauseSchema = z.object({
  by: z.string().catch(''),
  reason: z.string().catch('no reason was noted'),
  at: z.coerce.number().pipe(storedTime).catch(0),
});

/** The oldest first. What cannot be read is left out, but for the oldest one, which stops the account. */
export function parsePauses({ pausedReason, pausedBy = '', pausedAt = '', morePauses = '[]' }: Hash): Pause[] {
  if (pausedReason === undefined) return [];
  const more = z.array(pauseSchema).catch([]).parse(readJson(morePauses));
  return [{ by: pausedBy, reason: pausedReason, at: Number(pausedAt) }, ...more].map((pause) => ({
    ...pause,
    at: toIsoTime(pause.at),
  }));
}

const objectionSchema = z.object({
  kind: z.enum(['ledger', 'journal']).catch('ledger'),
  reason: z.string().catch('no reason was noted'),
  host: z.string().catch(''),
  dir: z.string().catch(''),
  sends: z.number().catch(0),
  at: z.coerce.number().pipe(storedTime).catch(0),
});

const journalSchema = z.object({
  host: z.string().catch(''),
  dir: z.string().catch(''),
  sends: z.number().catch(0),
  token: z.string().catch(''),
  replicas: z.number().optional().catch(undefined),
  at: storedTime.catch(0),
});

/** An unreadable objection stays: it must not vanish by a typing error. */
export function parseObjections(hash: Readonly<Record<string, string>>): Objection[] {
  return inOrder(hash).map(([journalId, text]) => ({ journalId, ...objectionSchema.parse(readJsonObject(text)) }));
}

export function parseJournals(hash: Readonly<Record<string, string>>): KnownJournal[] {
  return inOrder(hash).map(([journalId, text]) => ({ journalId, ...journalSchema.parse(readJsonObject(text)) }));
}

/** The journal's id is the field. */
export function toHashValue(entry: Objection | KnownJournal): string {
  return JSON.stringify({ ...entry, journalId: undefined });
}

/** Redis returns a hash's fields in no order. */
function inOrder(hash: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(hash).sort(([one], [other]) => (one < other ? -1 : 1));
}
