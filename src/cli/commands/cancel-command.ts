import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import type { Actor } from '../../ledger/actor.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import { withOperator } from '../context/with-operator.js';

const HELP_AFTER = `
Only a payout that is queued or rejected can be cancelled: one that may have been paid is never called back (exit code 4).

Examples:
  payouts cancel invoice-77 --reason "paid by other means"
  payouts cancel invoice-78 --reason "the recipient gave a wrong address"
`;

/** Defines `payouts cancel`. */
export function defineCancelCommand(command: Command, context: CliContext): void {
  addActorOptions(command.argument('<payoutId>', 'the payout'), 'no reason given')
    .option('--json', 'print the payout as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutId: string, flags: Actor & { readonly json?: true }) => {
      const actor = await readActor(flags);
      const payout = await withOperator(context, async (operator) => operator.cancel(payoutId, actor));
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is cancelled; it will not be sent.\n`);
    });
}
