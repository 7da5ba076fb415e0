import type { ActSigner } from '../../control/approvals/act-signer.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { CliContext } from './cli-context.js';
import { confirm } from './confirm.js';
import { describeSigner } from './signing-options.js';
import { formatTable } from '../output/format-table.js';
import { formatMoney, formatTime } from '../../format.js';
import { readGatewayFacts } from '../../ledger/gateway-facts.js';
import type { DecidedPayout } from '../../operator/resolve-payout.js';

/**
 * Shows what would be paid once more, and who signs that, and asks.
 * @returns the payout and the attempt that were shown
 * @throws NotFoundError
 * @throws StoppedError when the operator does not agree
 * @throws RedisUnavailableError
 */
export async function confirmSendAgain(
  { terminal, colours, writeError }: CliContext,
  ledger: PayoutLedger,
  payoutId: string,
  signer: ActSigner | undefined,
): Promise<Required<DecidedPayout>> {
  const payout = await ledger.require(payoutId);
  const { currencies } = await readGatewayFacts(ledger.connection);
  const facts = [
    ['amount', formatMoney(payout.amount, payout.paymentId, currencies)],
    ['payment id', String(payout.paymentId)],
    ['address', payout.addressTo],
    [`${payout.state} since`, `${formatTime(payout.updatedAt)} UTC`],
    ['attempts so far', String(payout.attempt)],
    ...(signer === undefined ? [] : [['signed with', describeSigner(signer)] as const]),
  ] as const;
  writeError(`${payoutId}\n${formatTable(facts.map(([name, value]) => ['', colours.dim(name), value]))}`);
  await confirm('Send it again? If it was paid, it is paid twice.', { terminal });
  return { payoutId, attempt: payout.attempt };
}
