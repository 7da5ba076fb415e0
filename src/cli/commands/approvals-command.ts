import type { Command } from 'commander';
import { z } from 'zod';
import { parseInput } from '../../base/fields.js';
import { formatDuration, formatMoney } from '../../base/format.js';
import { type Currency, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { batchField, type Payout } from '../../ledger/payout.js';
import { addApprovalOptions, type ApprovalFlags, decidePayouts } from '../approvals/decide-payouts.js';
import { describeNeeds, waitedMs } from '../approvals/describe-approvable.js';
import { readWaiting } from '../approvals/read-chosen.js';
import { uploadApprovals } from '../approvals/upload-approvals.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { type ApprovalJudge, openApprovalJudge } from '../context/signing.js';
import { toApprovalsJson } from '../output/payout-json.js';
import { formatTable } from '../output/format-table.js';

const HELP_AFTER = `
The payouts that a policy holds until people approve them, the longest waiting first, as Redis has them: nothing of it is verified but,
with PAYOUT_KEYS_FILE, who approved so far. \`payouts approve\` verifies each before it shows it.

Examples:
  payouts approvals
  payouts approvals --json | jq -r .payoutId
`;

export function defineApprovalsCommand(command: Command, context: CliContext): void {
  command
    .option('--json', 'print each payout as one line of JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async ({ json }: { readonly json?: true }) => {
      const judge = await openApprovalJudge(context.environment);
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

interface ApproveFlags extends ApprovalFlags {
  readonly batch?: string;
  readonly file?: string;
  readonly yes?: true;
}

const APPROVE_HELP_AFTER = `
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

export function defineApproveCommand(command: Command, context: CliContext): void {
  addApprovalOptions(command.argument('[payoutIds...]', 'the payouts, queued or held'))
    .option('--batch <name>', 'those of this batch that wait for approval')
    .option('--file <file>', 'store approvals that were signed elsewhere, - for stdin')
    .option('--reason <text>', 'why; kept in the activity, not signed')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .addHelpText('after', APPROVE_HELP_AFTER)
    .action(async (payoutIds: readonly string[], flags: ApproveFlags) => {
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

/** An approval signed elsewhere already has its key, time and reason. */
function refuseOthers(command: Command, { key, sshKey, keyName, reason, expiresIn, offline }: ApproveFlags): void {
  if ([key, sshKey, keyName, reason, expiresIn, offline].every((flag) => flag === undefined)) return;
  command.error('error: --file stores what was signed elsewhere: leave the other options out');
}

const REJECT_HELP_AFTER = `
One rejection ends the approval of a payout: it stays held until the rejection expires, also where others approve it. No approval takes the
place of a rejection of the same key. What is never to be paid: \`payouts cancel\`. The payout is verified and shown as \`payouts
approve\` does; who signed or requested it may reject it.

Exit codes: 0 done. 1 stopped, or Redis is unavailable: run it again. 2 wrong input, nothing was changed. 3 payout not found.
4 the state of a payout does not allow it. 5 a signature is missing or does not count. Of many, all others were rejected.

Examples:
  payouts reject invoice-77 --key ~/ann.pem --reason "not the address on the invoice"
`;

export function defineRejectCommand(command: Command, context: CliContext): void {
  addApprovalOptions(command.argument('<payoutIds...>', 'the payouts, queued or held'))
    .requiredOption('--reason <text>', 'why; kept in the activity, not signed (required)')
    .addHelpText('after', REJECT_HELP_AFTER)
    .action(async (payoutIds: readonly string[], flags: ApprovalFlags) => {
      // Does not ask: a rejection only keeps a payout from being sent.
      await decidePayouts(context, { decision: 'reject', of: payoutIds, asks: false }, flags);
    });
}
