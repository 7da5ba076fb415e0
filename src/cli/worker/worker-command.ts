import { spawn } from 'node:child_process';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { followSignals, systemClock, untilAborted } from '../../base/clock.js';
import { createLogger } from '../../base/create-logger.js';
import { type Environment, findMisspelt, readSettings } from '../../base/config.js';
import { InvalidConfigError, StoppedError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { CONTROL_SETTINGS, WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../base/settings.js';
import { readWorkerAccounts } from '../context/accounts.js';
import { CommandFailedError } from '../context/exit-code.js';
import { readWorkerSigner } from '../context/keys.js';
import { readVersion } from '../../base/version.js';
import type { AccountWorker } from '../../worker/account-worker.js';
import type { AccountOptions } from '../../worker/core-worker.js';
import { type EventServer, startEventServer } from '../../worker/event-server.js';
import { startHealthServer } from '../../worker/monitoring/health-server.js';
import { createWorkerMetrics } from '../../worker/monitoring/worker-metrics.js';
import { createPayoutWorker, type PayoutWorker } from '../../control/payout-worker.js';
import { type CliContext, exitNow, outliveHangup } from '../context/cli-context.js';
import { help, refuse } from '../context/flags.js';
import { CHILD_FLAG, type PoolProcess, ProcessPool, stoppedByParent } from './process-pool.js';

interface Flags {
  readonly processes?: string;
  /** Started by another process with `--processes`. */
  readonly child?: true;
}

const EXIT_WITHIN_MS = 1_000;

export function defineWorkerCommand(command: Command, context: CliContext): void {
  command
    .option('--processes <number>', 'share the accounts out among this many processes on this host')
    .addOption(new Option(CHILD_FLAG).hideHelp())
    .addHelpText(
      'after',
      help(
        `Sends at most one payout a second, and follows each until it is final. Several workers may run for one account: one sends, the
others take over when it ends. Workers with the same PAYOUT_ACCOUNTS_FILE share its accounts out. --processes starts several on this
host. The second serves its health at HEALTH_PORT + 1, and so on.

Environment: REDIS_URL, GATEWAY_PLATFORM_ID, GATEWAY_BASE_URL, GATEWAY_SECRET_KEY (or GATEWAY_SECRET_KEY_FILE), SEND_JOURNAL_DIR;
PAYOUT_ACCOUNTS_FILE; PAYOUT_KEYS_FILE; PAYOUT_POLICY_FILE. docs/configuration.md lists all; \`payouts doctor\` checks them.

SIGTERM and SIGINT begin no new send, wait for the response to the current one, then exit with 0. A second signal exits at once; a
send without its response then becomes unknown. SIGHUP reads PAYOUT_KEYS_FILE and the policies again.`,
        'payouts worker',
        'PAYOUT_ACCOUNTS_FILE=/run/secrets/accounts.json HEALTH_HOST=0.0.0.0 payouts worker',
        'PAYOUT_ACCOUNTS_FILE=/run/secrets/accounts.json payouts worker --processes 4',
      ),
    )
    .action(async (flags: Flags) => {
      const processes = parseProcesses(flags.processes ?? '1');
      const stoppedBy = flags.child === undefined ? [] : [stoppedByParent()];
      await (processes === 1 ? runWorker(context, stoppedBy) : runProcesses(context, processes));
    });
}

async function runWorker({ environment, stopSignal }: CliContext, stoppedBy: readonly AbortSignal[]): Promise<void> {
  const { settings: all, accounts, receiptSigner } = await readWorkerSetup(environment);
  const { stuckAfterMs, healthHost, healthPort, eventsHost, eventsPort, logLevel, ...settings } = {
    ...all,
    accountsFile: undefined,
    gatewayFile: undefined,
  };
  const logger = createLogger(logLevel);
  for (const { variable, meant } of findMisspelt(environment)) {
    logger.warn({ variable }, `this variable is not known and has no effect: did you mean ${meant}?`);
  }
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
  const health = await startHealthServer({ host: healthHost, port: healthPort, metrics, accounts: accountsOf, logger });
  logger.info({ url: health.url }, 'serving /healthz, /readyz and /metrics');
  let events: EventServer | undefined;
  try {
    if (eventsPort !== undefined) {
      const { registry } = metrics;
      events = await startEventServer({ host: eventsHost, port: eventsPort, registry, accounts: accountsOf, logger });
      logger.info({ at: events.url }, 'taking the webhooks of the gateway');
    }
    worker = await createPayoutWorker({ ...settings, accounts, receiptSigner, observe: metrics.observe, logger }, stop);
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
    await events?.close();
    await health.close();
    exitDespiteTimers();
  }
}

/** If Redis is unavailable at the end, BullMQ leaves timers that keep the process alive. */
function exitDespiteTimers(): void {
  setTimeout(exitNow, EXIT_WITHIN_MS).unref();
}

const PROCESSES_MAX = 64;
const HIGHEST_PORT = 65_535;
const FLAG = '--processes';

const RULE = `must be a whole number from 1 to ${PROCESSES_MAX}`;
const schema = z.object({
  [FLAG]: z.string().refine((text) => /^[1-9]\d?$/.test(text) && Number(text) <= PROCESSES_MAX, RULE),
});

function parseProcesses(text: string): number {
  return Number(parseInput(schema, { [FLAG]: text })[FLAG]);
}

/**
 * @throws InvalidInputError if there are too few accounts to share
 * @throws CommandFailedError if a process did not end in good order
 */
async function runProcesses({ environment, stopSignal }: CliContext, count: number): Promise<void> {
  const setup = await readWorkerSetup(environment);
  requireShareable(setup, count);
  const { healthPort, logLevel } = setup.settings;
  const logger = createLogger(logLevel);
  const start = (index: number): PoolProcess =>
    // The running program: works in a clone, an installed package and a global one.
    spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'worker', CHILD_FLAG], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: {
        ...environment,
        HEALTH_PORT: String(healthPort === 0 ? 0 : healthPort + index),
        // One address at the gateway is for all accounts, whichever process sends for them.
        ...(index > 0 && { GATEWAY_EVENTS_PORT: '' }),
      },
    });
  const pool = new ProcessPool(count, start, systemClock, logger);
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
    refuse(FLAG, message);
  }
  const lastPort = healthPort + count - 1;
  if (healthPort > 0 && lastPort > HIGHEST_PORT) {
    const message = `must leave a port for each of ${count} processes: the last would have ${lastPort}, above ${HIGHEST_PORT}`;
    throw new InvalidConfigError([{ field: 'HEALTH_PORT', message }]);
  }
}

type WorkerSetup = Awaited<ReturnType<typeof readWorkerSetup>>;

/** @throws InvalidConfigError with every problem, without secrets */
async function readWorkerSetup(environment: Environment) {
  const settings = readSettings(
    {
      ...WORKER_SETTINGS,
      ...WORKER_COMMAND_SETTINGS,
      keysFile: CONTROL_SETTINGS.keysFile,
    },
    environment,
  );
  const accounts = await readWorkerAccounts(environment);
  if (settings.eventsPort !== undefined) requireSender(accounts);
  const receiptSigner = readWorkerSigner(environment);
  return { settings, accounts, receiptSigner };
}

/** @throws InvalidConfigError if the gateway of no account sends webhooks */
function requireSender(accounts: readonly AccountOptions[]): void {
  if (accounts.some(({ api, gateway }) => (gateway === undefined ? api === 'v2' : gateway.readEvent !== undefined)))
    return;
  const message =
    'must not be set: no account has GATEWAY_API=v2, or a gateway of its own with readEvent, so no webhook can come';
  throw new InvalidConfigError([{ field: WORKER_COMMAND_SETTINGS.eventsPort.variable, message }]);
}
