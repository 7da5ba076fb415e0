import type { Command } from 'commander';
import type { Actor } from '../../ledger/payout.js';
import { UNSENT_STATES } from '../../ledger/states.js';
import { cancelPayout } from '../../queues/open-ledger.js';
import { addChoiceOptions, requireOneOrMany, type ChoiceFlags } from '../bulk/choice-options.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { addActorOptions, readActor } from '../context/flags.js';

type Flags = Actor & ChoiceFlags & { readonly json?: true };

const HELP_AFTER = `
Only a payout that is queued, held or rejected can be cancelled: one that may have been paid is never called back (exit code 4).

Many at once: --batch, --state, --message and --file (CSV with a column payout_id, as \`payouts list --csv\` writes it, or JSON
lines with payoutId) choose them; of several, a payout must meet all. They are counted and added up before anything is
changed. A payout that is sent meanwhile is left and named. After Ctrl-C the same command continues where it stopped.

Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout or batch not
found. 4 refused; of many, all others were cancelled.

Examples:
  payouts cancel invoice-77 --reason "paid by other means"
  payouts cancel --batch 2030-01-salaries --dry-run --reason "wrong file"
  payouts cancel --batch 2030-01-salaries --reason "wrong file"
  payouts cancel --state rejected --message "wrong address" --reason "the recipients were told"
`;

const NO_REASON = 'no reason given';

export function defineCancelCommand(command: Command, context: CliContext): void {
  addChoiceOptions(
    command.argument('[payoutId]', 'the payout; without it those that the options choose'),
    UNSENT_STATES,
  );
  addActorOptions(command, NO_REASON)
    .option('--json', 'print the payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .addHelpText('after', HELP_AFTER)
    .action(async (given: string | undefined, flags: Flags) => {
      const payoutId = requireOneOrMany(given, flags, command);
      const actor = await readActor(flags);
      if (payoutId === undefined) {
        if (actor.reason === NO_REASON) command.error('error: many payouts need a --reason');
        // One payout needs none of it.
        const { changeMany } = await import('./change-many.js');
        await changeMany(context, flags, actor, {
          states: UNSENT_STATES,
          to: 'cancelled',
          describe: (payouts) => `Cancel ${payouts}, never to be sent again`,
          describeDone: (payouts) => `${payouts} cancelled`,
        });
        return;
      }
      const payout = await withAccount(context, async (account) => cancelPayout(account, payoutId, actor));
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is cancelled; it will not be sent.\n`);
    });
}
