import { type Command, InvalidArgumentError, Option } from 'commander';
import { formatExactMoney, formatTimeUtc } from '../../base/format.js';
import { PayoutOperator } from '../../control/payout-operator.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { Actor } from '../../ledger/payout.js';
import { type PayoutLedger, toChangeError } from '../../ledger/payout-ledger.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { DecidedPayout, Resolution } from '../../operator/resolve-payout.js';
import { matchGatewayList } from '../bulk/match-gateway-list.js';
import { type ResolveFlags, resolveMany } from '../bulk/resolve-many.js';
import { withAccount, withGateway } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { addActorOptions, help, nameFlags, readActor, refuse } from '../context/flags.js';
import {
  addSigningOptions,
  describeDecider,
  describeSigning,
  openDecider,
  SIGNING_HELP,
  type Decider,
} from '../context/signer.js';
import { formatFacts } from '../output/format-table.js';
import { describeKept, KEEP_COMMAND } from '../output/kept-note.js';

const HELP = help(
  `Before you decide, ask the gateway's operator: a recipient's wallet without the payment proves nothing. --not-sent queues the payout again: if it was paid
after all, it is paid twice. It is about one --attempt, as \`payouts get\` shows it; refused once another was sent, and while the request
may still arrive, which \`payouts get\` shows too. What the gateway said before that proves nothing, nor does what a gateway says that
stood still and has yet to read what waits in its own buffers.
--sent asks the gateway about the payment first, and needs GATEWAY_BASE_URL and GATEWAY_SECRET_KEY (or GATEWAY_SECRET_KEY_FILE).

Many at once: --file is CSV with the columns payout_id and, for --sent, gateway_id, for --not-sent, attempt, as \`payouts list --csv\`
writes it, or JSON lines; a row from before the attempt is refused (updated_at);
--state unknown takes all, for --write-off, which of one payout also takes what is queued, held or rejected: if it was paid otherwise,
\`cancelled\` would say that nothing was. --not-sent of many needs --file with only the rows that the gateway confirmed as not
paid. It asks for their number, or takes it from --expect-count. The same command continues after a stop.
--from-gateway reads the gateway's own list of payments (CSV or JSON lines) and matches it with what is unknown: by gateway_id, or by
address, amount and time where exactly one fits. It shows what matches, what is ambiguous and what has no match, and with --apply
follows the payments that match, once the gateway confirms each. No match is no proof: it never states --not-sent.
--not-sent is signed. ${SIGNING_HELP} docs/runbooks/unknown.md has the whole procedure.`,
  'payouts resolve invoice-77 --sent --gateway-id 3f1c0a… --reason "support ticket 812"',
  'payouts resolve invoice-77 --not-sent --attempt 1 --reason "the gateway never received it, ticket 812"',
  'payouts resolve invoice-77 --write-off --reason "paid by bank transfer"',
  'payouts list --state unknown --all --csv > unknown.csv',
  'payouts resolve --from-gateway payments.csv --map gateway_id=Hash,address=To,amount=Amount,time=Created --reason "ticket 812"',
  'payouts resolve --file unpaid.csv --not-sent --expect-count 3 --reason "never received, ticket 812"',
);

export function defineResolveCommand(command: Command, context: CliContext): void {
  command
    .argument('[payoutId]', 'the payout; without it --file or --state')
    .option('--sent', 'it was sent: follow the payment --gateway-id')
    .option('--gateway-id <id>', 'with --sent: what the payment is called at the gateway (API v1: its txhash)')
    .option('--force', 'with --sent: take the payment without asking the gateway')
    .option('--not-sent', 'it was not sent: queue it again, it will be paid')
    .option('--write-off', 'a person settled it outside the queue, paid or not: it will not be sent again')
    .option('--attempt <n>', 'with --not-sent: the attempt that was not sent')
    .option('--file <file>', 'the payouts that a file names, - for stdin')
    .option('--from-gateway <file>', "match the gateway's own list of payments with what is unknown, - for stdin")
    .option('--map <columns>', 'with --from-gateway: which column has what, as gateway_id=…,address=…,amount=…,time=…')
    .option('--apply', 'with --from-gateway: follow the payments that match; without it nothing is changed')
    .addOption(new Option('--state <state>', 'all payouts in this state').choices(['unknown']))
    .option('--dry-run', 'with --file or --state: count and add up, change nothing')
    .option('-y, --yes', 'do not ask; with --file or --state needed without a terminal')
    .option('--expect-count <n>', 'with --file and --not-sent: how many payouts are sent again', parseCount);
  addActorOptions(addSigningOptions(command))
    .option('--json', 'print the payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .addHelpText('after', HELP)
    .action(async (payoutId: string | undefined, flags: ResolveFlags) => {
      const actor = await readActor(flags);
      if (flags.fromGateway !== undefined) {
        requireListAlone(payoutId, flags, command);
        await matchGatewayList(context, flags, actor);
        return;
      }
      const kind = parseKind(flags, command);
      const decision = payoutId === undefined ? undefined : parseDecision(kind, flags, command);
      if (payoutId === undefined) requireMany(kind, flags, command);
      const decider = kind === 'not_sent' && !flags.dryRun ? await openDecider(context, flags) : undefined;
      if (payoutId === undefined || decision === undefined) await resolveMany(context, kind, flags, actor, decider);
      else await resolveOne(context, payoutId, decision, flags, actor, decider);
    });
}

const OUTCOME: Readonly<Record<Resolution['kind'], string>> = {
  sent: 'its payment is followed until it is completed or failed',
  not_sent: 'it is sent again as soon as it is its turn',
  write_off: 'it is not sent again, and says nothing about a payment',
};

async function resolveOne(
  context: CliContext,
  payoutId: string,
  decision: Resolution,
  { attempt, force, yes, json }: ResolveFlags,
  actor: Actor,
  decider: Decider | undefined,
): Promise<void> {
  const resolve = async (gateway?: Gateway): Promise<void> => {
    const payout = await withAccount(context, async (account) => {
      const asks = decision.kind === 'not_sent' && !yes && context.terminal.input.isTTY === true;
      const decided = { payoutId, ...(attempt !== undefined && { attempt: parseAttempt(attempt) }) };
      if (asks) await confirmSendAgain(context, account.ledger, decided, decider);
      const operator = new PayoutOperator({ account, gateway, ...decider });
      return nameFlags(async () => operator.resolve(decided, decision, actor));
    });
    if (json) context.writeJson(payout);
    else
      context.write(`Payout ${payoutId} is ${payout.state}: ${OUTCOME[decision.kind]}${describeSigning(decider)}.\n`);
    if (decision.kind !== 'write_off') return;
    const signal = context.stopSignal();
    const kept = await withAccount(context, async ({ ledger }) =>
      describeKept(ledger.connection, KEEP_COMMAND, signal),
    );
    (json ? context.writeError : context.write)(kept);
  };
  if (decision.kind !== 'sent' || force) await resolve();
  else await withGateway(context, resolve);
}

function requireMany(
  kind: Resolution['kind'],
  { gatewayId, attempt, file, state, yes, expectCount }: ResolveFlags,
  command: Command,
): void {
  if ((file === undefined) === (state === undefined)) {
    command.error('error: give a payoutId, --file or --state');
  }
  if (gatewayId !== undefined) command.error('error: --gateway-id is for one payout: a file has a column gateway_id');
  if (attempt !== undefined) command.error('error: --attempt is for one payout: a file has a column attempt');
  if (file === undefined && kind === 'sent') command.error('error: --sent needs --file, with a column gateway_id');
  if (kind === 'not_sent') {
    if (file === undefined) command.error(NOT_SENT_NEEDS_FILE);
    if (yes) command.error('error: --yes does not answer for --not-sent of many payouts: give --expect-count N');
  } else if (expectCount !== undefined) command.error('error: --expect-count belongs to --not-sent');
}

function requireListAlone(payoutId: string | undefined, flags: ResolveFlags, command: Command): void {
  const { sent, notSent, writeOff, gatewayId, force, attempt, file, state, dryRun, expectCount } = flags;
  const others = [payoutId, sent, notSent, writeOff, gatewayId, force, attempt, file, state, dryRun, expectCount];
  if (others.every((other) => other === undefined)) return;
  command.error('error: --from-gateway goes with --map, --apply, --json, --reason and --by alone');
}

const NOT_SENT_NEEDS_FILE =
  'error: --not-sent of many payouts needs --file: what was paid would be paid twice. Write the file with `payouts list --state unknown --all --csv > unknown.csv`, and keep the rows that the gateway confirmed as not paid';

const NOT_SENT_NEEDS_ATTEMPT =
  'error: --not-sent needs --attempt, the number of the attempt that was not sent: `payouts get` shows it';

function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a number of payouts.');
  return Number(text);
}

/** In the action, so that the commands that are shown, with their N, can be parsed. */
function parseAttempt(text: string): number {
  if (!/^\d{1,6}$/.test(text)) refuse('--attempt', `must be the number of an attempt (got ${JSON.stringify(text)})`);
  return Number(text);
}

function parseKind({ sent, notSent, writeOff, force }: ResolveFlags, command: Command): Resolution['kind'] {
  if ([sent, notSent, writeOff].filter(Boolean).length !== 1) {
    command.error('error: give one of --sent, --not-sent and --write-off');
  }
  if (sent) return 'sent';
  if (force) command.error('error: --force belongs to --sent');
  return notSent ? 'not_sent' : 'write_off';
}

function parseDecision(
  kind: Resolution['kind'],
  { gatewayId, attempt, force, file, state, dryRun, expectCount }: ResolveFlags,
  command: Command,
): Resolution {
  if (file !== undefined || state !== undefined || dryRun || expectCount !== undefined) {
    command.error('error: --file, --state, --dry-run and --expect-count are for many payouts: leave the payoutId out');
  }
  if (kind === 'not_sent' && attempt === undefined) command.error(NOT_SENT_NEEDS_ATTEMPT);
  if (kind !== 'not_sent' && attempt !== undefined) command.error('error: --attempt belongs to --not-sent');
  if (kind !== 'sent') {
    if (gatewayId !== undefined) command.error('error: --gateway-id belongs to --sent');
    return { kind };
  }
  if (gatewayId === undefined)
    command.error('error: --sent needs --gateway-id, what the payment is called at the gateway');
  return { kind, gatewayId, unchecked: force === true };
}

/** Shows the payment that would be repeated and its decider, and asks. */
async function confirmSendAgain(
  { terminal, colours, writeError }: CliContext,
  ledger: PayoutLedger,
  { payoutId, attempt = 0 }: DecidedPayout,
  decider: Decider | undefined,
): Promise<void> {
  const payout = await ledger.require(payoutId);
  if (attempt !== payout.attempt && payout.state === 'unknown') {
    const refused = { kind: 'sent_since', attempt: payout.attempt } as const;
    throw toChangeError(refused, { payoutId, from: 'unknown', to: 'queued' }, Date.now());
  }
  const { currencies } = await readGatewayFacts(ledger.connection);
  const facts = formatFacts(colours, [
    ['amount', formatExactMoney(payout.amount, payout.paymentId, currencies)],
    ['payment id', payout.paymentId],
    ['address', payout.addressTo],
    [`${payout.state} since`, formatTimeUtc(payout.updatedAt)],
    ['could arrive until', payout.inFlightUntil && `${formatTimeUtc(payout.inFlightUntil)}: look again after that`],
    ['attempts so far', payout.attempt],
    ['not sent was', `attempt ${attempt}`],
    ['signed with', decider && describeDecider(decider)],
  ]);
  writeError(`${payoutId}\n${facts}`);
  await confirm('Send it again? If it was paid, it is paid twice.', terminal);
}
