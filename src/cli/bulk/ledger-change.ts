import type { ActSigner } from '../../control/approvals/act-signer.js';
import { SignedDecisions } from '../../control/operator/sign-decision.js';
import { type Actor, type Payout, toLine } from '../../ledger/payout.js';
import { PAYOUTS_PER_CHANGE } from '../../ledger/payout-ledger.js';
import type { PayoutState } from '../../ledger/states.js';
import { changeManyPayouts } from '../../operator/change-payouts.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import type { BulkChange } from './run-bulk.js';
import type { ChosenPayout } from './survey-payouts.js';

/**
 * The scripts are short, so Redis can serve the sender between them.
 * @param signer - signs each payout that will be sent again
 */
export function toLedgerChange(
  account: LedgerAccess,
  to: PayoutState,
  actor: Actor,
  signer?: ActSigner,
): Pick<BulkChange, 'atOnce' | 'everyMs' | 'apply' | 'wasChanged'> {
  return {
    // One at a time: a failed step must not lose signatures that needed a touch.
    atOnce: signer?.isInteractive === true ? 1 : PAYOUTS_PER_CHANGE,
    everyMs: 'rest',
    apply: async (payouts) => changeByState(account, payouts, to, actor, signer),
    wasChanged: (payout) => wasSentAgainBy(actor, payout),
  };
}

async function changeByState(
  account: LedgerAccess,
  payouts: readonly ChosenPayout[],
  to: PayoutState,
  actor: Actor,
  signer: ActSigner | undefined,
): Promise<(Error | undefined)[]> {
  const errors: (Error | undefined)[] = [];
  const decisions = signer && new SignedDecisions(signer);
  for (const from of new Set(payouts.map(({ state }) => state))) {
    const group = payouts.filter(({ state }) => state === from);
    errors.push(...(await changeManyPayouts(account, { from, to, payouts: group }, actor, decisions)));
  }
  return errors;
}

/** Compares actor, state and reason. */
function wasSentAgainBy({ by, reason }: Actor, { state, history }: Payout): boolean {
  return history.some(
    (entry) =>
      entry.to === 'queued' && entry.from === state && entry.by === toLine(by) && entry.reason === toLine(reason),
  );
}
