import type { Command } from 'commander';
import { z } from 'zod';
import { parseInput } from '../../fields.js';
import { batchField } from '../../ledger/payout.js';
import { addApprovalOptions, type ApprovalFlags } from '../approvals/approval-options.js';
import { decidePayouts } from '../approvals/decide-payouts.js';
import { uploadApprovals } from '../approvals/upload-approvals.js';
import type { CliContext } from '../context/cli-context.js';

interface Flags extends ApprovalFlags {
  readonly batch?: string;
  readonly file?: string;
  readonly yes?: true;
}

const HELP_AFTER = `
Verifies the producer's signature of each payout with the keyring of PAYOUT_KEYS_FILE on this host, shows what was signed, asks,
and signs exactly that: account, payoutId and the hash of the intent. Address, amount and payment id are what is signed; names of
currencies, and why a payout is held, are what Redis says. Workers count persons, not keys, and never who signed or requested
the payout. --batch takes the payouts of a batch that wait for approval.

--offline stores nothing: it prints one line of JSON for each payout, signed where a key is given. Without a key, another program
signs \`text\` (\`ssh-keygen -Y sign -n approval.payout-queue\`) and adds \`signature\`. --file stores such lines; each proves itself.

Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout or batch not
found. 4 the state of a payout does not allow it, or the key rejected it before. 5 a signature is missing or does not count: of a
payout, or the key is not an approver's, or its person signed or requested the payout. Of many, all others were approved.

Examples:
  payouts approve invoice-77 --key ~/ann.pem
  payouts approve --batch 2030-01-salaries --ssh-key ~/.ssh/id_ed25519.pub --reason "checked against the payroll"
  payouts approve invoice-77 --offline --key-name ann > to-sign.jsonl
  payouts approve --file signed.jsonl
`;

/** Defines `payouts approve`. */
export function defineApproveCommand(command: Command, context: CliContext): void {
  addApprovalOptions(command.argument('[payoutIds...]', 'the payouts, queued or held'))
    .option('--batch <name>', 'those of this batch that wait for approval')
    .option('--file <file>', 'store approvals that were signed elsewhere, - for stdin')
    .option('--reason <text>', 'why; kept in the activity, not signed')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutIds: readonly string[], flags: Flags) => {
      const { batch, file, yes = false } = flags;
      const ways = [payoutIds.length > 0, batch !== undefined, file !== undefined].filter(Boolean);
      if (ways.length !== 1) command.error('error: give payoutIds, --batch or --file');
      if (file !== undefined) {
        refuseOthers(command, flags);
        await uploadApprovals(context, file);
        return;
      }
      parseInput(z.object({ '--batch': batchField.optional() }), { '--batch': batch });
      const of = batch === undefined ? payoutIds : { batch };
      await decidePayouts(context, { decision: 'approve', of, asks: !yes }, flags);
    });
}

/** What was signed elsewhere has a key, a time and a reason. */
function refuseOthers(command: Command, { key, sshKey, keyName, reason, expiresIn, offline }: Flags): void {
  if ([key, sshKey, keyName, reason, expiresIn, offline].every((flag) => flag === undefined)) return;
  command.error('error: --file stores what was signed elsewhere: leave the other options out');
}
