import type { Command } from 'commander';
import { formatDuration, formatMoney } from '../../format.js';
import { readGatewayFacts, type Currency } from '../../ledger/gateway-facts.js';
import type { Payout } from '../../ledger/payout.js';
import { describeNeeds, waitedMs } from '../approvals/describe-approvable.js';
import { readWaiting } from '../approvals/read-chosen.js';
import { openApprovalJudge, type ApprovalJudge } from '../context/approvals.js';
import type { CliContext } from '../context/cli-context.js';
import { withAccount } from '../context/with-account.js';
import { toApprovalsJson } from '../output/approvals-json.js';
import { formatTable } from '../output/format-table.js';

const HELP_AFTER = `
The payouts that a policy holds until persons approve them, the longest waiting first, as Redis has them: nothing of it is verified but,
with PAYOUT_KEYS_FILE, who approved so far. \`payouts approve\` verifies each before it shows it.

Examples:
  payouts approvals
  payouts approvals --json | jq -r .payoutId
`;

/** Defines `payouts approvals`. */
export function defineApprovalsCommand(command: Command, context: CliContext): void {
  command
    .option('--json', 'print each payout as one line of JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async ({ json }: { readonly json?: true }) => {
      const judge = openApprovalJudge(context.environment);
      await withAccount(context, async ({ ledger: { connection } }) => {
        const { payouts, unreadable } = await readWaiting(connection, { state: 'held' });
        const now = Date.now();
        if (json) for (const payout of payouts) context.writeJson(toJson(payout, judge, now));
        else {
          const { currencies } = await readGatewayFacts(connection);
          context.write(describeAll(payouts, judge, currencies, context.colours, now));
        }
        for (const { message } of unreadable) context.writeError(`${message}\n`);
      });
    });
}

function toJson(payout: Payout, judge: ApprovalJudge | undefined, now: number): object {
  const { payoutId, paymentId, amount, symbol, addressTo, batch, requestedBy, signed, held, updatedAt } = payout;
  return {
    ...{ payoutId, paymentId, amount, symbol, addressTo, batch, requestedBy, signedBy: signed?.key },
    ...{ rule: held?.rule, message: held?.message, needs: held?.needs, until: held?.until },
    ...{ heldSince: updatedAt, waitedMs: waitedMs(payout, now), approvals: toApprovalsJson(payout, judge?.(payout)) },
  };
}

function describeAll(
  payouts: readonly Payout[],
  judge: ApprovalJudge | undefined,
  currencies: readonly Currency[],
  colours: CliContext['colours'],
  now: number,
): string {
  if (payouts.length === 0) return 'No payout waits for approval.\n';
  const head = ['PAYOUT', 'AMOUNT', 'ADDRESS', 'RULE', 'MISSING', 'WAITS'];
  const rows = payouts.map((payout) => {
    const { payoutId, amount, paymentId, addressTo, held } = payout;
    const money = formatMoney(amount, paymentId, currencies);
    const wait = formatDuration(waitedMs(payout, now));
    return [payoutId, money, addressTo, held?.rule ?? '', describeMissing(payout, judge), wait];
  });
  return formatTable([head.map((text) => colours.dim(text)), ...rows], [1]);
}

function describeMissing(payout: Payout, judge: ApprovalJudge | undefined): string {
  const needs = payout.held?.needs;
  const counting = judge?.(payout).filter(({ person }) => person !== undefined) ?? [];
  const persons = new Set(counting.map(({ approval, person = '' }) => `${approval.decision} ${person}`));
  const said = persons.size === 0 ? '' : ` (so far: ${[...persons].join(', ')})`;
  return `${needs === undefined ? '' : describeNeeds(needs)}${said}`;
}
