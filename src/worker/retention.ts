import { isAborted } from '../clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { removePayouts } from '../ledger/remove-payouts.js';
import { FINAL_STATES } from '../ledger/states.js';
import type { Logger } from '../logger.js';
import type { StatisticsKeeper } from './statistics/statistics-keeper.js';

export interface RetentionOptions {
  readonly connection: LedgerConnection;
  /** Days for which final payouts are kept. */
  readonly retentionDays: number;
  readonly logger: Logger;
  /** No event tells of a removal. */
  readonly statistics: Pick<StatisticsKeeper, 'countRemoval'>;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Small steps, so that a large clean-up takes no time from the sender: 300 payouts and 1,000 events a second. */
const STEP_EVERY_MS = 1_000;
const PAYOUTS_PER_STEP = 100;
const EVENTS_PER_STEP = 1_000;
const REST_MS = 60_000;

/** The number of events that stay in any case, for `payouts events` and for groups that are still to come. */
const KEPT_EVENTS = 100_000;

/**
 * Removes final payouts that are older than the retention, and events that nobody waits for, until the signal is aborted.
 * Scripts check state and age again, so two processes that do it at once do no harm.
 */
export async function applyRetention(options: RetentionOptions, signal: AbortSignal): Promise<void> {
  const { connection, logger } = options;
  let removed = 0;
  while (!isAborted(signal)) {
    let more = false;
    try {
      const step = await removeSome(options);
      removed += step.payouts;
      more = step.payouts > 0 || step.events > 0;
    } catch (error) {
      logger.warn({ error: (error as Error).message }, 'old payouts could not be removed, will try again');
    }
    if (!more && removed > 0) {
      logger.info({ removed }, 'final payouts that were older than the retention were removed');
      removed = 0;
    }
    await connection.clock.sleep(more ? STEP_EVERY_MS : REST_MS, signal);
  }
}

/** One step. @returns how much was removed; nothing means that there is nothing to remove now */
export async function removeSome({
  connection,
  retentionDays,
  statistics,
}: Pick<RetentionOptions, 'connection' | 'retentionDays' | 'statistics'>): Promise<{
  payouts: number;
  events: number;
}> {
  const before = connection.clock.wallNow() - retentionDays * DAY_MS;
  let payouts = 0;
  for (const state of FINAL_STATES) {
    payouts += await statistics.countRemoval(state, async () =>
      removePayouts(connection, state, before, PAYOUTS_PER_STEP),
    );
  }
  const events = Number(await connection.run('trim-events', [KEPT_EVENTS, EVENTS_PER_STEP]));
  return { payouts, events };
}
