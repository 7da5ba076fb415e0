import type { Command } from 'commander';
import { readAudiences } from '../context/keys.js';
import { untilAborted } from '../../base/clock.js';
import { readConfig } from '../../base/config.js';
import type { DashboardServer } from '../../dashboard/index.js';
import { InvalidConfigError } from '../../base/errors.js';
import { type CliContext, outliveHangup } from '../context/cli-context.js';
import { readPlatformIds, readPolicyFiles } from '../context/accounts.js';
import { help, readVariable } from '../context/flags.js';

const VARIABLES = [
  'REDIS_URL',
  'REDIS_REPLICAS',
  'DASHBOARD_HOST',
  'DASHBOARD_PORT',
  'DASHBOARD_USER',
  'DASHBOARD_PASSWORD',
  'DASHBOARD_TRUSTED_PROXIES',
  'PAYOUT_DASHBOARD_PATH',
  'PAYOUT_ENVIRONMENT',
  'PAYOUT_EXPLORERS',
  'STUCK_AFTER_MS',
  'PAYOUT_KEYS_FILE',
] as const;

/** Errors name the variable, which the operator can change. */
const VARIABLE_OF_OPTION: Readonly<Record<string, string>> = {
  user: 'DASHBOARD_USER',
  password: 'DASHBOARD_PASSWORD',
  keysFile: 'PAYOUT_KEYS_FILE',
  policyFile: 'PAYOUT_POLICY_FILE',
  publicPath: 'PAYOUT_DASHBOARD_PATH',
};

export function defineDashboardCommand(command: Command, context: CliContext): void {
  command
    .addHelpText(
      'after',
      help(
        `Payouts are under /payouts, queues under /board, several accounts under /accounts. It is read-only: pages show the command to run. The
one write is POST /approvals, with a keyring (docs/dashboard.md). Put a TLS proxy in front of it on a network that you do not control.

Environment: REDIS_URL, GATEWAY_PLATFORM_ID or PAYOUT_ACCOUNTS_FILE, DASHBOARD_HOST (127.0.0.1), DASHBOARD_PORT (3000),
DASHBOARD_USER (payouts), DASHBOARD_PASSWORD or DASHBOARD_PASSWORD_FILE (required on an address that other machines can reach),
DASHBOARD_TRUSTED_PROXIES, PAYOUT_DASHBOARD_PATH, PAYOUT_ENVIRONMENT, PAYOUT_EXPLORERS; PAYOUT_KEYS_FILE with PAYOUT_AUDIENCE or GATEWAY_BASE_URL; PAYOUT_POLICY_FILE.`,
        'payouts dashboard',
        'DASHBOARD_HOST=0.0.0.0 DASHBOARD_PASSWORD_FILE=/run/secrets/dashboard payouts dashboard',
      ),
    )
    .action(async () => {
      const stop = context.stopSignal();
      outliveHangup();
      const dashboard = await start(context);
      context.writeError(`Dashboard on ${dashboard.url}\n`);
      await untilAborted(stop);
      await dashboard.close();
    });
}

async function start({ environment, logger }: CliContext): Promise<DashboardServer> {
  const file = readVariable('PAYOUT_ACCOUNTS_FILE', environment);
  // Read together to report every problem at once.
  const config = readConfig(file === undefined ? [...VARIABLES, 'GATEWAY_PLATFORM_ID'] : VARIABLES, environment);
  // Imported late: other commands start faster.
  const { startDashboard } = await import('../../dashboard/index.js');
  try {
    return await startDashboard({
      platformId: readPlatformIds(environment),
      redisUrl: config.REDIS_URL,
      stuckAfterMs: config.STUCK_AFTER_MS,
      host: config.DASHBOARD_HOST,
      port: config.DASHBOARD_PORT,
      user: config.DASHBOARD_USER,
      password: config.DASHBOARD_PASSWORD,
      trustedProxies: config.DASHBOARD_TRUSTED_PROXIES,
      publicPath: config.PAYOUT_DASHBOARD_PATH,
      environment: config.PAYOUT_ENVIRONMENT,
      explorers: config.PAYOUT_EXPLORERS,
      keysFile: config.PAYOUT_KEYS_FILE,
      audiences: config.PAYOUT_KEYS_FILE === undefined ? undefined : readAudiences(environment),
      policyFiles: readPolicyFiles(environment),
      redisReplicas: config.REDIS_REPLICAS,
      logger,
    });
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    throw new InvalidConfigError(
      error.problems.map(({ field, message }) => ({ field: VARIABLE_OF_OPTION[field] ?? field, message })),
    );
  }
}
