import { type Command, Option } from 'commander';
import { followSignals, untilAborted } from '../../base/clock.js';
import { createLogger } from '../../base/create-logger.js';
import { StoppedError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { readVersion } from '../../base/version.js';
import type { AccountWorker } from '../../worker/account-worker.js';
import {
  type HealthServer,
  type HealthServerOptions,
  startHealthServer,
} from '../../worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../worker/monitoring/worker-metrics.js';
import { createPayoutWorker, type PayoutWorker } from '../../control/payout-worker.js';
import { type CliContext, exitNow, outliveHangup } from '../context/cli-context.js';
import { CHILD_FLAG, stoppedByParent } from './process-pool.js';
import { parseProcesses, readWorkerSetup, runProcesses } from './run-processes.js';

interface Flags {
  readonly processes?: string;
  /** Started by another process with `--processes`. */
  readonly child?: true;
}

const HELP = `
Sends the queued payouts of the account, at most one a second, and follows each until it is completed or failed.
Several workers may run for one account: one sends, the others stand by and take over when it ends. Workers with the
same PAYOUT_ACCOUNTS_FILE share its accounts out: each sends for its part, and takes over when another ends.

A process carries some 100 busy accounts. --processes starts several on this host, each with the same environment, restarts
one that ends, and serves the health of the first at HEALTH_PORT, of the second at HEALTH_PORT + 1 and so on.

Environment:
  REDIS_URL, GATEWAY_PLATFORM_ID, GATEWAY_BASE_URL, GATEWAY_SECRET_KEY (or GATEWAY_SECRET_KEY_FILE), SEND_JOURNAL_DIR;
  PAYOUT_ACCOUNTS_FILE for several accounts; PAYOUT_KEYS_FILE sends nothing that is not signed;
  PAYOUT_POLICY_FILE holds what the policy does not let pass.
  docs/configuration.md lists all; \`payouts doctor\` checks them, \`payouts keys check\` the keys, \`payouts policy check\` the policy.

Signals:
  SIGTERM and SIGINT begin no new send, wait for the response to the current one, then exit with 0. A second signal
  exits at once; a send without its response then becomes unknown.
  SIGHUP reads PAYOUT_KEYS_FILE and the policies again, where there are any. It never ends the worker.

Examples:
  payouts worker
  PAYOUT_ACCOUNTS_FILE=/run/secrets/accounts.json HEALTH_HOST=0.0.0.0 payouts worker
  PAYOUT_ACCOUNTS_FILE=/run/secrets/accounts.json payouts worker --processes 4
`;

const EXIT_WITHIN_MS = 1_000;

export function defineWorkerCommand(command: Command, context: CliContext): void {
  command
    .option('--processes <number>', 'share the accounts out among this many processes on this host')
    .addOption(new Option(CHILD_FLAG).hideHelp())
    .addHelpText('after', HELP)
    .action(async (flags: Flags) => {
      const processes = parseProcesses(flags.processes ?? '1');
      const stoppedBy = flags.child === undefined ? [] : [stoppedByParent()];
      await (processes === 1 ? runWorker(context, stoppedBy) : runProcesses(context, processes));
    });
}

async function runWorker({ environment, stopSignal }: CliContext, stoppedBy: readonly AbortSignal[]): Promise<void> {
  const { settings: all, accounts, receiptKey } = readWorkerSetup(environment);
  const { stuckAfterMs, healthHost, healthPort, logLevel, ...settings } = all;
  const logger = createLogger(logLevel);
  const { signal: stop } = followSignals(stopSignal(), ...stoppedBy);
  const metrics = createWorkerMetrics({ version: readVersion(), stuckAfterMs });
  let worker: PayoutWorker | undefined;
  const early = { isReloadDue: false };
  const reload = (): void => {
    // A worker being created may have read its files already: reload later.
    early.isReloadDue = worker === undefined;
    worker?.reloadKeys();
    worker?.reloadPolicies();
  };
  outliveHangup(reload);
  const accountsOf = (): readonly AccountWorker[] => worker?.accounts ?? [];
  const health = await serveHealth({ host: healthHost, port: healthPort, metrics, accounts: accountsOf, logger });
  try {
    worker = await createPayoutWorker({ ...settings, accounts, receiptKey, observe: metrics.observe, logger }, stop);
    if (early.isReloadDue) reload();
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

/** If Redis is unavailable at the end, BullMQ leaves timers that keep the process alive. */
function exitDespiteTimers(): void {
  setTimeout(exitNow, EXIT_WITHIN_MS).unref();
}

/** Payouts matter more than metrics: if the port is in use, as by a second worker, this one runs without. */
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
