import type { Command } from 'commander';
import { isAborted } from '../../base/clock.js';
import { InvalidInputError, StoppedError } from '../../base/errors.js';
import { parseUploadedApproval, storeApproval } from '../../control/operator/store-approval.js';
import { openSource, readEachRow } from '../import/open-source.js';
import { RowMessages } from '../import/progress.js';
import { formatCount, formatDuration, formatMoney } from '../../base/format.js';
import { type Currency, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { ApprovalDecision, SignedApproval } from '../../ledger/control-record.js';
import { type Payout } from '../../ledger/payout.js';
import { lastComment } from '../../ledger/payout-comment.js';
import { addDecisionOptions, type ApprovalFlags, ApprovalTally, decidePayouts, sayKept } from './decide-payouts.js';
import { describeNeeds, waitedMs } from './describe-approvable.js';
import { readNamed, readWaiting } from './read-chosen.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { type CheckApprovals, openApprovalCheck, requireKeyring } from '../context/keys.js';
import { checkBatch, describeSource, help, refuse } from '../context/flags.js';
import { toApprovalsJson } from '../output/payout-json.js';
import { formatTable } from '../output/format-table.js';

export function defineApprovalsCommand(command: Command, context: CliContext): void {
  command
    .option('--json', 'print each payout as one line of JSON')
    .addHelpText(
      'after',
      help(
        'The longest waiting first, as Redis has them. With PAYOUT_KEYS_FILE it is verified who approved so far; nothing else is.',
        'payouts approvals',
        'payouts approvals --json | jq -r .payoutId',
      ),
    )
    .action(async ({ json }: { readonly json?: true }) => {
      const check = await openApprovalCheck(context.environment);
      await withAccount(context, async ({ ledger: { connection } }) => {
        const { payouts, unreadable } = await readWaiting(connection, { state: 'held' });
        const now = Date.now();
        if (json) for (const payout of payouts) context.writeJson(toJson(payout, check, now));
        else {
          const { currencies } = await readGatewayFacts(connection);
          context.write(describeAll(payouts, check, currencies, context.colours, now));
        }
        for (const { message } of unreadable) context.writeError(`${message}\n`);
      });
    });
}

function toJson(payout: Payout, check: CheckApprovals | undefined, now: number): object {
  const { payoutId, paymentId, amount, symbol, addressTo, batch, requestedBy, signed, held, updatedAt } = payout;
  return {
    ...{ payoutId, paymentId, amount, symbol, addressTo, batch, requestedBy, signedBy: signed?.key },
    ...{ rule: held?.rule, message: held?.message, needs: held?.needs, until: held?.until },
    ...{ heldSince: updatedAt, waitedMs: waitedMs(payout, now), approvals: toApprovalsJson(payout, check?.(payout)) },
    comments: payout.comments,
  };
}

function describeAll(
  payouts: readonly Payout[],
  check: CheckApprovals | undefined,
  currencies: readonly Currency[],
  colours: CliContext['colours'],
  now: number,
): string {
  if (payouts.length === 0) return 'No payout waits for approval.\n';
  const hasComments = payouts.some(({ comments }) => comments !== undefined);
  const head = ['PAYOUT', 'AMOUNT', 'ADDRESS', 'RULE', 'MISSING', 'WAITS', ...(hasComments ? ['COMMENT'] : [])];
  const rows = payouts.map((payout) => {
    const { payoutId, amount, paymentId, addressTo, held } = payout;
    const money = formatMoney(amount, paymentId, currencies);
    const wait = formatDuration(waitedMs(payout, now));
    const row = [payoutId, money, addressTo, held?.rule ?? '', describeMissing(payout, check), wait];
    return hasComments ? [...row, lastComment(payout) ?? ''] : row;
  });
  return formatTable([head.map((text) => colours.dim(text)), ...rows], [1], [0, 1, 2]);
}

function describeMissing(payout: Payout, check: CheckApprovals | undefined): string {
  const needs = payout.held?.needs;
  const counting = check?.(payout).filter(({ person }) => person !== undefined) ?? [];
  const persons = new Set(counting.map(({ approval, person = '' }) => `${approval.decision} ${person}`));
  const said = persons.size === 0 ? '' : ` (so far: ${[...persons].join(', ')})`;
  return `${needs === undefined ? '' : describeNeeds(needs)}${said}`;
}

export function defineApproveCommand(command: Command, context: CliContext): void {
  addDecisionOptions(command)
    .option('--batch <name>', 'those of this batch that wait for approval')
    .option('--reason <text>', 'why; it is signed too')
    .option('--expires-in <duration>', 'for how long it holds: 90m, 24h (default), at most 7d')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .addHelpText(
      'after',
      help(
        `Verifies each payout with the keyring of PAYOUT_KEYS_FILE, shows what was signed, asks, and signs exactly that. Names of currencies,
and why a payout is held, are what Redis says. Without a key, --offline prints what another program signs (docs/control.md#approvals).

Exit codes: 4 the state of a payout does not allow it, or the key rejected it before. 5 a signature is missing or does not count, or
the person signed or requested the payout. Of many, all others were approved.`,
        'payouts approve invoice-77 --key ~/ann.pem',
        'payouts approve --batch 2030-01-salaries --key ssh:$HOME/.ssh/id_ed25519.pub --reason "checked against the payroll"',
        'payouts approve invoice-77 --offline --key-name ann > to-sign.jsonl',
        'payouts approve --file signed.jsonl',
      ),
    )
    .action(decide(command, context, 'approve', false));
}

export function defineRejectCommand(command: Command, context: CliContext): void {
  addDecisionOptions(command)
    .option('--batch <name>', 'those of this batch that are queued or held')
    .option('--reason <text>', 'why; it is signed too (required)')
    .option('-y, --yes', 'has no effect, as this command never asks; for scripts that use it like `approve`')
    .addHelpText(
      'after',
      help(
        `The payout is held at once, whatever is approved or signed later, until you take it back with \`payouts unreject\`. What is never to
be paid: \`payouts cancel\`. Who signed or requested it may reject it, and it need not be signed. Exit codes as of \`payouts approve\`.`,
        'payouts reject invoice-78 --key ~/ann.pem --reason "not the address on the invoice"',
      ),
    )
    // A rejection only keeps a payout from being sent.
    .action(decide(command, context, 'reject', true));
}

export function defineUnrejectCommand(command: Command, context: CliContext): void {
  addDecisionOptions(command)
    .option('--batch <name>', 'those of this batch that a rejection holds')
    .option('--reason <text>', 'why; it is signed too (required)')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .addHelpText(
      'after',
      help(
        `Takes back your own rejections, with any key of yours: nobody else can. The worker then checks the payout again, so it is sent if
nothing else holds it. Exit codes as of \`payouts approve\`; 4 also if none of your rejections stands.`,
        'payouts unreject invoice-78 --key ~/ann.pem --reason "the shop confirmed the address"',
      ),
    )
    .action(decide(command, context, 'unreject', true));
}

interface DecisionFlags extends ApprovalFlags {
  readonly file?: string;
  readonly yes?: true;
}

function decide(command: Command, context: CliContext, decision: ApprovalDecision, needsReason: boolean) {
  return async (payoutIds: readonly string[], flags: DecisionFlags): Promise<void> => {
    const { batch, file, reason, yes = false } = flags;
    const ways = [payoutIds.length > 0, batch !== undefined, file !== undefined].filter(Boolean);
    if (ways.length !== 1) command.error('error: give payoutIds, --batch or --file');
    if (file !== undefined) {
      refuseOthers(command, flags);
      await uploadDecisions(context, file, decision);
      return;
    }
    if (needsReason && reason === undefined) command.error("error: required option '--reason <text>' not specified");
    checkBatch(batch);
    await decidePayouts(context, decision, payoutIds, flags, decision !== 'reject' && !yes);
  };
}

/** A decision signed elsewhere already has its key, time and reason. */
function refuseOthers(command: Command, { key, keyName, reason, expiresIn, offline }: DecisionFlags): void {
  if ([key, keyName, reason, expiresIn, offline].every((flag) => flag === undefined)) return;
  command.error('error: --file stores what was signed elsewhere: leave the other options out');
}

/**
 * Stores decisions signed elsewhere. Each proves itself, so the command does not ask. It skips those that would not
 * count.
 * @param path - JSON lines, as `--offline` prints them; `-` for stdin
 * @throws InvalidInputError if a line is no signed approval; nothing is stored
 * @throws NotVerifiedError if a signature did not count
 * @throws ConflictError if a payout's state kept an approval back
 */
async function uploadDecisions(context: CliContext, path: string, decision: ApprovalDecision): Promise<void> {
  const keyring = requireKeyring(context.environment);
  const signal = context.stopSignal();
  const uploaded = await readDecisions(context, path, decision, signal);
  await withAccount(context, async ({ ledger }) => {
    const view = { platformId: ledger.connection.platformId, keyring, now: Date.now() };
    const payoutIds = uploaded.map(({ payoutId }) => payoutId);
    const { payouts, unreadable } = await readNamed(ledger.connection, payoutIds);
    const tally = new ApprovalTally(uploaded.length, context);
    for (const error of unreadable) tally.refuse(error);
    const found = new Map(payouts.map((payout) => [payout.payoutId, payout]));
    const stored: SignedApproval[] = [];
    for (const one of uploaded) {
      if (isAborted(signal)) throw new StoppedError(`Stopped after ${formatCount(stored.length, WORD[decision])}`);
      const payout = found.get(one.payoutId);
      if (payout === undefined) continue;
      try {
        await storeApproval(ledger, payout, one, view, describeSource({ file: path }));
        stored.push(one);
      } catch (error) {
        tally.refuse(error);
      }
    }
    context.write(`${formatCount(stored.length, WORD[decision])} of ${uploaded.length} stored.\n`);
    await sayKept(context, ledger.connection, stored, signal);
    tally.end();
  });
}

const WORD = { approve: 'approval', reject: 'rejection', unreject: 'unrejection' } as const;

async function readDecisions(
  context: CliContext,
  path: string,
  decision: ApprovalDecision,
  signal: AbortSignal,
): Promise<SignedApproval[]> {
  const source = await openSource(path, signal);
  const messages = new RowMessages(context);
  const uploaded: SignedApproval[] = [];
  const invalid = await readEachRow(source, messages.addProblem, (input) => {
    const approval = parseUploadedApproval(input);
    // The command must do what its name says.
    if (approval.decision !== decision) {
      const message = `must be ${decision}: use \`payouts ${approval.decision}\` (got "${approval.decision}")`;
      throw new InvalidInputError([{ field: 'decision', message }]);
    }
    uploaded.push(approval);
  });
  messages.end();
  if (invalid > 0) refuse(source.name, `${invalid} of its lines cannot be used; nothing was changed`);
  if (uploaded.length === 0) refuse(source.name, 'contains no signed decision');
  return uploaded;
}
