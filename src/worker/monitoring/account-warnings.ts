import { sinceWatcherFailureMs, watcherFailures } from '../../base/logger.js';
import { formatCount, formatDuration, formatMs } from '../../base/format.js';
import { CLOCK_OFFSET_MAX_MS, describeClockOffset } from '../../ledger/clock-offset.js';
import { NOTIFICATIONS_LATE_MS } from '../../ledger/reads/state-events.js';
import { describeRates } from '../../ledger/reads/policy-report.js';
import { listDrops } from '../../ledger/reads/reconciliation.js';
import { formatCommand } from '../../operator/next-steps.js';
import type { AccountDetails } from '../../operator/account-details.js';
import type { AccountView } from './account-snapshot.js';

const MINUTE_MS = 60_000;

/** As the alert PayoutsStandStill. */
const STANDS_STILL_AFTER_MS = 10 * MINUTE_MS;

/** As the alert PayoutsLogsLost. */
const LOST_LOG_SHOWN_MS = 10 * MINUTE_MS;

/** As the alert PayoutsRatesStale. */
const RATES_STALE_MS = 15 * MINUTE_MS;

/** The first query may fail for any reason. */
const RATES_MISSING_MS = 15_000;

/** One poll may fail for any reason. */
const FAILED_POLLS = 3;

/** As the alert PayoutsJournalSlow. */
const SYNC_SLOW_MS = 100;

/** As the alert PayoutsGatewaySlow. */
const ANSWER_SLOW_MS = 5_000;

/** @returns one line for each thing that needs an operator although this process could send */
export function warnAbout({
  status,
  details,
  unreadable,
  work,
  keyring,
  policy,
  clockOffsetMs,
}: AccountView): string[] {
  const found = details === undefined ? [] : LEDGER_WARNINGS.map((warn) => warn(details, work, status));
  const ofProcess = [
    unreadable && `The account cannot be read in Redis: ${unreadable}. See docs/runbooks/redis-altered.md.`,
    warnOfKeyring(keyring),
    warnOfPolicy(policy),
    warnOfPolls(work),
    warnOfReceipts(work),
    warnOfAnswers(work),
    warnOfJournal(work),
    warnOfArchive(work),
    warnOfRecreated(work),
    warnOfReplaced(work),
    warnOfLog(),
    warnOfClock(clockOffsetMs),
  ];
  return [...found, ...ofProcess].filter((warning) => warning !== undefined);
}

type Work = AccountView['work'];

type LedgerWarning = (details: AccountDetails, work: Work, status: AccountView['status']) => string | undefined;

const LEDGER_WARNINGS: readonly LedgerWarning[] = [
  function notSent({ stats }, { notSent }) {
    if (notSent === undefined || stats.queued + stats.sending === 0) return undefined;
    return `The last ${formatCount(notSent.count, 'attempt')} to send a payout ended before anything was written: ${notSent.reason}`;
  },
  function standStill({ stats, due }, { sinceLastSendMs }, { role }) {
    // Another process sends for it.
    if (role === 'standby') return undefined;
    const waitsMs = Math.min(stats.oldestAgeMs.queued ?? 0, sinceLastSendMs);
    if (stats.sender === null || stats.paused || due === 0 || waitsMs < STANDS_STILL_AFTER_MS) return undefined;
    return `${formatCount(due, 'payout')} could be sent, but this process has sent none for ${formatDuration(waitsMs)}: run \`payouts doctor --account ${stats.platformId}\`.`;
  },
  function keptPause({ stats }, { resumeWasRefused }) {
    if (!resumeWasRefused || stats.paused) return undefined;
    return `A pause is gone from Redis, and no operator signed that: nothing is sent until \`${formatCommand({ name: 'resume', args: ['--reason', 'WHY'] }, stats.platformId, { isSigned: true })}\`.`;
  },
  function held({ stats }) {
    if (stats.held === 0) return undefined;
    return `${formatCount(stats.held, 'payout')} held, and not sent: see \`payouts list --account ${stats.platformId} --state held\` for the reasons.`;
  },
  function rates({ stats, policyReport }) {
    if (policyReport === undefined) return undefined;
    const now = Date.now();
    const { ratesAt, ratesMissingSince } = policyReport;
    const isLate = (at: number | null, afterMs: number): boolean => at !== null && now - at >= afterMs;
    if (!isLate(ratesAt, RATES_STALE_MS) && !isLate(ratesMissingSince, RATES_MISSING_MS)) return undefined;
    return `Rates in dollars: ${describeRates(policyReport, now) ?? ''}. Without them, rules in dollars hold every payout. Ask the gateway with \`${formatCommand({ name: 'gateway currencies', args: [] }, stats.platformId)}\`.`;
  },
  function unknown({ stats }) {
    if (stats.unknown === 0) return undefined;
    return `${formatCount(stats.unknown, 'payout')} may or may not have been sent: see \`payouts list --account ${stats.platformId} --state unknown\`, and decide each with \`payouts resolve --account ${stats.platformId}\`.`;
  },
  function stuck({ stuck }) {
    if (stuck === 0) return undefined;
    return `${formatCount(stuck, 'payout')} in progress for longer than STUCK_AFTER_MS: ask the gateway about them; do not pay them again.`;
  },
  function balance({ money }) {
    const low = money.covers.filter(({ isEnough }) => !isEnough);
    if (low.length === 0) return undefined;
    const list = low.map(({ currency, balance, queued }) => `${balance} ${currency} for ${queued ?? ''}`).join(', ');
    return `The balance is below what is queued (${list}): top the account up; the gateway rejects what it cannot pay.`;
  },
  function unexplained({ stats, money }) {
    const drops = money.unexplained.filter(({ amount }) => amount !== '0');
    if (drops.length === 0) return undefined;
    return `The balance fell by ${listDrops(drops)} more than the payouts explain: someone else may use the gateway's secret key. Run \`payouts reconcile --account ${stats.platformId}\`.`;
  },
  function unreadable({ stats }) {
    if (stats.unreadable.length === 0) return undefined;
    return `${formatCount(stats.unreadable.length, 'key')} in Redis cannot be read, because someone has altered them: ${stats.unreadable.join(', ')}. See docs/runbooks/redis-altered.md.`;
  },
  function outbox({ stats }) {
    if (stats.outboxUnreadable === 0) return undefined;
    return `The outbox holds ${formatCount(stats.outboxUnreadable, 'member')} that this version does not understand: start the version that wrote them, see docs/runbooks/redis-altered.md.`;
  },
  function foreignSettings({ stats, foreignSettings }) {
    if (foreignSettings.length === 0) return undefined;
    const settings = foreignSettings.map(({ queue, detail }) => `${queue} queue: ${detail}`).join('; ');
    return `Settings that someone made in Redis, which \`payouts doctor --account ${stats.platformId}\` tells how to undo: ${settings}`;
  },
  function notifications({ notificationLagMs = 0 }) {
    if (notificationLagMs < NOTIFICATIONS_LATE_MS) return undefined;
    return `Notifications are ${formatDuration(notificationLagMs)} late: read the log of \`payouts notify\`, or start it.`;
  },
];

function warnOfKeyring(keyring: AccountView['keyring']): string | undefined {
  if (keyring?.reloadTrouble === undefined) return undefined;
  return `The keyring could not be read again, and the one before still counts: ${keyring.reloadTrouble}`;
}

function warnOfPolicy(policy: AccountView['policy']): string | undefined {
  if (policy?.reloadTrouble === undefined) return undefined;
  return `The policy could not be read again, and the one before still counts: ${policy.reloadTrouble}`;
}

function warnOfPolls({ failedPolls }: Work): string | undefined {
  if (failedPolls === undefined || failedPolls.count < FAILED_POLLS) return undefined;
  return `The last ${failedPolls.count} status polls failed: ${failedPolls.reason}`;
}

function warnOfReceipts({ receiptFailure }: Work): string | undefined {
  if (receiptFailure === undefined) return undefined;
  return `A payment ended without a receipt within the last hour: ${receiptFailure}. Producers with the keyring do not see it as verified until the signer is back: see docs/runbooks/keys.md.`;
}

function warnOfJournal({ shortestSyncMs = 0 }: Work): string | undefined {
  if (shortestSyncMs <= SYNC_SLOW_MS) return undefined;
  return `Each entry of the send journal takes over ${formatMs(shortestSyncMs)} to be on disk: take load off this disk. To move the journal: stop the worker, copy the whole folder, then set SEND_JOURNAL_DIR to the copy.`;
}

function warnOfAnswers({ shortestAnswerMs = 0 }: Work): string | undefined {
  if (shortestAnswerMs <= ANSWER_SLOW_MS) return undefined;
  return `The gateway is slow: each of the last answers took over ${formatMs(shortestAnswerMs)}. Ask the gateway; do not raise the time limits.`;
}

function warnOfArchive({ archiveTrouble }: Work): string | undefined {
  return archiveTrouble === undefined ? undefined : `Old payouts stay in Redis, and it grows: ${archiveTrouble}.`;
}

function warnOfRecreated({ jobsRecreated }: Work): string | undefined {
  if (jobsRecreated === 0) return undefined;
  return `${formatCount(jobsRecreated, 'job')} missing in Redis had to be added again: find out what deletes keys of the queues.`;
}

function warnOfReplaced({ jobWorkersReplaced }: Work): string | undefined {
  if (jobWorkersReplaced === 0) return undefined;
  return `${formatCount(jobWorkersReplaced, 'BullMQ worker')} hung and had to be replaced: if it happens again, restart this process and report it.`;
}

function warnOfLog(): string | undefined {
  const agoMs = sinceWatcherFailureMs('logger') ?? Infinity;
  if (agoMs > LOST_LOG_SHOWN_MS) return undefined;
  return `${formatCount(watcherFailures('logger'), 'log line')} could not be written: free the disk that stderr goes to, or restart what reads it.`;
}

function warnOfClock(offsetMs = 0): string | undefined {
  if (Math.abs(offsetMs) <= CLOCK_OFFSET_MAX_MS) return undefined;
  return `The wall clock is ${describeClockOffset(offsetMs)}: synchronise both with NTP.`;
}
