import type { Command } from 'commander';
import { isCancelledFor, UNDO_WITHIN_MS, undoCancels, undoIdOf } from '../../operator/undo-cancel.js';
import type { Actor, Payout } from '../../ledger/payout.js';
import { PAYOUTS_PER_CHANGE } from '../../ledger/payout-ledger.js';
import { readSelectionFile } from '../bulk/read-selection-file.js';
import { runBulk } from '../bulk/run-bulk.js';
import type { Selection } from '../bulk/survey-payouts.js';
import { withAccount, withOperator } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { requireOperator } from '../context/confirm.js';
import { addActorOptions, checkBatch, help, readActor } from '../context/flags.js';

interface Flags extends Actor {
  readonly batch?: string;
  readonly file?: string;
  readonly cancelledFor?: string;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly json?: true;
}

export function defineUncancelCommand(command: Command, context: CliContext): void {
  addActorOptions(
    command
      .argument('[payoutIds...]', 'the cancelled payouts; without them those that the options choose')
      .option('--batch <name>', 'the payouts of this batch')
      .option('--file <file>', 'the payouts that a CSV or JSON lines file names (payout_id), - for stdin')
      .option('--cancelled-for <reason>', 'those that were cancelled for this very reason')
      .option('--dry-run', 'count and add up many payouts, change nothing')
      .option('-y, --yes', 'do not ask; for many payouts needed where there is no terminal'),
  )
    .option('--json', 'print the new payout as JSON; of many {payouts, totals, others, changed, refused, …}')
    .addHelpText(
      'after',
      help(
        `Undoes what people cancelled in the last hour: each payment is accepted as a new payout of the same data, with the id that
\`payouts cancel\` printed (ID.again). Asked twice, it is still one payout. The cancelled payout stays cancelled, and its application was
told so: tell it of the new id first, or it may give the money back besides. Refused (exit code 4) is what was ever begun, rejected by a
person or signed, what its application cancelled, what no worker has on its disk as cancelled, and what may have been enqueued again.`,
        'payouts uncancel invoice-77 --reason "the order stands"',
        'payouts uncancel --batch 2030-01-salaries --cancelled-for "wrong file" --reason "it was the right file"',
      ),
    )
    .action(async (payoutIds: readonly string[], flags: Flags) => {
      const isChosen = [flags.batch, flags.file, flags.cancelledFor].some((choice) => choice !== undefined);
      if (payoutIds.length === 0 && !isChosen)
        command.error('error: give a payoutId, --batch, --file or --cancelled-for');
      if (payoutIds.length > 0 && (isChosen || flags.dryRun || flags.yes))
        command.error(
          'error: --batch, --file, --cancelled-for, --dry-run and --yes are for many: leave the payoutId out',
        );
      if (flags.file !== undefined && flags.batch !== undefined)
        command.error('error: give --file or --batch, not both');
      const actor = await readActor(flags);
      const [payoutId, ...others] = payoutIds;
      if (payoutId === undefined || others.length > 0) await undoMany(context, payoutIds, flags, actor);
      else await undoOne(context, payoutId, flags, actor);
    });
}

async function undoOne(context: CliContext, payoutId: string, { json }: Flags, actor: Actor): Promise<void> {
  const payout = await withOperator(context, async (operator) => operator.undoCancel(payoutId, actor));
  if (json) context.writeJson(payout);
  else context.write(`Payout ${payoutId} stays cancelled; its payment is ${payout.payoutId} now, ${payout.state}.\n`);
}

async function undoMany(context: CliContext, payoutIds: readonly string[], flags: Flags, actor: Actor): Promise<void> {
  const { batch, file, cancelledFor, dryRun } = flags;
  checkBatch(batch);
  // Naming each payout is a decision: only a choice by options needs a question.
  const yes = payoutIds.length > 0 || flags.yes === true;
  if (!yes && !dryRun) requireOperator(context.terminal, file);
  const signal = context.stopSignal();
  const selection = await select(context, payoutIds, flags, signal);
  await withAccount(context, async (account) => {
    const oldest = account.clock.wallNow() - UNDO_WITHIN_MS;
    const bulk = {
      atOnce: PAYOUTS_PER_CHANGE,
      everyMs: 'rest',
      from: ['cancelled'],
      matches: (payout: Payout) =>
        selection.kind === 'named' || (Date.parse(payout.updatedAt) >= oldest && isCancelledFor(payout, cancelledFor)),
      wasChanged: () => false,
      apply: async (payouts: readonly { readonly payoutId: string }[]) =>
        undoCancels(
          account,
          payouts.map(({ payoutId }) => payoutId),
          actor,
          true,
        ),
      describe: (payouts: string) => `Pay ${payouts} after all, each under a new id (such as ${undoIdOf('ID')})`,
      describeDone: (payouts: string) => `${payouts} accepted under new ids`,
    } as const;
    await runBulk(context, account, bulk, selection, { ...flags, yes }, signal);
  });
}

async function select(
  context: CliContext,
  payoutIds: readonly string[],
  { batch, file }: Flags,
  signal: AbortSignal,
): Promise<Selection> {
  if (payoutIds.length > 0)
    return { kind: 'named', payouts: [...new Set(payoutIds)].map((payoutId) => ({ payoutId })) };
  if (batch !== undefined) return { kind: 'batch', batch };
  if (file === undefined) return { kind: 'all' };
  return { kind: 'named', payouts: await readSelectionFile(context, file, 'nothing', signal) };
}
