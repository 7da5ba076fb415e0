import { InvalidConfigError } from '../base/errors.js';
import { openLedger } from '../queues/open-ledger.js';
import { AccountNotifier, type NotifierOptions } from './account-notifier.js';
import type { Receiver } from './post-request.js';

/**
 * Posts the accounts' events until it is stopped. A failing receiver of one account does not delay the others.
 * @throws InvalidConfigError if the options contradict each other
 */
export async function runNotifier(
  redisUrl: string,
  platformIds: readonly number[],
  options: NotifierOptions,
  stop: AbortSignal,
): Promise<void> {
  const { receiver, logger } = options;
  checkReceiver(receiver);
  const accounts = platformIds.map((platformId) => openLedger({ redisUrl, platformId, logger }));
  try {
    const notifiers = accounts.map(({ ledger }) => new AccountNotifier(ledger, options, stop));
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
