import type { Command } from 'commander';
import type { CliContext } from './cli-context.js';
import { addPersonOptions, readPerson, type PersonFlags } from './person.js';
import { requeuePayout } from './requeue-payout.js';
import { withAccount } from './with-account.js';

const HELP_AFTER = `
Only a payout that the gateway rejected can be retried. One that is unknown may have been paid: see \`payouts resolve\`.

Examples:
  payouts retry invoice-77 --reason "balance topped up"
`;

/** Adds `payouts retry`. */
export function registerRetryCommand(program: Command, context: CliContext): void {
  const command = program.command('retry').description('put a rejected payout back into the queue');
  addPersonOptions(command.argument('<payoutId>', 'the payout'))
    .option('--json', 'print the payout as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutId: string, flags: PersonFlags & { readonly json?: true }) => {
      const person = readPerson(flags);
      const payout = await withAccount(context, (account) =>
        requeuePayout(account, { payoutId, from: 'rejected' }, person),
      );
      if (flags.json) context.writeJson(payout);
      else context.write(`Payout ${payoutId} is queued again.\n`);
    });
}
