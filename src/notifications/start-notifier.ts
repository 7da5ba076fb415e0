import type { Registry } from 'prom-client';
import { systemClock } from '../base/clock.js';
import { InvalidConfigError } from '../base/errors.js';
import { exportAccounts } from '../operator/account-gauges.js';
import { openLedger } from '../queues/open-ledger.js';
import { AccountNotifier, type NotifierOptions } from './account-notifier.js';
import type { Receiver } from './post-request.js';
import { RetryTurns } from './retry-turns.js';

/**
 * Posts the accounts' events until it is stopped. A failing receiver of one account does not delay the others.
 * @param options.registry - exports the accounts' gauges, beside their workers
 * @throws InvalidConfigError if the options contradict each other
 */
export async function runNotifier(
  redisUrl: string,
  platformIds: readonly number[],
  options: NotifierOptions & { readonly registry: Registry; readonly stuckAfterMs: number },
  stop: AbortSignal,
): Promise<void> {
  const { receiver, logger, registry, stuckAfterMs } = options;
  checkReceiver(receiver);
  const accounts = platformIds.map((platformId) => openLedger({ redisUrl, platformId, logger }));
  exportAccounts(registry, 'notify', () => accounts, stuckAfterMs);
  try {
    const turns = new RetryTurns(systemClock);
    const notifiers = accounts.map(({ ledger }) => new AccountNotifier(ledger, options, stop, turns));
    await Promise.all(notifiers.map(async (notifier) => notifier.run()));
  } finally {
    await Promise.all(accounts.map(async (account) => account.close()));
  }
}

function checkReceiver({ url, format, secret }: Receiver): void {
  if (format === 'json' && secret === undefined) {
    const message = 'is required for NOTIFY_FORMAT json (or NOTIFY_SECRET_FILE, a file that holds it)';
    throw new InvalidConfigError([{ field: 'NOTIFY_SECRET', message }]);
  }
  if (format === 'telegram' && !new URL(url).searchParams.has('chat_id')) {
    throw new InvalidConfigError([
      { field: 'NOTIFY_URL', message: 'must end with ?chat_id=… for NOTIFY_FORMAT telegram' },
    ]);
  }
}
