import { type Clock, every, within } from '../base/clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import {
  COUNTED_POLLS,
  type MissingReport,
  type PublishedHead,
  readWorkers,
  removeWorkers,
  type WorkerReport,
  writeWorkerReport,
} from '../ledger/reads/workers.js';
import { readVersion } from '../base/version.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import type { RecentWork } from './monitoring/recent-work.js';

const CHECK_EVERY_MS = 500;

/** An unchanged report is written this often: one command in five seconds. */
const REPORT_EVERY_MS = 5_000;

const CLEAN_EVERY_MS = 60_000;

/** An unavailable Redis must not delay the end of the process. */
const REMOVE_WITHIN_MS = 500;

/**
 * Publishes what this worker process does to the ledger's `workers` hash, until it ends. It never delays a send. A
 * change is written within half a second.
 * @param name - host and process id
 * @param describe - returns undefined if there is nothing to publish
 */
export async function publishWorker(
  { ledger: { connection }, clock, logger }: Pick<LedgerAccess, 'ledger' | 'clock' | 'logger'>,
  name: string,
  describe: () => Omit<WorkerReport, 'at'> | undefined,
  end: AbortSignal,
): Promise<void> {
  let written: { readonly text: string; readonly at: number } | undefined;
  let observed = { at: clock.now(), reports: new Map<string, number>() };
  const publish = async (): Promise<void> => {
    const content = describe();
    const text = JSON.stringify(content);
    if (content === undefined) {
      if (written !== undefined) await removeWorkers(connection, [name]);
      written = undefined;
    } else if (text !== written?.text || clock.now() - written.at >= REPORT_EVERY_MS) {
      await writeWorkerReport(connection, name, { ...content, at: clock.wallNow() });
      written = { text, at: clock.now() };
    }
    if (content?.role === 'sender' && clock.now() - observed.at >= CLEAN_EVERY_MS) {
      observed = { at: clock.now(), reports: await removeSilent(connection, observed.reports) };
    }
  };
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot report what this worker does');
  };
  await every(CHECK_EVERY_MS, publish, { clock, signal: end, onError });
  await within(
    REMOVE_WITHIN_MS,
    removeWorkers(connection, [name]).catch(() => undefined),
  );
}

/**
 * Removes processes without a report since the last look: they ended silently. It never compares clocks of two
 * machines.
 * @param before - the time of each last report, by its writer's clock
 * @returns the same times now
 */
async function removeSilent(
  connection: LedgerConnection,
  before: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const workers = await readWorkers(connection);
  const silent = workers.filter(({ name, at }) => before.get(name) === at).map(({ name }) => name);
  await removeWorkers(connection, silent);
  return new Map(workers.filter(({ name }) => !silent.includes(name)).map(({ name, at }) => [name, at]));
}

/** Shorter waits are normal between two sends. */
const HOLD_OFF_FROM_MS = 2_000;

const VERSION = readVersion();

interface WorkerFacts {
  readonly status: {
    readonly role: string;
    readonly reason?: string;
    readonly cause?: string;
    readonly missing?: MissingReport;
  };
  readonly work: Pick<
    RecentWork,
    'notSent' | 'failedPolls' | 'ended' | 'wasUnanswered' | 'slow' | 'tooClose' | 'resumeWasRefused'
  >;
  /** When the next send is allowed, on the clock's scale. Undefined before the first lease. */
  readonly opensAt: number | undefined;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly journalHead?: PublishedHead | undefined;
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
}

/** The report of a worker process. It changes only with an event, to save writes. */
export function describeWorker(facts: WorkerFacts): Omit<WorkerReport, 'at'> {
  const { status, work, opensAt, startedAt, journalHead, clock } = facts;
  const { notSent, failedPolls } = work;
  const isSender = status.role === 'sender';
  const report = {
    role: status.role,
    reason: status.reason,
    cause: status.cause,
    missing: status.missing,
    startedAt: Math.round(startedAt),
    version: VERSION,
    pollError: failedPolls?.reason,
    pollErrorCode: failedPolls?.code,
    failedPolls: failedPolls && Math.min(failedPolls.count, COUNTED_POLLS),
    closeAt: work.tooClose && toWallClock(work.tooClose.at, clock),
    closeMs: work.tooClose?.gapMs,
  };
  if (!isSender) return report;
  const isHeldOff = opensAt !== undefined && opensAt - clock.now() > HOLD_OFF_FROM_MS;
  return {
    ...report,
    holdOffUntil: isHeldOff ? toWallClock(opensAt, clock) : undefined,
    noResponse: work.wasUnanswered ? true : undefined,
    pauseKept: work.resumeWasRefused ? true : undefined,
    ended: work.ended && { ...work.ended, at: toWallClock(work.ended.at, clock) },
    slowAt: work.slow && toWallClock(work.slow.at, clock),
    slowMs: work.slow && Math.round(work.slow.durationMs),
    lastError: notSent?.reason,
    lastErrorCode: notSent?.code,
    failedAttempts: notSent?.count,
    nextRetryAt: notSent && toWallClock(notSent.retryAt, clock),
    journalHead,
  };
}

/** Rounded to 100 ms, so that one moment is always one number. */
function toWallClock(at: number, clock: Pick<Clock, 'now' | 'wallNow'>): number {
  return Math.round((clock.wallNow() + at - clock.now()) / 100) * 100;
}
