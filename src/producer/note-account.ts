import { listAccount, wasEverServed } from '../ledger/served-accounts.js';
import type { LedgerAccess } from '../queues/open-ledger.js';

/**
 * Tells the workers on this Redis that payouts are accepted for the account, and warns if none ever served it: a mistyped
 * account, or another Redis, would keep its payouts for good. Never throws.
 */
export async function noteAccount({
  ledger: { connection },
  logger,
}: Pick<LedgerAccess, 'ledger' | 'logger'>): Promise<void> {
  const { platformId } = connection;
  const note = async (what: string, work: () => Promise<void>): Promise<void> =>
    work().catch((error: unknown) => {
      logger.debug({ platformId, error: (error as Error).message }, what);
    });
  await Promise.all([
    note('cannot tell the workers of the account', async () => listAccount(connection)),
    note('cannot see whether a worker serves the account', async () => {
      if (!(await wasEverServed(connection))) logger.warn({ platformId }, describeUnserved(platformId));
    }),
  ]);
}

function describeUnserved(platformId: number): string {
  return `no worker has ever served account ${platformId} on this Redis, so its payouts wait: start one, or check the account's number and REDIS_URL`;
}
