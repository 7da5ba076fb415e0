import type { Payout } from '../../../src/ledger/payout.js';
import { addressOf } from './account.js';
import type { GatewayBook } from './gateway.js';

/**
 * Holds a round against the three promises, as the gateway saw it.
 * @param payouts - by payoutId as the ledger has them in the end; every one that the application asked for
 * @returns what was broken
 */
export function findBroken(
  { stats, arrivals, payments }: GatewayBook,
  payouts: ReadonlyMap<string, Payout | undefined>,
  minGapMs: number,
): string[] {
  const broken: string[] = [];
  for (const { gapMs, addressTo } of arrivals) {
    if (gapMs !== null && gapMs < minGapMs) {
      broken.push(`TOO FAST: ${gapMs.toFixed(2)} ms after the withdraw before it, to ${String(addressTo)}`);
    }
  }
  if (stats.blocked && broken.length === 0) broken.push(`blocked: ${String(stats.blockedReason)}`);
  for (const [addressTo, count] of Object.entries(stats.paymentsPerAddress)) {
    if (count > 1) broken.push(`TWICE: ${addressTo} was paid ${count} times`);
  }
  // An account that was blocked for its pace cannot drain.
  if (stats.blocked) return broken;
  for (const [payoutId, payout] of payouts) {
    const paid = payments.filter(({ addressTo }) => addressTo === addressOf(payoutId));
    const problem = findProblem(payout, paid.at(0)?.txhash);
    if (problem !== undefined) broken.push(`LOST: ${payoutId} ${problem}`);
  }
  return broken;
}

/** @param txhash - of the gateway's payment, if it made one */
function findProblem(payout: Payout | undefined, txhash: string | undefined): string | undefined {
  switch (payout?.state) {
    case undefined:
      return 'is not in the ledger';
    case 'completed':
      if (txhash === undefined) return 'is completed, but the gateway has paid nothing';
      return payout.txhash === txhash ? undefined : 'is completed with the hash of another payment';
    case 'unknown':
      return undefined;
    case 'rejected':
      return txhash === undefined ? undefined : 'is rejected, but the gateway has paid it';
    default:
      return `is ${payout?.state ?? 'gone'} in the end, which nothing in this round explains`;
  }
}
