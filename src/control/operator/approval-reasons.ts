import { ask, type LedgerConnection } from '../../ledger/ledger-connection.js';
import { pairsToRecord } from '../../ledger/payout-record.js';

/** The newest acts are searched; the ledger keeps about 10,000. */
const SEARCHED_ACTS = 3_000;
const ACTS_PER_READ = 1_000;

/**
 * The approvers' unsigned reasons, by {@link toReasonKey}.
 * @param since - when the oldest approval was signed, wall clock, ms: none was stored before
 */
export async function readApprovalReasons(
  { redis, keys }: LedgerConnection,
  payoutId: string,
  since: number,
): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>();
  // The signer's clock may be ahead of that of Redis.
  const end = String(Math.max(0, since - CLOCK_MARGIN_MS));
  let place = '+';
  for (let searched = 0; searched < SEARCHED_ACTS; searched += ACTS_PER_READ) {
    const acts = await ask(redis.xrevrange(keys.activity, place, end, 'COUNT', ACTS_PER_READ));
    for (const [, pairs] of acts) {
      const act = pairsToRecord(pairs);
      if (act['type'] !== 'approval' || act['payoutId'] !== payoutId || !act['reason']) continue;
      const key = toReasonKey(act['by'] ?? '', Number(act['at']));
      if (!reasons.has(key)) reasons.set(key, act['reason']);
    }
    const last = acts.at(-1)?.[0];
    if (last === undefined || acts.length < ACTS_PER_READ) break;
    place = `(${last}`;
  }
  return reasons;
}

const CLOCK_MARGIN_MS = 10 * 60_000;

/** @param at - when it was signed, ms */
export function toReasonKey(by: string, at: number): string {
  return `${by} ${at}`;
}
