import type { Command } from 'commander';
import { readConfig } from '../config.js';
import { untilAborted } from '../clock.js';
import { createLogger } from '../logger.js';
import { createPayoutWorker } from '../worker/payout-worker.js';
import type { CliContext } from './cli-context.js';
import { readWorkerAccounts } from './worker-accounts.js';

const HELP = `
Sends the queued payouts of the account, at most one a second, and follows each until it is completed or failed.
Several of them may run for one account: one sends, the others stand by and take over when it ends.

SIGTERM or SIGINT: no new send begins, the one under way gets its answer, then exit 0. A second signal ends at once;
a send that is under way then becomes unknown.

The environment says what it needs: REDIS_URL, GATEWAY_PLATFORM_ID, GATEWAY_BASE_URL, GATEWAY_SECRET_KEY (or
GATEWAY_SECRET_KEY_FILE), SEND_JOURNAL_DIR, and PAYOUT_ACCOUNTS_FILE for several accounts. docs/configuration.md
explains all of them; \`payouts doctor\` checks them.`;

export function registerWorkerCommand(program: Command, context: CliContext): void {
  program
    .command('worker')
    .description('sign and send payouts, and follow them to the end')
    .addHelpText('after', HELP)
    .action(async () => {
      await runWorker(context);
    });
}

async function runWorker({ environment, stopSignal }: CliContext): Promise<void> {
  const names = ['REDIS_URL', 'SEND_JOURNAL_DIR', 'ALLOW_VOLATILE_REDIS', 'LOG_LEVEL'] as const;
  const config = readConfig(names, environment);
  const accounts = readWorkerAccounts(environment);
  const logger = createLogger(config.LOG_LEVEL);
  const stop = stopSignal();
  const worker = await createPayoutWorker(
    {
      redisUrl: config.REDIS_URL,
      accounts,
      journalDir: config.SEND_JOURNAL_DIR,
      allowVolatileRedis: config.ALLOW_VOLATILE_REDIS,
      logger,
    },
    stop,
  );
  logger.info({ platformIds: accounts.map(({ platformId }) => platformId) }, 'worker started');
  await untilAborted(stop);
  logger.info({}, 'ending after the answer under way; a second signal ends at once');
  await worker.stop();
  logger.info({}, 'worker ended');
}
