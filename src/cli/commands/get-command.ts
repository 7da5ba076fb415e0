import type { Command } from 'commander';
import { NotFoundError } from '../../errors.js';
import type { CliContext } from '../context/cli-context.js';
import { readCurrencies } from '../context/read-currencies.js';
import { formatPayout } from '../output/format-payout.js';
import { toPayoutJson } from '../output/payout-json.js';
import { withProducer } from '../context/with-producer.js';

const HELP_AFTER = `
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
      const payout = await withProducer(context, (producer) =>
        txhash === undefined ? producer.get(payoutId ?? '') : producer.getByTxhash(txhash),
      );
      if (payout === undefined) {
        throw new NotFoundError(
          txhash === undefined ? `Payout ${payoutId ?? ''} not found` : `No payout has txhash ${txhash}`,
        );
      }
      if (json) context.writeJson(toPayoutJson(payout));
      else context.write(formatPayout(payout, context.colours, await readCurrencies(context)));
    });
}
