import type { Command } from 'commander';
import { readConfig, readSettings } from '../../config.js';
import { createLogger } from '../../create-logger.js';
import { NotifyStatus, startNotifyServer } from '../../notifications/notify-server.js';
import { runNotifier } from '../../notifications/start-notifier.js';
import { NOTIFY_SETTINGS } from '../../settings.js';
import type { CliContext } from '../context/cli-context.js';
import { outliveHangup } from '../context/stop-signal.js';
import { readPlatformIds } from '../context/worker-accounts.js';

const HELP_AFTER = `
Posts chosen events to a webhook, signed, each at least once and in their order; what fails is tried again. It runs beside
the worker as a process of its own, and needs no key of the gateway. docs/notifications.md has the format, how to verify the
signature, and recipes for Slack and Telegram.

Environment:
  REDIS_URL, GATEWAY_PLATFORM_ID or PAYOUT_ACCOUNTS_FILE, NOTIFY_URL (or NOTIFY_URL_FILE), NOTIFY_SECRET (or
  NOTIFY_SECRET_FILE), NOTIFY_EVENTS, NOTIFY_FORMAT, NOTIFY_TIMEOUT_MS, HEALTH_HOST, NOTIFY_HEALTH_PORT, LOG_LEVEL

Examples:
  NOTIFY_URL=https://hooks.example/payouts NOTIFY_SECRET_FILE=./secrets/notify-secret.txt payouts notify
  NOTIFY_FORMAT=slack NOTIFY_URL_FILE=./secrets/slack-url.txt NOTIFY_EVENTS=paused,unknown payouts notify
`;

/** Defines `payouts notify`, which runs until SIGINT or SIGTERM. */
export function defineNotifyCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER).action(async () => {
    const { environment } = context;
    const settings = readSettings(NOTIFY_SETTINGS, environment);
    const config = readConfig(['REDIS_URL', 'HEALTH_HOST', 'LOG_LEVEL'], environment);
    const platformIds = readPlatformIds(environment);
    const logger = createLogger(config.LOG_LEVEL);
    const stop = context.stopSignal();
    outliveHangup();
    const status = new NotifyStatus();
    const server = await startNotifyServer(status, config.HEALTH_HOST, settings.notifyHealthPort);
    logger.info({ platformIds, url: server.url }, 'notifications start; serving /healthz, /readyz and /metrics');
    try {
      await runNotifier(
        {
          redisUrl: config.REDIS_URL,
          platformIds,
          receiver: { url: settings.notifyUrl, format: settings.notifyFormat, secret: settings.notifySecret },
          events: settings.notifyEvents,
          timeoutMs: settings.notifyTimeoutMs,
          observe: (platformId) => status.observe(platformId),
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
