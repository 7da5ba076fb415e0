import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { Actor } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import { sweepCancelledJobs } from '../../operator/change-payouts.js';
import { readChoice, type ChoiceFlags } from '../bulk/choice-options.js';
import { toLedgerChange } from '../bulk/ledger-change.js';
import { runBulk } from '../bulk/run-bulk.js';
import type { Selection } from '../bulk/survey-payouts.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';

interface Change {
  readonly states: readonly PayoutState[];
  readonly to: 'cancelled' | 'queued';
  readonly signer?: ActSigner | undefined;
  /** Without ids the options choose. */
  readonly payoutIds?: readonly string[];
  /** Question without its mark: `Cancel 3 payouts`. */
  readonly describe: (payouts: string) => string;
  /** `3 payouts cancelled` */
  readonly describeDone: (payouts: string) => string;
}

export async function changeMany(
  context: CliContext,
  flags: ChoiceFlags & { readonly json?: true },
  actor: Actor,
  { states, to, signer, payoutIds = [], describe, describeDone }: Change,
): Promise<void> {
  const signal = context.stopSignal();
  const { dryRun = false, json = false } = flags;
  // Naming each payout is a decision: only a choice by options needs a question.
  const isNamed = payoutIds.length > 0;
  const yes = isNamed || flags.yes === true;
  const { selection: chosen, from, matches } = await readChoice(context, { ...flags, yes }, states, signal);
  const named: Selection = { kind: 'named', payouts: payoutIds.map((payoutId) => ({ payoutId })) };
  await withAccount(context, async (account) => {
    const finish = async (): Promise<void> => {
      if (to === 'cancelled') await sweepCancelledJobs(account, new AbortController().signal);
    };
    const change = { from, matches, describe, describeDone, finish, ...toLedgerChange(account, to, actor, signer) };
    await runBulk(context, account, change, { selection: isNamed ? named : chosen, dryRun, yes, json, signal });
  });
}
