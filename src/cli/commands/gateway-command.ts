import type { Command } from 'commander';
import type { PaymentStatus } from '../../gateway/gateway.js';
import { NotFoundError } from '../../base/errors.js';
import { shownGatewayId } from '../../ledger/payout.js';
import type { CliContext } from '../context/cli-context.js';
import { formatResponse, formatItems } from '../output/format-response.js';
import { nameFlags, help } from '../context/flags.js';
import { parseInteger } from '../import/parse-payout-texts.js';
import { withGateway } from '../context/account.js';
import { addFind } from './gateway-find-command.js';

interface JsonFlag {
  readonly json?: true;
}

interface WalletFlags extends JsonFlag {
  readonly paymentId: string;
  readonly orderId: string;
}

/** As the API writes a state. */
const APPROVE = {
  pending: { approve: 0, meaning: 'in progress' },
  paid: { approve: 1, meaning: 'completed' },
  failed: { approve: 2, meaning: 'error' },
} as const satisfies Record<PaymentStatus['kind'], object>;

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
      'payouts gateway find invoice-77',
    ),
  );
  addBalance(command, context);
  addCurrencies(command, context);
  addWallet(command, context);
  addStatus(command, context);
  addFind(command, context);
}

function addBalance(parent: Command, context: CliContext): void {
  parent
    .command('balance')
    .description("show the account's balance")
    .option('--json', 'print {balance} as JSON, as the gateway gives it')
    .addHelpText('after', help('', 'payouts gateway balance', 'payouts gateway balance --json | jq .balance'))
    .action(async ({ json }: JsonFlag) => {
      const { given: balance } = await withGateway(context, (gateway) => gateway.readBalances([]));
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
      const { given: currencies } = await withGateway(context, (gateway) => gateway.readCurrencies());
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
      const request = { paymentId: parseInteger(paymentId) as number, orderId };
      const wallet = await withGateway(context, (gateway) =>
        nameFlags(async () => gateway.getPaymentWallet?.(request)),
      );
      if (wallet === undefined) throw new NotFoundError('This gateway has no addresses for deposits');
      if (json) context.writeJson({ ...request, ...wallet });
      else
        context.write(formatResponse({ address: wallet.address, 'destination tag': wallet.destinationTag ?? 'none' }));
    });
}

function addStatus(parent: Command, context: CliContext): void {
  parent
    .command('status')
    .description('show how far a payment is')
    .argument('<gatewayId>', 'what the payment is called at the gateway (API v1: its txhash)')
    .option('--json', 'print {gatewayId, txhash, approve, paymentId, addressTo, amount, fee} as JSON')
    .addHelpText(
      'after',
      help('', 'payouts gateway status 3f1c0a…', 'payouts gateway status 3f1c0a… --json | jq .approve'),
    )
    .action(async (gatewayId: string, { json }: JsonFlag) => {
      const { kind, ...status } = await withGateway(context, (gateway) => gateway.getStatus(gatewayId));
      const { approve, meaning } = APPROVE[kind];
      if (json) {
        context.writeJson({ gatewayId, approve, ...status });
        return;
      }
      const { txhash, paymentId, addressTo, amount, fee } = status;
      const facts = {
        'gateway id': shownGatewayId({ gatewayId, txhash }),
        txhash,
        approve: `${approve}: ${meaning}`,
        'payment id': paymentId,
        address: addressTo,
        amount,
        fee,
      };
      context.write(formatResponse(facts));
    });
}
