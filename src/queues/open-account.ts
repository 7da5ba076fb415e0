import type { Clock } from '../base/clock.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Logger } from '../base/logger.js';
import { createAccountQueues, type AccountQueues, type AccountQueuesOptions } from './account-queues.js';
import { openLedger, type OpenLedgerOptions } from './open-ledger.js';

/** Choices of this package's own processes. */
interface OpenAccountOptions extends OpenLedgerOptions, Pick<AccountQueuesOptions, 'readOnly' | 'firstPollAfterMs'> {}

export interface AccountAccess extends AccountQueues {
  readonly ledger: PayoutLedger;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Never waits for an unavailable Redis. */
  close(): Promise<void>;
}

/**
 * Opens an account with its queues, for dashboard, doctor and worker. If queues are needed only sometimes, see {@link
 * openLedger}.
 */
export function openAccount(options: OpenAccountOptions): AccountAccess {
  const account = openLedger(options);
  const { ledger, clock, logger } = account;
  const { queues, relay } = createAccountQueues({ ...options, ledger, clock, logger });
  return {
    ledger,
    queues,
    relay,
    clock,
    logger,
    close: async () => {
      await queues.close();
      await account.close();
    },
  };
}
