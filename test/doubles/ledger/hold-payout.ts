import { parseHeldField, toHeldField, type Hold } from '../../../src/ledger/payout.js';
import type { LedgerSnapshot } from './ledger-snapshot.js';

/** As hold-payout.lua. @returns false when it is not queued any more, or at another attempt */
export function holdPayout(all: LedgerSnapshot, payoutId: string, attempt: number | undefined, hold: Hold): boolean {
  const payout = all.book.get(payoutId)?.payout;
  if (payout === undefined || (attempt !== undefined && payout.attempt !== attempt)) return false;
  const held = parseHeldField(toHeldField(hold));
  if (payout.state === 'held') {
    all.book.alter(payoutId, { held });
    return true;
  }
  if (payout.state !== 'queued') return false;
  all.book.move(payoutId, 'held', { reason: held.message, set: { held } });
  return true;
}
