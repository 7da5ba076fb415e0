import { pipelined, type LedgerConnection } from './ledger-connection.js';
import type { Payout } from './payout.js';
import { parseRecord, type PayoutRecord } from './payout-record.js';

/** One payout with its history, or undefined. */
export async function readPayout(connection: LedgerConnection, payoutId: string): Promise<Payout | undefined> {
  const [payout] = await readPayouts(connection, [payoutId]);
  return payout;
}

/** Several payouts in one round trip, in the order asked for; those that do not exist are left out. */
export async function readPayouts(connection: LedgerConnection, payoutIds: readonly string[]): Promise<Payout[]> {
  const replies = await pipelined(connection, (pipeline) => {
    for (const payoutId of payoutIds) pipeline.hgetall(connection.keys.payout(payoutId));
  });
  return payoutIds.flatMap((payoutId, index) => {
    const record = replies[index] as PayoutRecord;
    return record['state'] === undefined ? [] : [parseRecord(payoutId, record)];
  });
}
