import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import type { Actor } from '../../ledger/actor.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import { withOperator } from '../context/with-operator.js';

const HELP_AFTER = `
Only a payout that the gateway rejected can be retried. One that is unknown may have been paid: see \`payouts resolve\`.

Examples:
  payouts retry invoice-77 --reason "balance topped up"
`;

/** Defines `payouts retry`. */
export function defineRetryCommand(command: Command, context: CliContext): void {
  addActorOptions(command.argument('<payoutId>', 'the payout'))
    .option('--json', 'print the payout as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutId: string, flags: Actor & { readonly json?: true }) => {
      const actor = await readActor(flags);
      const payout = await withOperator(context, async (operator) => operator.retry(payoutId, actor));
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is queued again.\n`);
    });
}
