import { readSettings, type Environment } from '../../config.js';
import { CONTROL_SETTINGS, WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../settings.js';
import { readWorkerKey } from '../context/signing-key.js';
import { readWorkerAccounts } from '../context/worker-accounts.js';

/** What a worker process runs with. */
export type WorkerSetup = ReturnType<typeof readWorkerSetup>;

/** @throws InvalidConfigError with every problem; secrets are never shown */
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
