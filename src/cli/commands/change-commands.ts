import { type Command, Option } from 'commander';
import type { Payout } from '../../ledger/payout.js';
import { HOLDABLE_STATES, UNSENT_STATES } from '../../ledger/states.js';
import { cancelPayout } from '../../queues/open-ledger.js';
import type { Change, ChangeFlags } from '../bulk/change-many.js';
import { withAccount, withOperator } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { addActorOptions, help, readActor, refuse } from '../context/flags.js';
import { describeKept, describeUndo, KEEP_COMMAND } from '../output/kept-note.js';
import { addSigningOptions, describeSigning, openDecider, SIGNING_HELP } from '../context/signer.js';

const CANCEL: Change = {
  from: UNSENT_STATES,
  to: 'cancelled',
  isSigned: () => false,
  changeOne: (context, payoutId, actor) =>
    withAccount(context, async (account) => cancelPayout(account, payoutId, actor)),
  done: 'is cancelled',
  then: '; it will not be sent',
  describe: (payouts) => `Cancel ${payouts}, never to be sent again`,
  describeDone: (payouts) => `${payouts} cancelled`,
};

const RETRY: Change = {
  from: ['rejected'],
  to: 'queued',
  isSigned: () => true,
  changeOne: (context, payoutId, actor, decider) =>
    withOperator(context, async (operator) => operator.retry(payoutId, actor), decider),
  done: 'is queued again',
  then: '',
  describe: (payouts, signing) => `Send ${payouts} again${signing}`,
  describeDone: (payouts) => `${payouts} queued again`,
};

const RELEASE: Change = {
  ...RETRY,
  from: ['held'],
  // Releasing a payout that was never sent needs no key.
  isSigned: ({ key, keyName }) => [key, keyName].some((flag) => flag !== undefined),
  changeOne: (context, payoutId, actor, decider, flags) => {
    const unpaidAttempt = readAttempt(flags);
    return withOperator(context, async (operator) => operator.release(payoutId, actor, { unpaidAttempt }), decider);
  },
  then: '; the worker checks it before it is sent',
  describe: (payouts) => `Release ${payouts}`,
};

const HOLD: Change = {
  from: HOLDABLE_STATES,
  to: 'held',
  isSigned: () => false,
  changeOne: (context, payoutId, actor) => withOperator(context, async (operator) => operator.hold(payoutId, actor)),
  done: 'is held',
  then: ', until `payouts release`',
  describe: (payouts) => `Hold ${payouts}`,
  describeDone: (payouts) => `${payouts} held`,
};

const MANY_HELP = `
Many at once: the options choose; a payout must meet all of them. They are counted and added up before anything is changed. The
same command continues after a stop, and leaves a payout that it changed before for the same reason (docs/runbooks).`;

const NO_REASON = 'no reason given';

export function defineCancelCommand(command: Command, context: CliContext): void {
  addChoiceOptions(
    command.argument('[payoutIds...]', 'the payouts; without them those that the options choose'),
    CANCEL,
  );
  addActorOptions(command, NO_REASON);
  addChange(command, context, CANCEL).addHelpText(
    'after',
    help(
      `Cancels only what may not have been paid: queued, held or rejected (otherwise exit code 4). Applications take \`cancelled\` for not
paid: if it was paid by other means, use \`payouts resolve ID --write-off\` instead. What was proved to be paid late, or is held as
sent_before, becomes written_off.${MANY_HELP}`,
      'payouts cancel invoice-77 invoice-78 --reason "ordered twice"',
      'payouts cancel --batch 2030-01-salaries --dry-run --reason "wrong file"',
      'payouts cancel --state rejected --message "wrong address" --reason "the recipients know"',
    ),
  );
}

export function defineHoldCommand(command: Command, context: CliContext): void {
  addChoiceOptions(command.argument('[payoutIds...]', 'the payouts; without them those that the options choose'), HOLD);
  addActorOptions(command);
  addChange(command, context, HOLD).addHelpText(
    'after',
    help(
      `Keeps queued payouts from being sent, and held ones from being sent once their rule lets them pass, until \`payouts release\`. Neither
the policy, approvals nor a new signature end it. Who can write to Redis can: with keys, \`payouts reject\` is safe from that, too.${MANY_HELP}`,
      'payouts hold invoice-77 --reason "the customer called, ticket 812"',
      'payouts hold --batch 2030-01-salaries --yes --reason "one amount looks wrong"',
      'payouts release --batch 2030-01-salaries --reason "the amount is right"',
    ),
  );
}

export function defineRetryCommand(command: Command, context: CliContext): void {
  addChoiceOptions(
    command.argument('[payoutIds...]', 'the payouts; without them those that the options choose'),
    RETRY,
  );
  addActorOptions(addSigningOptions(command));
  addChange(command, context, RETRY).addHelpText(
    'after',
    help(
      `Sends again what the gateway rejected. For an unknown payout see \`payouts resolve\`, for a held one \`payouts release\`.${MANY_HELP}\n${SIGNING_HELP}`,
      'payouts retry invoice-77 --reason "balance topped up"',
      'payouts retry --message "insufficient balance" --reason "balance topped up"',
      'payouts retry invoice-77 --key /etc/payouts/ann.pem --reason "balance topped up"',
    ),
  );
}

export function defineReleaseCommand(command: Command, context: CliContext): void {
  addChoiceOptions(
    command.argument('[payoutIds...]', 'the payouts; without them those that the options choose'),
    RELEASE,
  );
  addActorOptions(addSigningOptions(command));
  command.option('--attempt <number>', 'of one payout, with a key: the attempt that paid nothing (default: its last)');
  addChange(command, context, RELEASE).addHelpText(
    'after',
    help(
      `Remove the cause first (\`payouts get\` shows it): the worker checks each payout again, and holds it again if the cause stands.
A payout that was sent before, and paid nothing, needs the key of an operator, who signs that.${MANY_HELP}`,
      'payouts release invoice-77 invoice-78 --reason "the journal was adopted"',
      'payouts release --state held --yes --reason "the journal was adopted"',
      'payouts release invoice-77 --key /etc/payouts/ann.pem --reason "the gateway has no payment of it"',
    ),
  );
}

function addChoiceOptions(command: Command, { from }: Change): void {
  command
    .option('--batch <name>', 'the payouts of this batch')
    .addOption(new Option('--state <state>', 'the payouts in this state').choices(from))
    .option('--message <text>', 'those whose last message has this text in it')
    .option('--file <file>', 'the payouts that a CSV or JSON lines file names (payout_id), - for stdin')
    .option('--dry-run', 'count and add up many payouts, change nothing')
    .option('-y, --yes', 'do not ask; for many payouts needed where there is no terminal');
}

function addChange(command: Command, context: CliContext, change: Change): Command {
  return command
    .option('--json', 'print the payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .action(async (given: string | readonly string[] | undefined, flags: ChangeFlags) => {
      const payoutIds = given === undefined ? [] : [given].flat();
      checkChoice(payoutIds, flags, command);
      const actor = await readActor(flags);
      const [payoutId, ...others] = payoutIds;
      const isOne = payoutId !== undefined && others.length === 0;
      if (!isOne && change === CANCEL && actor.reason === NO_REASON)
        command.error('error: many payouts need a --reason');
      const attempt = readAttempt(flags);
      const decider = !flags.dryRun && change.isSigned(flags) ? await openDecider(context, flags) : undefined;
      if (!isOne) {
        if (attempt !== undefined) command.error('error: --attempt goes with one payoutId', { exitCode: 2 });
        // One payout needs none of it.
        const { changeMany } = await import('../bulk/change-many.js');
        await changeMany(context, change, payoutIds, flags, actor, decider);
        return;
      }
      const payout = await change.changeOne(context, payoutId, actor, decider, flags);
      if (flags.json) context.writeJson(payout);
      else if (change === CANCEL && payout.state === 'written_off') context.write(describeWrittenOff(payout));
      else context.write(`Payout ${payoutId} ${change.done}${describeSigning(decider)}${change.then}.\n`);
      if (change.to === 'queued') return;
      const signal = context.stopSignal();
      const kept = await withAccount(context, async ({ ledger: { connection } }) => {
        const undo = change === CANCEL && isUndoable(payout) ? describeUndo([payoutId], connection.platformId) : '';
        return `${await describeKept(connection, KEEP_COMMAND, signal)}${undo}`;
      });
      (flags.json ? context.writeError : context.write)(kept);
    });
}

/** What the undo refuses at once is not offered. */
function isUndoable({ state, attempt, signed, approvals = [] }: Payout): boolean {
  return state === 'cancelled' && attempt === 0 && signed === undefined && approvals.length === 0;
}

/** Cancelled, it would say that nothing was paid. */
function describeWrittenOff({ payoutId, lateGatewayId }: Payout): string {
  if (lateGatewayId === undefined)
    return `Payout ${payoutId} is written off, because a send journal has an attempt or an end of it, so it may have been paid; it will not be sent. Ask the gateway, and tell its application what it says.\n`;
  return `Payout ${payoutId} is written off, because it was paid late as ${lateGatewayId}; it will not be sent. Tell its application that it was paid.\n`;
}

function checkChoice(
  payoutIds: readonly string[],
  { batch, state, file, message, dryRun, yes }: ChangeFlags,
  command: Command,
): void {
  const isMany = [batch, state, file, message].some((choice) => choice !== undefined);
  const isNamed = payoutIds.length > 0;
  if (!isNamed && !isMany) command.error('error: give a payoutId, --batch, --state, --message or --file');
  if (isNamed && (isMany || dryRun || yes)) {
    command.error(
      'error: --batch, --state, --message, --file, --dry-run and --yes are for many payouts: leave the payoutId out',
    );
  }
  if (file !== undefined && batch !== undefined) command.error('error: give --file or --batch, not both');
}

function readAttempt({ attempt, key }: ChangeFlags): number | undefined {
  if (attempt === undefined) return undefined;
  const message = !/^[1-9]\d{0,8}$/.test(attempt)
    ? `must be a whole number from 1 on, not ${JSON.stringify(attempt)}`
    : key === undefined
      ? 'states under signature that an attempt paid nothing: give --key too'
      : undefined;
  if (message !== undefined) refuse('--attempt', message);
  return Number(attempt);
}
