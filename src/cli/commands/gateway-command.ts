import type { Command } from 'commander';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import type { Approve } from '../../gateway/endpoints.js';
import type { CliContext } from '../context/cli-context.js';
import { formatResponse, formatItems } from '../output/format-response.js';
import { nameFlags, help } from '../context/flags.js';
import { parseInteger } from '../import/parse-payout-texts.js';
import { withGateway } from '../context/account.js';

interface JsonFlag {
  readonly json?: true;
}

interface WalletFlags extends JsonFlag {
  readonly paymentId: string;
  readonly orderId: string;
}

const APPROVE_MEANING: Readonly<Record<Approve, string>> = { 0: 'in progress', 1: 'completed', 2: 'error' };

export function defineGatewayCommand(command: Command, context: CliContext): void {
  command.addHelpText(
    'after',
    help(
      `They only read. Environment: GATEWAY_BASE_URL, GATEWAY_PLATFORM_ID, and GATEWAY_SECRET_KEY or GATEWAY_SECRET_KEY_FILE.
Exit code 1: the gateway refused the call or cannot be reached.`,
      'payouts gateway balance',
      'payouts gateway currencies --json | jq -r .payment_id',
      'payouts gateway wallet --payment-id 6 --order-id deposit-17',
      'payouts gateway status 3f1c0a…',
    ),
  );
  addBalance(command, context);
  addCurrencies(command, context);
  addWallet(command, context);
  addStatus(command, context);
}

function addBalance(parent: Command, context: CliContext): void {
  parent
    .command('balance')
    .description("show the account's balance")
    .option('--json', 'print {balance} as JSON, as the gateway gives it')
    .addHelpText('after', help('', 'payouts gateway balance', 'payouts gateway balance --json | jq .balance'))
    .action(async ({ json }: JsonFlag) => {
      const balance = await withGateway(context, (gateway) => gateway.balance());
      if (json) context.writeJson({ balance });
      else context.write(formatResponse(balance));
    });
}

function addCurrencies(parent: Command, context: CliContext): void {
  parent
    .command('currencies')
    .description('list the currencies with their ids and USD rates')
    .option('--json', 'print each currency as one line of JSON, as the gateway gives it')
    .addHelpText(
      'after',
      help('', 'payouts gateway currencies', 'payouts gateway currencies --json | jq -r .payment_id'),
    )
    .action(async ({ json }: JsonFlag) => {
      const currencies = await withGateway(context, (gateway) => gateway.currencies());
      if (json) currencies.forEach(context.writeJson);
      else context.write(formatItems(currencies));
    });
}

function addWallet(parent: Command, context: CliContext): void {
  parent
    .command('wallet')
    .description('show the address to which deposits of a currency go')
    .requiredOption('--payment-id <number>', 'currency id, see `payouts gateway currencies` (required)')
    .requiredOption('--order-id <id>', 'your own key of the deposit, at most 64 characters (required)')
    .option('--json', 'print {paymentId, orderId, address, destinationTag} as JSON')
    .addHelpText('after', help('', 'payouts gateway wallet --payment-id 6 --order-id deposit-17'))
    .action(async ({ paymentId, orderId, json }: WalletFlags) => {
      const request = { paymentId: parseInteger(paymentId), orderId } as Parameters<
        GatewayClient['getPaymentWallet']
      >[0];
      const wallet = await withGateway(context, (gateway) => nameFlags(() => gateway.getPaymentWallet(request)));
      if (json) context.writeJson({ ...request, ...wallet });
      else
        context.write(formatResponse({ address: wallet.address, 'destination tag': wallet.destinationTag ?? 'none' }));
    });
}

function addStatus(parent: Command, context: CliContext): void {
  parent
    .command('status')
    .description('show how far a transaction is')
    .argument('<txhash>', 'the transaction')
    .option('--json', 'print {txhash, approve, paymentId, addressTo, amount, fee} as JSON')
    .addHelpText(
      'after',
      help('', 'payouts gateway status 3f1c0a…', 'payouts gateway status 3f1c0a… --json | jq .approve'),
    )
    .action(async (txhash: string, { json }: JsonFlag) => {
      const status = await withGateway(context, (gateway) => gateway.transactionStatus({ txhash }));
      if (json) {
        context.writeJson(status);
        return;
      }
      const { approve, paymentId, addressTo, amount, fee } = status;
      const facts = { 'payment id': paymentId, address: addressTo, amount, fee };
      context.write(formatResponse({ txhash, approve: `${approve}: ${APPROVE_MEANING[approve]}`, ...facts }));
    });
}
