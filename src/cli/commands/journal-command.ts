import type { Command } from 'commander';
import { formatTime } from '../../format.js';
import { FileSendJournal } from '../../journal/file-send-journal.js';
import { readJournal } from '../../journal/read-journal.js';
import type { Actor } from '../../ledger/actor.js';
import { addActorOptions, readActor } from '../context/actor-options.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { noJournal, readJournalFolder, type JournalFolder } from '../context/journal-place.js';

interface AdoptFlags extends Actor {
  readonly yes?: true;
  readonly json?: true;
}

const HELP_AFTER = `
Run them on the worker's host, as the worker's user, with its SEND_JOURNAL_DIR and GATEWAY_PLATFORM_ID. They need no Redis, and
a worker may be running: it reads what they add. Hosts that have journals of their own each need it.

Examples:
  payouts journal adopt --reason "new account, nothing was sent yet"
  payouts journal upgrade
`;

const ADOPT_HELP_AFTER = `
A journal knows what was sent since it began. In signed mode the worker therefore holds what was signed before that: it may
have been sent already. With this command you state that it was not: before now, nothing of this account was sent that this
journal does not know. If that is wrong, a payout can be paid twice. Where there is no journal yet, one is made.

Examples:
  payouts journal adopt --reason "new account, nothing was sent yet"
  payouts journal adopt --yes --reason "journal of the old host copied, see ticket 812"
`;

const UPGRADE_HELP_AFTER = `
A worker upgrades the journal by itself when it starts; this does it before. From then on each line names the one before it by
its hash. No earlier line is changed, and a worker of the version before refuses the journal.

Examples:
  payouts journal upgrade
  payouts journal upgrade --json
`;

/** Defines `payouts journal`: what an operator does with the send journal of this host. */
export function defineJournalCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  addAdopt(command, context);
  addUpgrade(command, context);
}

function addAdopt(parent: Command, context: CliContext): void {
  const command = parent
    .command('adopt')
    .description('state that nothing was sent that this journal does not know')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print {journalId, at, by, reason} as JSON')
    .addHelpText('after', ADOPT_HELP_AFTER);
  addActorOptions(command).action(async ({ yes, json, ...flags }: AdoptFlags) => {
    const actor = await readActor(flags);
    const folder = readJournalFolder(context);
    if (!yes) {
      const question = `Was nothing of account ${folder.platformId} sent before now that the journal in ${folder.dir} does not know?`;
      await confirm(question, { terminal: context.terminal });
    }
    const note = { at: Date.now(), by: actor.by, reason: actor.reason };
    const journalId = await withJournal(folder, async (journal) => {
      await journal.noteComplete(note);
      return journal.journalId;
    });
    if (json) context.writeJson({ journalId, ...note });
    else
      context.write(`Journal ${journalId} counts as complete since ${formatTime(new Date(note.at).toISOString())}.\n`);
  });
}

function addUpgrade(parent: Command, context: CliContext): void {
  parent
    .command('upgrade')
    .description("bring the journal to this version's format")
    .option('--json', 'print {journalId, bornAt} as JSON')
    .addHelpText('after', UPGRADE_HELP_AFTER)
    .action(async ({ json }: { readonly json?: true }) => {
      const folder = readJournalFolder(context);
      if ((await readJournal(folder.dir, folder.platformId)) === undefined) throw noJournal(folder);
      const result = await withJournal(folder, ({ journalId, bornAt }) => ({ journalId, bornAt }));
      const { journalId, bornAt } = result;
      if (json) context.writeJson(result);
      else {
        const since =
          bornAt === 0 ? 'and counts as complete' : `and begins at ${formatTime(new Date(bornAt).toISOString())}`;
        context.write(`Journal ${journalId} has the format of this version ${since}.\n`);
      }
    });
}

async function withJournal<Result>(
  { dir, platformId }: JournalFolder,
  use: (journal: FileSendJournal) => Result | Promise<Result>,
): Promise<Result> {
  const journal = await FileSendJournal.open({ dir, platformId });
  try {
    return await use(journal);
  } finally {
    await journal.close();
  }
}
