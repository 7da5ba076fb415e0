import type { Clock } from '../clock.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Logger } from '../logger.js';
import { createAccountQueues, type AccountQueues, type AccountQueuesOptions } from './account-queues.js';
import { openLedger, type OpenLedgerOptions } from './open-ledger.js';

/** What a process of this package decides besides: how it uses the account. */
export interface OpenAccountOptions
  extends OpenLedgerOptions, Pick<AccountQueuesOptions, 'readOnly' | 'firstPollAfterMs'> {}

/** The account's ledger and queues, on one connection. */
export interface AccountAccess extends AccountQueues {
  readonly ledger: PayoutLedger;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends what was opened for it; never waits for a Redis that is unavailable. */
  close(): Promise<void>;
}

/**
 * Opens an account with its queues, for dashboard, doctor and worker; where the queues are needed at times only, see
 * {@link openLedger}.
 * @throws InvalidConfigError when the options cannot be used
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
