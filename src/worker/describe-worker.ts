import type { Clock } from '../clock.js';
import type { ToldHead } from '../ledger/tell-of-control.js';
import type { WorkerReport } from '../ledger/workers.js';
import { readVersion } from '../version.js';
import type { RecentWork } from './monitoring/recent-work.js';

/** A shorter wait is the usual one between two sends. */
const HOLD_OFF_FROM_MS = 2_000;

const VERSION = readVersion();

interface WorkerFacts {
  readonly status: { readonly role: string; readonly reason?: string };
  readonly work: Pick<RecentWork, 'notSent' | 'failedPolls' | 'wasUnanswered'>;
  /** When the next send is allowed, on the clock's scale; undefined before the first lease. */
  readonly opensAt: number | undefined;
  /** Wall clock, ms. */
  readonly startedAt: number;
  /** Where the journal of this process ended when that was told last. */
  readonly journalHead?: ToldHead | undefined;
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
}

/** What a worker process says of itself. It changes only when something happens, so that it is not written all the time. */
export function describeWorker(facts: WorkerFacts): Omit<WorkerReport, 'at'> {
  const { status, work, opensAt, startedAt, journalHead, clock } = facts;
  const { notSent, failedPolls } = work;
  const isSender = status.role === 'sender';
  const report = {
    role: status.role,
    reason: status.reason,
    startedAt: Math.round(startedAt),
    version: VERSION,
    pollError: failedPolls?.reason,
    pollErrorCode: failedPolls?.code,
  };
  if (!isSender) return report;
  const isHeldOff = opensAt !== undefined && opensAt - clock.now() > HOLD_OFF_FROM_MS;
  return {
    ...report,
    holdOffUntil: isHeldOff ? toWallClock(opensAt, clock) : undefined,
    noResponse: work.wasUnanswered ? true : undefined,
    lastError: notSent?.reason,
    lastErrorCode: notSent?.code,
    failedAttempts: notSent?.count,
    nextRetryAt: notSent && toWallClock(notSent.retryAt, clock),
    journalHead,
  };
}

/** To 100 ms, so that the same moment is always the same number. */
function toWallClock(at: number, clock: Pick<Clock, 'now' | 'wallNow'>): number {
  return Math.round((clock.wallNow() + at - clock.now()) / 100) * 100;
}
