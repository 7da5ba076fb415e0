import type { Command } from 'commander';
import { type NewComment, parseNewComment } from '../../ledger/payout-comment.js';
import { withOperator } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { help, nameFlags, systemUser } from '../context/flags.js';
import { toPayoutJson } from '../output/payout-json.js';

export function defineCommentCommand(command: Command, context: CliContext): void {
  command
    .argument('<payoutId>', 'the payout, in any state')
    .requiredOption('--text <text>', 'one line for other operators, at most 200 characters (required)')
    .option('--by <name>', 'who writes it', systemUser())
    .option('--json', 'print the payout as JSON')
    .addHelpText(
      'after',
      help(
        `Tells other operators who looks after a payout, or what was found so far. The pages of the dashboard, \`payouts get\`, lists, exports
and \`payouts activity\` show it. It changes nothing, and is not signed: who writes to Redis can write one under any name. A
program that reads the payout gets it too, so write no secret. Asked twice, it stands once; a payout has 50 at most.`,
        'payouts comment invoice-77 --text "I am on it"',
        'payouts comment invoice-77 --by ann --text "asked the gateway, ticket 812"',
      ),
    )
    .action(async (payoutId: string, flags: NewComment & { readonly json?: true }) => {
      const comment = await nameFlags(() => parseNewComment(flags));
      const payout = await withOperator(context, async (operator) => operator.comment(payoutId, comment));
      if (flags.json) context.writeJson(toPayoutJson(payout));
      else context.write(`Payout ${payoutId} (${payout.state}) has the comment of ${comment.by}: ${comment.text}\n`);
    });
}
