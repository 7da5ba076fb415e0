import type { Command } from 'commander';
import type { PayoutInput } from '../../ledger/payout.js';
import type { CliContext } from '../context/cli-context.js';
import { readSigning } from '../context/keys.js';
import { nameFlags, readVariable, help } from '../context/flags.js';
import { parsePayoutTexts, type PayoutTexts } from '../import/parse-payout-texts.js';
import { withProducer } from '../context/account.js';

interface Flags extends PayoutTexts {
  readonly json?: true;
}

export function defineEnqueueCommand(command: Command, context: CliContext): void {
  command
    .option('--payout-id <id>', 'your own key of the payout (required)')
    .option('--payment-id <number>', 'currency id of the gateway, see `payouts gateway currencies` (required)')
    .option('--amount <decimal>', 'amount in that currency, such as 12.5 (required)')
    .option('--address-to <wallet>', 'wallet of the recipient (required)')
    .option('--destination-tag <tag>', 'destination tag, for Ripple XRP and the TON network')
    .option(
      '--symbol <code>',
      'a currency such as USD, which the amount may then be in: docs/gateway-api-v1.md#payouts-with-a-symbol',
    )
    .option('--reference <text>', 'a line of your own, such as an invoice number')
    .option('--priority <number>', '1 is the most urgent; payouts without one go before all that have one')
    .option('--not-before <time>', 'do not send before this time, such as 2030-01-31T09:00:00Z')
    .option('--metadata <json>', 'JSON of your own, at most 4096 bytes')
    .option('--batch <name>', 'put it into a group that list and stats can follow')
    .option('--requested-by <person>', 'the person on whose request you enqueue it, an id of the keyring')
    .option('--json', 'print {payoutId, state, created} as JSON')
    .addHelpText(
      'after',
      help(
        `The same payout id with the same data is the same payout: run the command again if you are not sure. With other data it is refused
(exit code 4). With PAYOUT_SIGNER and PAYOUT_SIGNER_NAME it is signed for 7 days; run the command again to renew that.`,
        'payouts enqueue --payout-id invoice-77 --payment-id 6 --amount 12.5 --address-to TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
        'payouts enqueue --payout-id bonus-3 --payment-id 4 --amount 100 --address-to rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe --destination-tag 4711',
      ),
    )
    .action(async ({ json, ...texts }: Flags) => {
      const { payoutId, state, created } = await nameFlags(async () =>
        withProducer(context, (producer) => producer.enqueue(parsePayoutTexts(texts) as unknown as PayoutInput), {
          ...readSigning(context.environment),
          checkAddresses: readVariable('PAYOUT_CHECK_ADDRESSES', context.environment),
          checkPaymentIds: readVariable('PAYOUT_CHECK_PAYMENT_IDS', context.environment),
          requireCurrencies: readVariable('PAYOUT_REQUIRE_CURRENCIES', context.environment),
        }),
      );
      if (json) context.writeJson({ payoutId, state, created });
      else if (created) context.write(`Payout ${payoutId} is ${state}.\n`);
      else context.write(`Payout ${payoutId} was there already, with the same data: it is ${state}.\n`);
    });
}
