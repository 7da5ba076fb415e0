import { openLedger, type LedgerAccess } from '../../queues/open-ledger.js';
import { readAccountOptions } from './account-options.js';
import type { CliContext } from './cli-context.js';

/**
 * Runs `use` with the ledger of the environment's account, and closes it on every way out.
 * @throws InvalidConfigError when the environment is not usable; what `use` throws
 */
export async function withAccount<Result>(
  context: CliContext,
  use: (account: LedgerAccess) => Promise<Result>,
): Promise<Result> {
  const account = openLedger(readAccountOptions(context));
  try {
    return await use(account);
  } finally {
    await account.close();
  }
}
