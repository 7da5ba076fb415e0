import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { pairsToRecord } from '../../ledger/payout-record.js';
import { parseHeadReason } from '../../ledger/reads/workers.js';

export interface HeadEvent {
  readonly hash: string;
  readonly at: number;
}

/** A head is published every ten minutes, and a send a second makes about three events. */
const SEARCHED_EVENTS = 20_000;
const PAGE = 1_000;

/** The newest head of each journal, by journalId, if the newest events have one. */
export async function readHeads({ redis, keys }: LedgerConnection): Promise<ReadonlyMap<string, HeadEvent>> {
  const heads = new Map<string, HeadEvent>();
  let end = '+';
  for (let searched = 0; searched < SEARCHED_EVENTS; searched += PAGE) {
    const entries = await ask(redis.xrevrange(keys.events, end, '-', 'COUNT', PAGE));
    for (const [, pairs] of entries) {
      const { type, to: hash = '', at = '', reason = '' } = pairsToRecord(pairs);
      const journalId = type === 'journal_head' ? parseHeadReason(reason) : undefined;
      if (journalId !== undefined && !heads.has(journalId)) heads.set(journalId, { hash, at: Number(at) });
    }
    const last = entries.at(-1)?.[0];
    if (last === undefined || entries.length < PAGE) break;
    end = `(${last}`;
  }
  return heads;
}
