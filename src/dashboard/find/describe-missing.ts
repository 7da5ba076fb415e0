import { payoutIdField } from '../../fields.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readAudited } from '../../ledger/read-audited.js';
import { forAccount } from '../../operator/next-steps.js';

/** Why there is no page of a payout: it never was, or retention removed it. @throws RedisUnavailableError */
export async function describeMissing(connection: LedgerConnection, payoutId: string): Promise<string> {
  const [record] = payoutIdField.safeParse(payoutId).success ? await readAudited(connection, [payoutId]) : [];
  if (record?.kind !== 'removed') return `Payout ${payoutId} not found.`;
  const command = forAccount(`payouts get ${payoutId}`, connection.platformId);
  return `Payout ${payoutId} was ${record.state}, and PAYOUT_RETENTION_DAYS removed it from Redis. With the worker's PAYOUT_ARCHIVE_DIR, on its host, this shows it: ${command}`;
}
