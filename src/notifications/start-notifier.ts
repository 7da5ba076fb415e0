import { InvalidConfigError } from '../base/errors.js';
import type { Payout } from '../ledger/payout.js';
import type { Logger } from '../base/logger.js';
import { openLedger } from '../queues/open-ledger.js';
import { AccountNotifier, type NotifierObserver } from './account-notifier.js';
import type { Receiver } from './post-request.js';
import { parseEventNames } from './notification.js';

interface NotifierOptions {
  readonly redisUrl: string;
  readonly platformIds: readonly number[];
  readonly receiver: Receiver;
  /** Sets `Payout.verified`: whether the payout's state is signed. @defaultValue unset */
  readonly verify?: (platformId: number, payout: Payout) => Payout;
  /** As `NOTIFY_EVENTS`. */
  readonly events: string;
  readonly timeoutMs: number;
  readonly observe: (platformId: number) => NotifierObserver;
  readonly logger: Logger;
}

/**
 * Posts the accounts' events until it is stopped. A failing receiver of one account does not delay the others.
 * @throws InvalidConfigError if the options contradict each other
 */
export async function runNotifier(options: NotifierOptions, stop: AbortSignal): Promise<void> {
  const { redisUrl, platformIds, receiver, timeoutMs, observe, verify, logger } = options;
  checkReceiver(receiver);
  const events = parseEventNames(options.events);
  const accounts = platformIds.map((platformId) => openLedger({ redisUrl, platformId, logger }));
  try {
    await Promise.all(
      accounts.map(async ({ ledger }) => {
        const { platformId } = ledger.connection;
        const own = { ledger, observer: observe(platformId), logger: logger.child({ platformId }) };
        const verified = verify && { verify: (payout: Payout) => verify(platformId, payout) };
        await new AccountNotifier({ receiver, events, timeoutMs, ...own, ...verified }, stop).run();
      }),
    );
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
