import { z } from 'zod';
import { readJson } from '../../base/parse-json.js';
import { storedTime } from '../parse-stored.js';
import { ask, askReadable, type LedgerConnection } from '../ledger-connection.js';
import { toLine } from '../payout.js';
import type { JournalHead } from '../sender-ledger.js';

const journalHead = z.object({ journalId: z.string(), hash: z.string(), sends: z.number(), at: storedTime });

const missingReport = z.array(z.object({ name: z.string(), since: z.iso.datetime() })).readonly();

/** The replicas of Redis that a worker misses, and since when (ISO 8601): `unknown` is one without a known name. */
export type MissingReport = z.infer<typeof missingReport>;

const endedTrouble = z.object({
  what: z.enum(['sends', 'polls']),
  error: z.string(),
  code: z.string().optional(),
  count: z.number(),
  at: storedTime,
});

const reportSchema = z.object({
  role: z.string(),
  reason: z.string().optional(),
  cause: z.string().optional().catch(undefined),
  missing: missingReport.optional().catch(undefined),
  at: storedTime,
  startedAt: storedTime,
  version: z.string().catch('unknown'),
  holdOffUntil: storedTime.optional(),
  noResponse: z.literal(true).optional().catch(undefined),
  pauseKept: z.literal(true).optional().catch(undefined),
  slowAt: storedTime.optional().catch(undefined),
  slowMs: z.number().optional().catch(undefined),
  closeAt: storedTime.optional().catch(undefined),
  closeMs: z.number().optional().catch(undefined),
  lastError: z.string().optional(),
  lastErrorCode: z.string().optional().catch(undefined),
  failedAttempts: z.number().optional(),
  nextRetryAt: storedTime.optional(),
  pollError: z.string().optional(),
  pollErrorCode: z.string().optional().catch(undefined),
  failedPolls: z.number().optional().catch(undefined),
  ended: endedTrouble.optional().catch(undefined),
  journalHead: journalHead.optional().catch(undefined),
});

/** A response takes a few seconds at most. */
export const RESPONSE_SLOW_MS = 6_000;

/** More say nothing new, and each change of a report is a write. */
export const COUNTED_POLLS = 3;

/** Tries to send, or status polls, that failed in a row, until one did not. */
export interface EndedTrouble {
  readonly what: 'sends' | 'polls';
  /** Of the last one. */
  readonly error: string;
  readonly code?: string | undefined;
  readonly count: number;
  /** When the first one succeeded again. */
  readonly at: number;
}

/** A worker process's report. Times are of its own wall clock, ms. */
export interface WorkerReport {
  /** `sender`, `standby` or `refused`; a newer version may have others. */
  readonly role: string;
  readonly reason?: string | undefined;
  /** `redis`, `replicas`, `disk` or `gateway`, if that is why it refuses. */
  readonly cause?: string | undefined;
  /** With the cause `replicas`. */
  readonly missing?: MissingReport | undefined;
  /** When this was written. It changes with every report; otherwise the process is gone or hangs. */
  readonly at: number;
  readonly startedAt: number;
  /** Of this package. */
  readonly version: string;
  /** Nothing is sent before: the wait after a takeover, or after an unanswered send. */
  readonly holdOffUntil?: number | undefined;
  /** The last send had no trustworthy response. */
  readonly noResponse?: true | undefined;
  /** A pause in its journal stands, although Redis has none. */
  readonly pauseKept?: true | undefined;
  /** When the last response came that took longer than {@link RESPONSE_SLOW_MS}, and how long it took. */
  readonly slowAt?: number | undefined;
  readonly slowMs?: number | undefined;
  /** When this process wrote two payouts of the account within a second, and how far apart. It must never happen. */
  readonly closeAt?: number | undefined;
  readonly closeMs?: number | undefined;
  /** Why the last tries to send ended before anything was written; undefined after a send. */
  readonly lastError?: string | undefined;
  /** The code of that error. */
  readonly lastErrorCode?: string | undefined;
  /** How many they were. */
  readonly failedAttempts?: number | undefined;
  readonly nextRetryAt?: number | undefined;
  /** Why the last status poll failed; undefined after a success. */
  readonly pollError?: string | undefined;
  readonly pollErrorCode?: string | undefined;
  /** How many polls have failed since the last success, up to {@link COUNTED_POLLS}. */
  readonly failedPolls?: number | undefined;
  /** What failed last and no longer does: a page says it for a while, because it may come and go. */
  readonly ended?: EndedTrouble | undefined;
  /** Where the send journal ended when this process last published it: at its start, and every ten minutes. */
  readonly journalHead?: PublishedHead | undefined;
}

export interface KnownWorker extends WorkerReport {
  /** Host and process id. */
  readonly name: string;
}

/** The process that holds a lease: the owner is its name and a random word. */
export function senderOf<Worker extends Pick<KnownWorker, 'name'>>(
  owner: string,
  workers: readonly Worker[],
): Worker | undefined {
  return workers.find(({ name }) => owner.startsWith(`${name}:`));
}

/** Every worker process that reported and did not end in good order, by name. */
export async function readWorkers({ redis, keys }: LedgerConnection): Promise<KnownWorker[]> {
  return parseWorkers(await askReadable(redis.hgetall(keys.workers), {}));
}

/** Skips unreadable entries. */
export function parseWorkers(hash: Readonly<Record<string, string>>): KnownWorker[] {
  return Object.entries(hash)
    .flatMap(([name, text]) => {
      const report = parseReport(text);
      return report === undefined ? [] : [{ name, ...report }];
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function parseReport(text: string): WorkerReport | undefined {
  return reportSchema.safeParse(readJson(text)).data;
}

export async function writeWorkerReport(
  { redis, keys }: LedgerConnection,
  name: string,
  report: WorkerReport,
): Promise<void> {
  await ask(redis.hset(keys.workers, name, JSON.stringify(report)));
}

export async function removeWorkers({ redis, keys }: LedgerConnection, names: readonly string[]): Promise<void> {
  if (names.length > 0) await ask(redis.hdel(keys.workers, ...names));
}

export interface PublishedHead extends JournalHead {
  /** Wall clock, ms. */
  readonly at: number;
}

export async function publishJournalHead({ run, clock }: LedgerConnection, head: JournalHead): Promise<void> {
  const { journalId, hash, sends } = head;
  await run('publish-event', {
    ...{ kind: 'journal_head', at: clock.wallNow(), to: hash, by: '' },
    reason: toLine(describeHead(journalId, sends)),
  });
}

/**
 * @param hash - over the policy's file and its lists, hexadecimal
 * @param about - which file, and whose worker
 */
export async function publishPolicyLoaded(
  { run, clock }: LedgerConnection,
  hash: string,
  about: string,
): Promise<void> {
  await run('publish-event', { kind: 'policy_loaded', at: clock.wallNow(), to: hash, by: '', reason: toLine(about) });
}

function describeHead(journalId: string, sends: number): string {
  return `journal ${journalId}, send number ${sends}`;
}

/** Undefined if the reason has another form. */
export function parseHeadReason(reason: string): string | undefined {
  return /^journal ([0-9a-f]{12}), send number \d+$/.exec(reason)?.[1];
}
