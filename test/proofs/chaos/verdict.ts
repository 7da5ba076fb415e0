import type { Payout } from '../../../src/ledger/payout.js';
import { UNSIGNED } from '../signing.js';
import { paymentOf } from './plan.js';
import type { GatewayBook } from './processes.js';

/** By payoutId as the ledger has them in the end; every one that the application asked for. */
export type Payouts = ReadonlyMap<string, Payout | undefined>;

export async function readPayouts(
  payoutIds: readonly string[],
  get: (payoutId: string) => Promise<Payout | undefined>,
): Promise<Payouts> {
  const payouts = new Map<string, Payout | undefined>();
  for (const payoutId of payoutIds) payouts.set(payoutId, await get(payoutId));
  return payouts;
}

export function countStates(payouts: Payouts): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { state = 'missing' } of [...payouts.values()].map((payout): { state?: string } => payout ?? {})) {
    counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

/** What was broken of the three promises, as the gateway saw it. */
export function findBroken({ stats, arrivals, payments }: GatewayBook, payouts: Payouts, minGapMs: number): string[] {
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
    const paid = payments.find(({ addressTo }) => addressTo === paymentOf(payoutId).addressTo);
    const problem = findProblem(payout, paid?.txhash);
    if (problem !== undefined) broken.push(`LOST: ${payoutId} ${problem}`);
  }
  return broken;
}

function findProblem(payout: Payout | undefined, txhash: string | undefined): string | undefined {
  switch (payout?.state) {
    case 'completed':
      if (txhash === undefined) return 'is completed, but the gateway has paid nothing';
      return payout.txhash === txhash ? undefined : 'is completed with the hash of another payment';
    case 'unknown':
      return undefined;
    case 'rejected':
      return txhash === undefined ? undefined : 'is rejected, but the gateway has paid it';
    default:
      return `is ${payout?.state ?? 'not in the ledger'} in the end, which nothing in this round explains`;
  }
}

/**
 * What was broken of what a round with keys promises beyond the others: only what was signed is paid, as it was signed, and
 * every payout that was signed ends paid, with a receipt.
 * @param unsigned - what nobody signed, in the end; a Redis that came back older may have forgotten it
 */
export function findBrokenSigning(
  { payments, stats }: GatewayBook,
  payouts: Payouts,
  unsigned: Payout | undefined,
): string[] {
  // An account that was blocked for its pace pays nothing more, which is reported already.
  if (stats.blocked) return [];
  const broken: string[] = [];
  const signed = new Map([...payouts.keys()].map(paymentOf).map(({ addressTo, amount }) => [addressTo, amount]));
  for (const { addressTo, amount, paymentId } of payments) {
    if (signed.get(addressTo) === amount && paymentId === 1) continue;
    broken.push(`UNSIGNED: ${amount} of currency ${paymentId} to ${addressTo} was paid, which nobody signed`);
  }
  for (const [payoutId, payout] of payouts) {
    const { state, held, verified } = payout ?? {};
    if (state === 'completed' && verified === true) continue;
    broken.push(`NOT PAID: ${payoutId} is ${String(state)} in the end, without a receipt; ${held?.message ?? ''}`);
  }
  if (unsigned !== undefined && unsigned.state !== 'held') {
    broken.push(`UNSIGNED: ${UNSIGNED.payoutId}, which nobody signed, is ${unsigned.state}`);
  }
  return broken;
}

/**
 * What the workers held although nothing in the round explains it.
 * @param unsigned - payouts that nobody signed, or that were to be sent again without a signed act
 */
export function findUnexplainedHolds(logs: readonly string[], unsigned: ReadonlySet<string>): string[] {
  const lines = logs.flatMap((log) => log.split('\n')).filter((line) => line.includes('"msg":"payout held'));
  return lines.flatMap((line) => {
    const { payoutId, reason } = JSON.parse(line) as { readonly payoutId: string; readonly reason: string };
    const isExplained = unsigned.has(payoutId) && /^It is not signed|there is no signed act/.test(reason);
    return isExplained ? [] : [`HELD without a cause: ${payoutId}: ${reason}`];
  });
}
