import { Cluster, type Redis } from 'ioredis';
import { KnownAttempts } from './known-attempts.js';
import { ask, pipelined, type LedgerConnection } from './ledger-connection.js';
import { type Payout, UnreadableRecordError } from './payout.js';
import { parseRecord, type PayoutRecord } from './payout-record.js';

export type AuditedRecord =
  | { readonly kind: 'payout'; readonly payout: Payout; readonly attempts: KnownAttempts }
  /** Retention removed it; its final state is left. */
  | { readonly kind: 'removed'; readonly state: string }
  | { readonly kind: 'unreadable'; readonly message: string }
  | { readonly kind: 'missing' };

/** Changes nothing. @returns in the order asked for */
export async function readAudited(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<AuditedRecord[]> {
  const { keys } = connection;
  const replies = await pipelined(connection, (pipeline) => {
    for (const payoutId of payoutIds) {
      pipeline.hgetall(keys.payout(payoutId)).hget(keys.removedBucket(payoutId), payoutId);
    }
  });
  return payoutIds.map((payoutId, index) => {
    const [record, removed] = replies.slice(2 * index, 2 * index + 2) as [PayoutRecord, string | null];
    return toAudited(payoutId, record, removed);
  });
}

function toAudited(payoutId: string, record: PayoutRecord, removed: string | null): AuditedRecord {
  if (Object.keys(record).length === 0)
    return removed === null ? { kind: 'missing' } : { kind: 'removed', state: removed };
  try {
    return { kind: 'payout', payout: parseRecord(payoutId, record), attempts: new KnownAttempts(record) };
  } catch (error) {
    if (!(error instanceof UnreadableRecordError)) throw error;
    return { kind: 'unreadable', message: error.message };
  }
}

/** Keys per call, which take Redis a millisecond. */
const SCAN_COUNT = 1_000;

/**
 * Every payoutId that has a record, even without an index entry; one may come twice. Also scans other keys of the same
 * Redis.
 */
export async function* scanPayoutIds({ redis, keys }: LedgerConnection): AsyncGenerator<string[]> {
  const prefix = keys.payout('');
  // Only a connected cluster knows its masters.
  if (redis instanceof Cluster) await ask(redis.exists(keys.ledger));
  const nodes: Redis[] = redis instanceof Cluster ? redis.nodes('master') : [redis];
  for (const node of nodes) {
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const [next, found]: [string, string[]] = await ask(
        node.scan(cursor, 'MATCH', `${escapeGlob(prefix)}*`, 'COUNT', SCAN_COUNT),
      );
      if (found.length > 0) yield found.map((key) => key.slice(prefix.length));
      cursor = next === '0' ? undefined : next;
    }
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, String.raw`\$&`);
}
