import type { PayoutArchive } from '../archive/payout-archive.js';
import { isAborted } from '../clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { readOldest, removeRead } from '../ledger/remove-payouts.js';
import { FINAL_STATES, type PayoutState } from '../ledger/states.js';
import type { Logger } from '../logger.js';
import { ArchiveTroubleError, keepInArchive } from './keep-in-archive.js';
import type { StatisticsKeeper } from './statistics/statistics-keeper.js';

export interface RetentionOptions {
  readonly connection: LedgerConnection;
  /** Days for which final payouts are kept. */
  readonly retentionDays: number;
  /** Has payouts before they are removed. @defaultValue they are gone */
  readonly archive?: PayoutArchive | undefined;
  readonly logger: Logger;
  /** No event tells of a removal. */
  readonly statistics: Pick<StatisticsKeeper, 'countRemoval'>;
  /** Told after each step why the archive could not be written; undefined when it could. */
  readonly onArchiveTrouble?: (trouble: string | undefined) => void;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Small steps, so that a large clean-up takes no time from the sender: 150 payouts and 300 events a second, in scripts of some 2 ms. */
const STEP_EVERY_MS = 1_000;
const PAYOUTS_PER_STEP = 50;
const EVENTS_PER_STEP = 300;
/** Also between two steps that find few: a batch of a minute takes less of the archive's disk than its payouts one by one. */
const REST_MS = 60_000;

/** The number of events that stay in any case, for `payouts events` and for groups that are still to come. */
const KEPT_EVENTS = 100_000;

/**
 * Removes final payouts that are older than the retention, and events that nobody waits for, until the signal is aborted.
 * Scripts check state and age again, so two processes that do it at once do no harm.
 */
export async function applyRetention(options: RetentionOptions, signal: AbortSignal): Promise<void> {
  const { connection, logger, onArchiveTrouble } = options;
  let removed = 0;
  while (!isAborted(signal)) {
    let more = false;
    try {
      const step = await removeSome(options);
      onArchiveTrouble?.(step.archiveTrouble);
      if (step.archiveTrouble !== undefined) logger.warn({ error: step.archiveTrouble }, 'old payouts stay in Redis');
      removed += step.payouts;
      more = step.isFull;
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'old payouts could not be removed, will try again');
    }
    if (!more && removed > 0) {
      logger.info({ removed }, 'final payouts that were older than the retention were removed');
      removed = 0;
    }
    await connection.clock.sleep(more ? STEP_EVERY_MS : REST_MS, signal);
  }
  // From now on it is the task of another process.
  onArchiveTrouble?.(undefined);
}

/** How much was removed in one step; nothing means that there is nothing to remove now. */
export interface RetentionStep {
  readonly payouts: number;
  readonly events: number;
  /** There may be as much again. */
  readonly isFull: boolean;
  /** Why payouts that are old enough could not be kept, and so were not removed. */
  readonly archiveTrouble: string | undefined;
}

type StepOptions = Omit<RetentionOptions, 'logger' | 'onArchiveTrouble'>;

/** One step. @throws RedisUnavailableError */
export async function removeSome(options: StepOptions): Promise<RetentionStep> {
  const { connection } = options;
  const unreadable: string[] = [];
  let [payouts, isFull] = [0, false];
  let archiveTrouble: string | undefined;
  try {
    for (const state of FINAL_STATES) {
      const step = await removeOf(state, options);
      unreadable.push(...step.unreadable);
      payouts += step.removed;
      isFull ||= step.isFull;
    }
    archiveTrouble = describeUnreadable(unreadable);
  } catch (error) {
    if (!(error instanceof ArchiveTroubleError)) throw error;
    archiveTrouble = error.message;
  }
  const events = Number(await connection.run('trim-events', [KEPT_EVENTS, EVENTS_PER_STEP]));
  // Redis drops whole blocks of its stream, so a full step may be some events short.
  return { payouts, events, isFull: isFull || events > EVENTS_PER_STEP / 2, archiveTrouble };
}

async function removeOf(
  state: PayoutState,
  { connection, retentionDays, statistics, archive }: StepOptions,
): Promise<{ removed: number; isFull: boolean; unreadable: readonly string[] }> {
  const before = connection.clock.wallNow() - retentionDays * DAY_MS;
  const oldest = await readOldest(connection, state, PAYOUTS_PER_STEP);
  // Before the statistics wait for it: a disk may be slow.
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
    // Not by how many: one that somebody altered stays at the head, and would make each step one short.
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
