import { isAborted, within, type Clock } from '../clock.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { readWorkers, removeWorkers, writeWorkerReport, type WorkerReport } from '../ledger/workers.js';
import type { Logger } from '../logger.js';

export interface WorkerReportsOptions {
  readonly connection: LedgerConnection;
  readonly clock: Clock;
  /** Host and process id. */
  readonly name: string;
  /** What this process is doing now; undefined where that is nothing. */
  readonly describe: () => Omit<WorkerReport, 'at'> | undefined;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 500;

/** A process that does nothing new says so this often: one command in five seconds. */
const REPORT_EVERY_MS = 5_000;

const CLEAN_EVERY_MS = 60_000;

/** An unavailable Redis keeps no process from ending. */
const REMOVE_WITHIN_MS = 500;

/**
 * Tells operators what this worker process is doing, until it ends: in the ledger's `workers` hash, beside the sends and
 * never in their way. A change is written within half a second.
 */
export async function reportWorker(options: WorkerReportsOptions, end: AbortSignal): Promise<void> {
  const { connection, clock, name, describe, logger } = options;
  let written: { readonly text: string; readonly at: number } | undefined;
  let observed = { at: clock.now(), reports: new Map<string, number>() };
  while (!isAborted(end)) {
    const report = describe();
    const text = JSON.stringify(report);
    try {
      if (report === undefined) {
        if (written !== undefined) await removeWorkers(connection, [name]);
        written = undefined;
      } else if (text !== written?.text || clock.now() - written.at >= REPORT_EVERY_MS) {
        await writeWorkerReport(connection, name, { ...report, at: clock.wallNow() });
        written = { text, at: clock.now() };
      }
      if (report?.role === 'sender' && clock.now() - observed.at >= CLEAN_EVERY_MS) {
        observed = { at: clock.now(), reports: await removeSilent(connection, observed.reports) };
      }
    } catch (error) {
      logger.debug({ error: (error as Error).message }, 'cannot report what this worker does');
    }
    await clock.sleep(CHECK_EVERY_MS, end);
  }
  await within(
    REMOVE_WITHIN_MS,
    removeWorkers(connection, [name]).catch(() => undefined),
  );
}

/**
 * Removes the processes that did not report since the last look: those have ended without saying so. No clocks of two
 * machines are compared.
 * @param before - when each had written its report at the last look, by its own clock
 * @returns the same now
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
