import type { Command } from 'commander';
import { systemClock } from '../../base/clock.js';
import { readConfig, readSettings, type Environment } from '../../base/config.js';
import { createLogger } from '../../base/create-logger.js';
import { NotifyStatus, startNotifyServer } from '../../notifications/notify-server.js';
import { runNotifier } from '../../notifications/start-notifier.js';
import { NOTIFY_SETTINGS } from '../../base/settings.js';
import { ReceiptVerifier } from '../../control/intents/receipt.js';
import { type CliContext, outliveHangup } from '../context/cli-context.js';
import { hasKeyring, readAudiences, requireKeys } from '../context/keys.js';
import { readPlatformIds } from '../context/accounts.js';
import { help } from '../context/flags.js';

export function defineNotifyCommand(command: Command, context: CliContext): void {
  command
    .addHelpText(
      'after',
      help(
        `Each event is posted at least once, signed and in its order; what fails is tried again. It needs no key of the gateway.

Environment: REDIS_URL, GATEWAY_PLATFORM_ID or PAYOUT_ACCOUNTS_FILE, NOTIFY_URL, NOTIFY_SECRET (or NOTIFY_URL_FILE,
NOTIFY_SECRET_FILE), NOTIFY_EVENTS, NOTIFY_FORMAT, NOTIFY_HEALTH_PORT; PAYOUT_KEYS_FILE, which SIGHUP reads again: notifications then
say whether a final state is verified. docs/notifications.md has the format, and recipes for Slack and Telegram.`,
        'NOTIFY_URL=https://hooks.example/payouts NOTIFY_SECRET_FILE=./secrets/notify-secret.txt payouts notify',
        'NOTIFY_FORMAT=slack NOTIFY_URL_FILE=./secrets/slack-url.txt NOTIFY_EVENTS=paused,unknown payouts notify',
      ),
    )
    .action(async () => {
      const { environment } = context;
      const settings = readSettings(NOTIFY_SETTINGS, environment);
      const config = readConfig(['REDIS_URL', 'HEALTH_HOST', 'LOG_LEVEL', 'STUCK_AFTER_MS'], environment);
      const platformIds = readPlatformIds(environment);
      const logger = createLogger(config.LOG_LEVEL);
      const stop = context.stopSignal();
      let verifiers = openVerifiers(environment);
      outliveHangup(() => {
        try {
          verifiers = openVerifiers(environment);
        } catch (error) {
          logger.error(
            { error: (error as Error).message },
            'the keys could not be read again: those before still count',
          );
        }
      });
      const status = new NotifyStatus(systemClock);
      const server = await startNotifyServer(status, config.HEALTH_HOST, settings.notifyHealthPort);
      logger.info({ platformIds, url: server.url }, 'notifications start; serving /healthz, /readyz and /metrics');
      try {
        await runNotifier(
          config.REDIS_URL,
          platformIds,
          {
            receiver: { url: settings.notifyUrl, format: settings.notifyFormat, secret: settings.notifySecret },
            events: settings.notifyEvents,
            timeoutMs: settings.notifyTimeoutMs,
            dashboardUrl: settings.notifyDashboardUrl,
            verify: (platformId, payout) => verifiers.get(platformId)?.mark(payout) ?? payout,
            observe: (platformId) => status.observe(platformId),
            registry: status.registry,
            stuckAfterMs: config.STUCK_AFTER_MS,
            logger,
          },
          stop,
        );
      } finally {
        server.close();
      }
      logger.info({}, 'notifications stopped');
    });
}

function openVerifiers(environment: Environment): ReadonlyMap<number, ReceiptVerifier> {
  if (!hasKeyring(environment)) return new Map();
  const keyring = requireKeys(environment);
  return new Map(
    [...readAudiences(environment)].map(([platformId, audience]) => [
      platformId,
      new ReceiptVerifier(platformId, keyring.for(audience)),
    ]),
  );
}
