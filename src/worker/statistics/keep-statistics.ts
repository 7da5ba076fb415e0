import { isAborted } from '../../clock.js';
import { RedisUnavailableError } from '../../errors.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import type { Logger } from '../../logger.js';
import type { StatisticsKeeper } from './statistics-keeper.js';

export interface KeepStatisticsOptions {
  readonly keeper: Pick<StatisticsKeeper, 'step'>;
  readonly connection: LedgerConnection;
  readonly logger: Logger;
}

const STEP_EVERY_MS = 5_000;

/** While there are more events: 2,500 a second. */
const CATCH_UP_MS = 200;

/** Counts an account's events until the signal is aborted. Nothing that fails here concerns a payout. */
export async function keepStatistics(
  { keeper, connection, logger }: KeepStatisticsOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!isAborted(signal)) {
    let hasMore = false;
    try {
      hasMore = await keeper.step(signal);
    } catch (error) {
      // Others say that Redis is unavailable.
      if (!(error instanceof RedisUnavailableError))
        logger.warn({ error: (error as Error).message }, 'the events could not be counted, will try again');
    }
    await connection.clock.sleep(hasMore ? CATCH_UP_MS : STEP_EVERY_MS, signal);
  }
}
