import type { Command } from 'commander';
import { NotFoundError } from '../../base/errors.js';
import { toPlainText } from '../../base/plain-text.js';
import { describeDifferences } from '../../gateway/gateway.js';
import type { LookUpOfAttempt } from '../../operator/find-payments.js';
import { formatCommand } from '../../operator/next-steps.js';
import type { CliContext } from '../context/cli-context.js';
import { CommandFailedError } from '../context/exit-code.js';
import { withAccount, withGateway } from '../context/account.js';
import { help, readVariable } from '../context/flags.js';

const NO_EVIDENCE =
  'That is no evidence that nothing was paid: the gateway does not say whether, and from when on, it knows an order id.';

export function addFind(parent: Command, context: CliContext): void {
  parent
    .command('find')
    .description('ask for the payments of a payout by the order ids of its attempts (API v2)')
    .argument('<payoutId>', 'your key of the payout')
    .option('--json', 'print each attempt as one line of JSON')
    .addHelpText(
      'after',
      help(
        `For a payout that is unknown. It asks once for each attempt and changes nothing; \`payouts resolve\` decides.
${NO_EVIDENCE}
Exit code 1: the gateway gave no answer for an attempt; 3: it has no order ids (API v1), or there is no such payout.`,
        'payouts gateway find invoice-77',
      ),
    )
    .action(async (payoutId: string, { json }: { readonly json?: true }) => {
      const { findPayments } = await import('../../operator/find-payments.js');
      const platformId = readVariable('GATEWAY_PLATFORM_ID', context.environment);
      const lookUps = await withAccount(context, async ({ ledger }) => {
        const payout = await ledger.get(payoutId);
        if (payout === undefined) throw new NotFoundError(`There is no payout ${JSON.stringify(payoutId)}`);
        return withGateway(context, async (gateway) => findPayments(ledger, gateway, payout));
      });
      if (lookUps === undefined) throw new NotFoundError('This API of the gateway has no order ids: see GATEWAY_API');
      if (json) lookUps.forEach(context.writeJson);
      else
        context.write(
          lookUps.length === 0
            ? 'It was never sent: no attempt is recorded.\n'
            : describeAll(lookUps, { platformId, payoutId }),
        );
      if (lookUps.some(({ kind }) => kind === 'failed')) throw new CommandFailedError('The gateway gave no answer');
    });
}

interface ShownPayout {
  readonly platformId: number;
  readonly payoutId: string;
}

function describeAll(lookUps: readonly LookUpOfAttempt[], payout: ShownPayout): string {
  const lines = lookUps.map(
    (lookUp) => `attempt ${lookUp.attempt}, order id ${lookUp.orderId}: ${describe(lookUp, payout)}\n`,
  );
  const isInDoubt = lookUps.some(({ kind }) => kind !== 'found');
  return `${lines.join('')}${isInDoubt ? `${NO_EVIDENCE}\n` : ''}`;
}

function describe(lookUp: LookUpOfAttempt, payout: ShownPayout): string {
  if (lookUp.kind !== 'found') return lookUp.message;
  const { payment, differences } = lookUp;
  const { gatewayId, kind } = payment;
  const named = `${kind}, ${gatewayId === undefined ? 'without its gateway id' : `gateway id ${gatewayId}`}`;
  if (differences.length > 0)
    return `another payment (${named}): ${toPlainText(describeDifferences(differences))}. Ask the gateway`;
  if (gatewayId === undefined) return `the payment of this attempt: ${named}. Look for its id in the gateway's records`;
  const args = ['--sent', '--gateway-id', gatewayId, '--reason', 'found by its order id', '--', payout.payoutId];
  return `the payment of this attempt: ${named}.\n  ${formatCommand({ name: 'resolve', args }, payout.platformId)}`;
}
