import type { PayoutArchive } from '../archive/payout-archive.js';
import { DAY_MS, every, within } from '../base/clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { parseRecord } from '../ledger/payout-record.js';
import { UnreadableRecordError } from '../base/errors.js';
import type { Payout } from '../ledger/payout.js';
import { type OldPayout, readOldest, removeRead } from '../ledger/remove-payouts.js';
import { FINAL_STATES, type PayoutState } from '../ledger/states.js';
import type { Logger } from '../base/logger.js';
import type { StatisticsKeeper } from './statistics/statistics-keeper.js';

interface RetentionOptions {
  readonly connection: LedgerConnection;
  readonly retentionDays: number;
  /** Stores payouts before their removal. @defaultValue removed payouts are lost */
  readonly archive?: PayoutArchive | undefined;
  readonly logger: Logger;
  /** Removals have no event. */
  readonly statistics: Pick<StatisticsKeeper, 'countRemoval'>;
  /** Called after each step with the archive's error, or undefined after success. */
  readonly onArchiveTrouble?: (trouble: string | undefined) => void;
}

/** Small steps do not delay the sender: 150 payouts and 300 events a second, in scripts of some 2 ms. */
const STEP_EVERY_MS = 1_000;
const PAYOUTS_PER_STEP = 50;
const EVENTS_PER_STEP = 300;
/** Also after a small step: one batch a minute takes less archive space than single payouts. */
const REST_MS = 60_000;

/** Events that always stay, for `payouts events` and future groups. */
const KEPT_EVENTS = 100_000;

/**
 * Removes expired final payouts, and events that no group needs, until the signal is aborted. Scripts check state and
 * age again, so two processes do no harm.
 */
export async function applyRetention(options: RetentionOptions, signal: AbortSignal): Promise<void> {
  const { connection, logger, onArchiveTrouble } = options;
  let removed = 0;
  const removeOldest = async (): Promise<number> => {
    const { archiveTrouble, payouts, isFull } = await removeSome(options);
    onArchiveTrouble?.(archiveTrouble);
    if (archiveTrouble !== undefined) logger.warn({ error: archiveTrouble }, 'old payouts stay in Redis');
    removed += payouts;
    if (isFull) return STEP_EVERY_MS;
    if (removed > 0) logger.info({ removed }, 'final payouts that were older than the retention were removed');
    removed = 0;
    return REST_MS;
  };
  const onError = ({ message }: Error): void => {
    logger.warn({ error: message }, 'old payouts could not be removed, will try again');
  };
  await every(REST_MS, removeOldest, { clock: connection.clock, signal, onError });
  // Another process does this from now on.
  onArchiveTrouble?.(undefined);
}

interface RetentionStep {
  readonly payouts: number;
  readonly events: number;
  readonly isFull: boolean;
  /** Why expired payouts could not be archived and so were kept. */
  readonly archiveTrouble: string | undefined;
}

export async function removeSome(
  options: Omit<RetentionOptions, 'logger' | 'onArchiveTrouble'>,
): Promise<RetentionStep> {
  const { connection, retentionDays } = options;
  const before = connection.clock.wallNow() - retentionDays * DAY_MS;
  const unreadable: string[] = [];
  let [payouts, isFull] = [0, false];
  let archiveTrouble: string | undefined;
  try {
    for (const state of FINAL_STATES) {
      const step = await removeOf(state, before, options);
      unreadable.push(...step.unreadable);
      payouts += step.removed;
      isFull ||= step.isFull;
    }
    archiveTrouble = describeUnreadable(unreadable);
  } catch (error) {
    if (!(error instanceof ArchiveTroubleError)) throw error;
    archiveTrouble = error.message;
  }
  const events = Number(await connection.run('trim-events', { keep: KEPT_EVENTS, limit: EVENTS_PER_STEP }));
  // Redis drops whole blocks of its stream, so a full step may be some events short.
  return { payouts, events, isFull: isFull || events > EVENTS_PER_STEP / 2, archiveTrouble };
}

async function removeOf(
  state: PayoutState,
  before: number,
  { connection, statistics, archive }: Pick<RetentionOptions, 'connection' | 'statistics' | 'archive'>,
): Promise<{ removed: number; isFull: boolean; unreadable: readonly string[] }> {
  const oldest = await readOldest(connection, state, PAYOUTS_PER_STEP);
  // Before the statistics wait for it, because a disk may be slow.
  const { removable, unreadable } =
    archive === undefined ? { removable: oldest, unreadable: [] } : await keepInArchive(archive, oldest, before);
  const last = oldest.length < PAYOUTS_PER_STEP ? undefined : oldest.at(-1)?.payoutId;
  let isFull = false;
  const removed = await statistics.countRemoval(state, async () => {
    const gone = await removeRead(connection, {
      ...{ state, before, old: removable },
      onlyUnchanged: archive !== undefined,
    });
    archive?.forget(gone.map(({ payoutId }) => payoutId));
    // Do not compare counts: an altered record stays at the head and would shorten each step by one.
    isFull = gone.some(({ payoutId }) => payoutId === last);
    return gone;
  });
  return { removed, isFull, unreadable };
}

function describeUnreadable([first, ...others]: readonly string[]): string | undefined {
  if (first === undefined) return undefined;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return `What Redis has of payout ${first}${more} cannot be read, and so not be archived: see \`payouts get\`, and who altered it`;
}

/** The archive could not be written, or not in time. Unarchived payouts stay in Redis. */
class ArchiveTroubleError extends Error {}

/** A network folder may hang, and the sender waits for this task before it gives up its lease. */
const KEEP_WITHIN_MS = 5_000;

interface KeptPayouts {
  /** Payouts on disk now, and ids without a record. */
  readonly removable: readonly OldPayout[];
  /** Ids of invalid records, for example altered ones. */
  readonly unreadable: readonly string[];
}

/** Archives payouts that are old enough. @param before - wall clock, ms  @throws ArchiveTroubleError */
async function keepInArchive(
  archive: PayoutArchive,
  oldest: readonly OldPayout[],
  before: number,
): Promise<KeptPayouts> {
  const removable: OldPayout[] = [];
  const unreadable: string[] = [];
  const payouts: Payout[] = [];
  for (const old of oldest) {
    const payout = isGone(old) ? undefined : readRecord(old);
    if (isGone(old)) removable.push(old);
    else if (payout === undefined) unreadable.push(old.payoutId);
    else if (Date.parse(payout.updatedAt) < before) {
      removable.push(old);
      payouts.push(payout);
    }
  }
  if (payouts.length > 0) await keep(archive, payouts);
  return { removable, unreadable };
}

async function keep(archive: PayoutArchive, payouts: readonly Payout[]): Promise<void> {
  let isKept: true | undefined;
  try {
    isKept = await within(
      KEEP_WITHIN_MS,
      archive.keep(payouts).then(() => true as const),
    );
  } catch (error) {
    throw new ArchiveTroubleError((error as Error).message, { cause: error });
  }
  if (isKept === undefined) {
    throw new ArchiveTroubleError(
      `The archive was not on disk within ${KEEP_WITHIN_MS} ms. Set PAYOUT_ARCHIVE_DIR to a faster disk; until then no payout is removed`,
    );
  }
}

function readRecord({ payoutId, record }: OldPayout): Payout | undefined {
  try {
    return parseRecord(payoutId, record);
  } catch (error) {
    if (error instanceof UnreadableRecordError) return undefined;
    throw error;
  }
}

/** An earlier removal ended before it reached the index. */
function isGone({ record }: OldPayout): boolean {
  return Object.keys(record).length === 0;
}
