import type { Command } from 'commander';
import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { Actor } from '../../ledger/actor.js';
import { addChoiceOptions, readChoice, requireOneOrMany, type ChoiceFlags } from '../bulk/choice-options.js';
import { toLedgerChange } from '../bulk/ledger-change.js';
import { runBulk, type BulkChange } from '../bulk/run-bulk.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import type { CliContext } from '../context/cli-context.js';
import {
  addSigningOptions,
  describeSigning,
  openSigner,
  SIGNING_HELP,
  type SigningFlags,
} from '../context/signing-options.js';
import { withAccount } from '../context/with-account.js';
import { withOperator } from '../context/with-operator.js';

type Flags = Actor & ChoiceFlags & SigningFlags & { readonly json?: true };

const HELP_AFTER = `
Only a payout that the gateway rejected can be retried. One that is unknown may have been paid: see \`payouts resolve\`.
One that is held waits for a check: see \`payouts release\`.

Many at once: --batch, --state, --message and --file (CSV with a column payout_id, as \`payouts list --csv\` writes it, or JSON
lines with payoutId) choose them; of several, a payout must meet all. They are counted and added up before anything is
changed. One that was retried for the same reason before, and rejected again, is left: give another reason to retry it.

Rejections in a row pause the account. Its payouts wait until \`payouts resume\`.
${SIGNING_HELP}
Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout or batch not
found. 4 refused; of many, all others were queued again. 5 a key is needed.

Examples:
  payouts retry invoice-77 --reason "balance topped up"
  payouts retry --message "insufficient balance" --reason "balance topped up"
  payouts retry --batch 2030-01-salaries --yes --reason "balance topped up"
  payouts retry invoice-77 --key /etc/payouts/ann.pem --reason "balance topped up"
`;

const REJECTED = ['rejected'] as const;

/** Defines `payouts retry`. */
export function defineRetryCommand(command: Command, context: CliContext): void {
  addChoiceOptions(command.argument('[payoutId]', 'the payout; without it those that the options choose'), REJECTED);
  addActorOptions(addSigningOptions(command))
    .option('--json', 'print the payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .addHelpText('after', HELP_AFTER)
    .action(async (given: string | undefined, flags: Flags) => {
      const payoutId = requireOneOrMany(given, flags, command);
      const actor = await readActor(flags);
      // A dry run changes nothing.
      const signer = flags.dryRun ? undefined : await openSigner(context, flags);
      if (payoutId === undefined) {
        await retryMany(context, flags, actor, signer);
        return;
      }
      const payout = await withOperator(context, async (operator) => operator.retry(payoutId, actor), signer);
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is queued again${describeSigning(signer)}.\n`);
    });
}

async function retryMany(
  context: CliContext,
  flags: Flags,
  actor: Actor,
  signer: ActSigner | undefined,
): Promise<void> {
  const signal = context.stopSignal();
  const { selection, from, matches } = await readChoice(context, flags, REJECTED, signal);
  const { dryRun = false, yes = false, json = false } = flags;
  await withAccount(context, async (account) => {
    const change: BulkChange = {
      ...{ from, matches },
      describe: (payouts) => `Send ${payouts} again${describeSigning(signer)}`,
      describeDone: (payouts) => `${payouts} queued again`,
      ...toLedgerChange(account, 'queued', actor, signer),
    };
    await runBulk(context, account, change, { selection, dryRun, yes, json, signal });
  });
}
