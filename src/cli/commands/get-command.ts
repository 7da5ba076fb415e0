import type { Command } from 'commander';
import { describeApproval, describeUnverified } from '../approvals/describe-approvable.js';
import { openApprovalJudge } from '../context/approvals.js';
import type { CliContext } from '../context/cli-context.js';
import { readCurrencies } from '../context/read-currencies.js';
import { describeReceipt, openReceiptVerifier } from '../context/receipts.js';
import { requireRemoved } from '../context/removed-payout.js';
import { formatPayout } from '../output/format-payout.js';
import { toPayoutJson } from '../output/payout-json.js';
import { withProducer } from '../context/with-producer.js';

const HELP_AFTER = `
With PAYOUT_KEYS_FILE it says of a payout that is completed or failed whether a worker of the keyring signed that (verified in
--json). The other states are not signed. Of each approval it says whether it counts now.

A payout that PAYOUT_RETENTION_DAYS removed from Redis is found in PAYOUT_ARCHIVE_DIR, on the worker's host; "archived in"
(--json: archivedIn) is its file.

Examples:
  payouts get invoice-77
  payouts get invoice-77 --json | jq .history
  payouts get --txhash 3f1c…
`;

/** Defines `payouts get`. */
export function defineGetCommand(command: Command, context: CliContext): void {
  command
    .argument('[payoutId]', 'the payout')
    .option('--txhash <txhash>', 'find it by its transaction instead')
    .option('--json', 'print it as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (payoutId: string | undefined, flags: { txhash?: string; json?: true }) => {
      const { txhash, json } = flags;
      if ((payoutId === undefined) === (txhash === undefined)) command.error('error: give a payoutId or --txhash');
      const verifier = openReceiptVerifier(context.environment);
      const key = txhash === undefined ? { payoutId: payoutId ?? '' } : { txhash };
      const present = await withProducer(context, (producer) =>
        'txhash' in key ? producer.getByTxhash(key.txhash) : producer.get(key.payoutId),
      );
      const found = present ?? (await requireRemoved(context, key));
      const payout = verifier?.mark(found) ?? found;
      const receipt = describeReceipt(verifier?.judge(found));
      const judged = openApprovalJudge(context.environment)?.(found);
      if (json) context.writeJson(toPayoutJson(payout, judged));
      else {
        const approvals = judged?.map(describeApproval) ?? found.approvals?.map(describeUnverified) ?? [];
        context.write(formatPayout(payout, context.colours, await readCurrencies(context), receipt, approvals));
      }
    });
}
