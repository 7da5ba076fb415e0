import type { Command } from 'commander';
import { ConflictError } from '../../base/errors.js';
import { formatCount } from '../../base/format.js';
import { readJournal } from '../../journal/journal-reader.js';
import type { Actor } from '../../ledger/payout.js';
import { shellQuote } from '../../operator/next-steps.js';
import type { PauseState } from '../../operator/core-operator.js';
import { type JournalFolder, readJournalFolder, withOperator } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { addActorOptions, readActor, help } from '../context/flags.js';
import {
  addSigningOptions,
  describeDecider,
  describeSigning,
  openDecider,
  SIGNING_HELP,
  type SigningFlags,
  type Decider,
} from '../context/signer.js';

export function definePauseCommand(command: Command, context: CliContext): void {
  addActorOptions(command, 'paused by hand')
    .option('--json', 'print {changed, paused, pausedReason, pausedBy, pausedAt, pauses} as JSON')
    .addHelpText(
      'after',
      help(
        'Nothing is sent once this has returned, except the one payout that may be on its way already. Payouts are still accepted.',
        'payouts pause --reason "the gateway announced maintenance"',
      ),
    )
    .action(async (flags: Actor & { readonly json?: true }) => {
      const actor = await readActor(flags);
      const result = await withOperator(context, async (operator) => operator.pause(actor));
      const { platformId, changed, pauses } = result;
      const why = describePauses(pauses);
      if (flags.json) context.writeJson(result);
      else context.write(`Account ${platformId} ${changed ? 'is' : 'was already'} paused: ${why}\n`);
    });
}

export function defineResumeCommand(command: Command, context: CliContext): void {
  addActorOptions(addSigningOptions(command), 'resumed by hand')
    .option('--of <name>', 'whose pause ends, of several: a person, worker or adoption (default: your own)')
    .option('--json', 'print {changed, paused, pauses, …} as JSON')
    .addHelpText(
      'after',
      help(
        `Look first at why the account was paused (\`payouts stats\`): if the gateway blocked it, the next send may prolong that.
Each who paused it has a pause of their own, and it sends again once none remains. An account that a send journal objects to is not
resumed (exit code 4). ${SIGNING_HELP}`,
        'payouts resume --reason "the gateway has lifted the block"',
        'payouts resume --key ssh:$HOME/.ssh/id_ed25519_sk.pub --reason "the gateway has lifted the block"',
      ),
    )
    .action(async (flags: Actor & SigningFlags & { readonly of?: string; readonly json?: true }) => {
      const actor = await readActor(flags);
      const decider = await openDecider(context, flags);
      const result = await withOperator(context, async (operator) => operator.resume(actor, { of: flags.of }), decider);
      if (flags.json) context.writeJson(result);
      else context.write(`${describeResume(result, decider)}\n`);
    });
}

/** A pause that remains may be that of a worker, which stopped for a reason: it is named with its command. */
function describeResume({ platformId, changed, pauses }: PauseState, decider: Decider | undefined): string {
  const account = `Account ${platformId}`;
  if (pauses.length > 0) {
    const commands = pauses.map(
      ({ by }) => `\`payouts resume --account ${platformId} --of ${shellQuote(by)} --reason WHY\``,
    );
    return `One pause ended. ${account} stays paused: ${describePauses(pauses)}. If the cause is gone: ${commands.join(', ')}`;
  }
  if (changed) return `${account} sends again${describeSigning(decider)}.`;
  if (decider === undefined) return `${account} was not paused.`;
  return `${account} was not paused; what ${describeDecider(decider)} signed is kept for workers that keep a pause of their own.`;
}

function describePauses(pauses: PauseState['pauses']): string {
  return pauses.map(({ reason, by }) => `${reason} (by ${by})`).join('; ');
}

interface NewAccountFlags extends Actor {
  readonly yes?: true;
  readonly json?: true;
}

export function defineNewAccountCommand(command: Command, context: CliContext): void {
  addActorOptions(command, 'a new account')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .option('--json', 'print {platformId, changed} as JSON')
    .addHelpText(
      'after',
      help(
        `You state that nothing was ever sent for the account, and that no process sends for it, here or with another Redis. The first worker
then begins at once, without the 20 s in which a journal could object. Not for a Redis that was emptied, exchanged or restored: two
workers may then send at the same time, and payouts may be paid twice (docs/deploy.md).`,
        'payouts new-account --reason "first deployment"',
        'payouts new-account --yes --reason "first deployment"',
      ),
    )
    .action(async ({ yes, json, ...flags }: NewAccountFlags) => {
      const actor = await readActor(flags);
      const folder = readJournalFolder(context);
      const { platformId } = folder;
      await checkJournal(folder);
      const question = `State that account ${platformId} is new: nothing was ever sent for it, no process sends for it, and its Redis was not emptied?`;
      if (!yes) await confirm(question, context.terminal);
      const changed = await withOperator(context, async (operator) => operator.declareNew(actor));
      if (json) context.writeJson({ platformId, changed });
      else {
        const noted = changed ? 'Noted' : 'Noted before';
        context.write(`${noted}: account ${platformId} is new. Its first worker begins to send after one interval.\n`);
      }
    });
}

/**
 * @throws ConflictError if this host's journal has a send of the account
 * @throws Error if the journal cannot be read
 */
async function checkJournal({ dir, platformId }: JournalFolder): Promise<void> {
  const sends = (await readJournal(dir, platformId))?.ledger?.sends ?? 0;
  if (sends === 0) return;
  throw new ConflictError(
    `Account ${platformId} is not new: the send journal in ${dir} has ${formatCount(sends, 'send')}. Start the worker, which compares it with the ledger`,
    ['journal'],
  );
}
