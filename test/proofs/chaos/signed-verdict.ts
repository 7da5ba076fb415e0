import type { Payout } from '../../../src/ledger/payout.js';
import { UNSIGNED } from '../signing.js';
import { amountOf, addressOf } from './account.js';
import type { GatewayBook } from './gateway.js';

/**
 * What a round with keys promises beyond the others: only what was signed is paid, as it was signed, and every payout that
 * was signed ends paid, with a receipt.
 * @param unsigned - what nobody signed, as the ledger has it in the end; a Redis that came back older may have forgotten it
 * @returns what was broken
 */
export function findBrokenSigning(
  { payments, stats }: GatewayBook,
  payouts: ReadonlyMap<string, Payout | undefined>,
  unsigned: Payout | undefined,
): string[] {
  // An account that was blocked for its pace pays nothing more, which is reported already.
  if (stats.blocked) return [];
  const broken: string[] = [];
  const signed = new Map([...payouts.keys()].map((payoutId) => [addressOf(payoutId), amountOf(payoutId)]));
  for (const { addressTo, amount, paymentId } of payments) {
    if (signed.get(addressTo) === amount && paymentId === 1) continue;
    broken.push(`UNSIGNED: ${amount} of currency ${paymentId} to ${addressTo} was paid, which nobody signed`);
  }
  for (const [payoutId, payout] of payouts) {
    const problem = findProblem(payout);
    if (problem !== undefined) broken.push(`NOT PAID: ${payoutId} ${problem}`);
  }
  if (unsigned !== undefined && unsigned.state !== 'held') {
    broken.push(`UNSIGNED: ${UNSIGNED.payoutId}, which nobody signed, is ${unsigned.state}`);
  }
  return broken;
}

/**
 * What the workers held although nothing in the round explains it.
 * @param logs - of the workers
 * @param unsigned - payouts that nobody signed, or that were to be sent again without a signed act
 */
export function findUnexplainedHolds(logs: readonly string[], unsigned: ReadonlySet<string>): string[] {
  const lines = logs.flatMap((log) => log.split('\n')).filter((line) => line.includes('"msg":"payout held'));
  return lines.flatMap((line) => {
    const { payoutId, reason } = JSON.parse(line) as { readonly payoutId: string; readonly reason: string };
    const isExplained = unsigned.has(payoutId) && UNSIGNED_HOLD.test(reason);
    return isExplained ? [] : [`HELD without a cause: ${payoutId}: ${reason}`];
  });
}

const UNSIGNED_HOLD = /^It is not signed|there is no signed act/;

/** Every other state is one that no round explains, with keys or without. */
function findProblem(payout: Payout | undefined): string | undefined {
  switch (payout?.state) {
    case 'unknown':
    case 'rejected':
      return `is ${payout.state} in the end, which an operator could have decided`;
    case 'held':
      return `is held in the end: ${String(payout.held?.message)}`;
    case 'completed':
      return payout.verified === true ? undefined : 'is completed, and no worker signed that';
    default:
      return undefined;
  }
}
