import { spawn } from 'node:child_process';
import { z } from 'zod';
import { systemClock } from '../../base/clock.js';
import { type Environment, readSettings } from '../../base/config.js';
import { createLogger } from '../../base/create-logger.js';
import { InvalidConfigError, InvalidInputError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { CONTROL_SETTINGS, WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../base/settings.js';
import { readWorkerAccounts } from '../context/accounts.js';
import { type CliContext, outliveHangup } from '../context/cli-context.js';
import { CommandFailedError } from '../context/exit-code.js';
import { readWorkerKey } from '../context/signing.js';
import { CHILD_FLAG, ProcessPool } from './process-pool.js';

const PROCESSES_MAX = 64;
const HIGHEST_PORT = 65_535;
const FLAG = '--processes';

const RULE = `must be a whole number from 1 to ${PROCESSES_MAX}`;
const schema = z.object({
  [FLAG]: z.string().refine((text) => /^[1-9]\d?$/.test(text) && Number(text) <= PROCESSES_MAX, RULE),
});

export function parseProcesses(text: string): number {
  return Number(parseInput(schema, { [FLAG]: text })[FLAG]);
}

/**
 * @throws InvalidInputError if there are too few accounts to share
 * @throws CommandFailedError if a process did not end in good order
 */
export async function runProcesses({ environment, stopSignal }: CliContext, count: number): Promise<void> {
  const setup = readWorkerSetup(environment);
  requireShareable(setup, count);
  const { healthPort, logLevel } = setup.settings;
  const logger = createLogger(logLevel);
  const pool = new ProcessPool({
    count,
    start: (index) =>
      // The running program: works in a clone, an installed package and a global one.
      spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'worker', CHILD_FLAG], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
        env: { ...environment, HEALTH_PORT: String(healthPort === 0 ? 0 : healthPort + index) },
      }),
    clock: systemClock,
    logger,
  });
  outliveHangup(() => {
    pool.signal('SIGHUP');
  });
  const end = await pool.run(stopSignal());
  if (end === 'usage') {
    throw new InvalidConfigError([{ field: FLAG, message: 'a worker process cannot start, for the reason above' }]);
  }
  logger.info({ end }, 'all worker processes ended');
  if (end === 'failed') throw new CommandFailedError();
}

function requireShareable({ accounts, settings: { healthPort } }: WorkerSetup, count: number): void {
  if (accounts.length < count) {
    const message =
      accounts.length === 1
        ? `shares accounts out, and there is only one: leave it out, or name several in PAYOUT_ACCOUNTS_FILE (got "${count}")`
        : `must be at most the number of accounts, ${accounts.length}: one account is never shared (got "${count}")`;
    throw new InvalidInputError([{ field: FLAG, message }]);
  }
  const lastPort = healthPort + count - 1;
  if (healthPort > 0 && lastPort > HIGHEST_PORT) {
    const message = `must leave a port for each of ${count} processes: the last would have ${lastPort}, above ${HIGHEST_PORT}`;
    throw new InvalidConfigError([{ field: 'HEALTH_PORT', message }]);
  }
}

type WorkerSetup = ReturnType<typeof readWorkerSetup>;

/** @throws InvalidConfigError with every problem, without secrets */
export function readWorkerSetup(environment: Environment) {
  const settings = readSettings(
    {
      ...WORKER_SETTINGS,
      ...WORKER_COMMAND_SETTINGS,
      keysFile: CONTROL_SETTINGS.keysFile,
      acceptUnboundUntil: CONTROL_SETTINGS.acceptUnboundUntil,
    },
    environment,
  );
  const accounts = readWorkerAccounts(environment);
  const receiptKey = readWorkerKey(environment);
  return { settings, accounts, receiptKey };
}
