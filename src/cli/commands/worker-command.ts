import type { Command } from 'commander';
import { readConfig, readSettings } from '../../config.js';
import { untilAborted } from '../../clock.js';
import { createLogger } from '../../create-logger.js';
import { StoppedError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import { CONTROL_SETTINGS, WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../settings.js';
import type { AccountWorker } from '../../worker/account-worker.js';
import {
  startHealthServer,
  type HealthServer,
  type HealthServerOptions,
} from '../../worker/monitoring/health-server.js';
import { createPayoutWorker, type PayoutWorker } from '../../worker/payout-worker.js';
import { createWorkerMetrics } from '../../worker/monitoring/worker-metrics.js';
import type { CliContext } from '../context/cli-context.js';
import { readVersion } from '../../version.js';
import { readWorkerKey } from '../context/signing-key.js';
import { readWorkerAccounts } from '../context/worker-accounts.js';

const HELP = `
Sends the queued payouts of the account, at most one a second, and follows each until it is completed or failed.
Several workers may run for one account: one sends, the others stand by and take over when it ends.

Environment:
  REDIS_URL, GATEWAY_PLATFORM_ID, GATEWAY_BASE_URL, GATEWAY_SECRET_KEY (or GATEWAY_SECRET_KEY_FILE), SEND_JOURNAL_DIR;
  PAYOUT_ACCOUNTS_FILE for several accounts; PAYOUT_KEYS_FILE sends nothing that is not signed;
  PAYOUT_POLICY_FILE holds what the policy does not let pass.
  docs/configuration.md lists all; \`payouts doctor\` checks them, \`payouts keys check\` the keys, \`payouts policy check\` the policy.

Signals:
  SIGTERM and SIGINT begin no new send, wait for the response to the current one, then exit with 0. A second signal
  exits at once; a send without its response then becomes unknown.
  SIGHUP reads PAYOUT_KEYS_FILE and the policies again, where there are any.

Examples:
  payouts worker
  PAYOUT_ACCOUNTS_FILE=/run/secrets/accounts.json HEALTH_HOST=0.0.0.0 payouts worker
`;

const EXIT_WITHIN_MS = 1_000;

export function defineWorkerCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP).action(async () => {
    await runWorker(context);
  });
}

async function runWorker({ environment, stopSignal }: CliContext): Promise<void> {
  const { stuckAfterMs, healthHost, healthPort, logLevel, ...settings } = readSettings(
    { ...WORKER_SETTINGS, ...WORKER_COMMAND_SETTINGS, keysFile: CONTROL_SETTINGS.keysFile },
    environment,
  );
  const accounts = readWorkerAccounts(environment);
  const { PAYOUT_KEYS_FILE: keysFile } = readConfig(['PAYOUT_KEYS_FILE'], environment);
  const receiptKey = readWorkerKey(environment);
  const logger = createLogger(logLevel);
  const stop = stopSignal();
  const metrics = createWorkerMetrics({ version: readVersion(), stuckAfterMs });
  let worker: PayoutWorker | undefined;
  // Without a keyring and a policy it ends the process, as it ends any.
  if (keysFile !== undefined || accounts.some(({ policyFile }) => policyFile !== undefined)) {
    process.on('SIGHUP', () => {
      worker?.reloadKeys();
      worker?.reloadPolicies();
    });
  }
  const accountsOf = (): readonly AccountWorker[] => worker?.accounts ?? [];
  const health = await serveHealth({ host: healthHost, port: healthPort, metrics, accounts: accountsOf, logger });
  try {
    worker = await createPayoutWorker(
      { ...settings, accounts, keysFile, receiptKey, observe: metrics.observe, logger },
      stop,
    );
    logger.info({ platformIds: accounts.map(({ platformId }) => platformId) }, 'worker started');
    await untilAborted(stop);
    logger.info({}, 'stopping after the current send; a second signal exits at once');
    await worker.stop();
    logger.info({}, 'worker stopped');
  } catch (error) {
    // It was stopped before any account had started.
    if (!(error instanceof StoppedError)) throw error;
    logger.info({ reason: error.message }, 'worker stopped');
  } finally {
    await health?.close();
    exitDespiteTimers();
  }
}

/** When Redis is unavailable at the end, BullMQ leaves timers behind that would keep the process alive. */
function exitDespiteTimers(): void {
  setTimeout(() => process.exit(), EXIT_WITHIN_MS).unref();
}

/** Payouts matter more than their metrics: where the port is taken, as by a second worker, this one runs without. */
async function serveHealth(
  options: HealthServerOptions & { readonly logger: Logger },
): Promise<HealthServer | undefined> {
  const { logger } = options;
  try {
    const server = await startHealthServer(options);
    logger.info({ url: server.url }, 'serving /healthz, /readyz and /metrics');
    return server;
  } catch (error) {
    logger.error(
      { error: (error as Error).message },
      'health and metrics are not served: give each worker its own HEALTH_PORT',
    );
    return undefined;
  }
}
