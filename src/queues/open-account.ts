import type { Confirmation } from '../ledger/confirm-write.js';
import { createAccountQueues, type AccountQueues } from './account-queues.js';
import { type AccountConnectionOptions, type LedgerAccess, openLedger } from './open-ledger.js';
import type { QueuesOptions } from './payout-queues.js';

export type AccountAccess = LedgerAccess & AccountQueues;

/**
 * Opens an account with its queues, for dashboard, doctor and worker. If queues are needed only sometimes, see {@link
 * openLedger}.
 */
export function openAccount(
  options: AccountConnectionOptions & QueuesOptions,
  confirmation?: Confirmation,
): AccountAccess {
  const account = openLedger(options, confirmation);
  const { ledger, logger } = account;
  const opened = createAccountQueues(ledger, { ...options, logger });
  return {
    ...account,
    ...opened,
    openQueues: async () => Promise.resolve(opened),
    close: async () => {
      await opened.queues.close();
      await account.close();
    },
  };
}
