import type { Command } from 'commander';
import { addApprovalOptions, type ApprovalFlags } from '../approvals/approval-options.js';
import { decidePayouts } from '../approvals/decide-payouts.js';
import type { CliContext } from '../context/cli-context.js';

const HELP_AFTER = `
One rejection ends the approval of a payout: it stays held until the rejection expires, also where others approve it. No approval takes the
place of a rejection of the same key. What is never to be paid: \`payouts cancel\`. The payout is verified and shown as \`payouts
approve\` does; who signed or requested it may reject it.

Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout not found.
4 the state of a payout does not allow it. 5 a signature is missing or does not count. Of many, all others were rejected.

Examples:
  payouts reject invoice-77 --key ~/ann.pem --reason "not the address on the invoice"
`;

/** Defines `payouts reject`. */
export function defineRejectCommand(command: Command, context: CliContext): void {
  addApprovalOptions(command.argument('<payoutIds...>', 'the payouts, queued or held'))
    .requiredOption('--reason <text>', 'why; kept in the activity, not signed (required)')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutIds: readonly string[], flags: ApprovalFlags) => {
      // Nothing is asked: it only keeps a payout from being sent.
      await decidePayouts(context, { decision: 'reject', of: payoutIds, asks: false }, flags);
    });
}
