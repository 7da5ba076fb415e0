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
A journal knows what was sent since it began. With a keyring, a worker therefore sends nothing while payouts wait that were
signed before that: they may have been sent already. Without one, it sends nothing if its journal is empty and the ledger knows
another one of the same host. With this command you state that Redis is right about what was sent before now, if this journal
does not know it. If that is wrong, a payout is paid twice. A running worker continues by itself. If there is no journal yet,
one is made.

Before you state it:
  - The host that sent before is there: start its worker instead, or copy its journal folder here while both are stopped.
  - Its journal is lost: decide what is unknown, and compare what waits with the gateway's records.
  - The account is new: nothing was sent, so there is nothing to compare.

Examples:
  payouts journal adopt --reason "new account, nothing was sent yet"
  payouts journal adopt --yes --reason "host a is lost, compared with the gateway's records, ticket 812"
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
    .description('state that Redis is right about what this journal does not know')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print {journalId, at, by, reason} as JSON')
    .addHelpText('after', ADOPT_HELP_AFTER);
  addActorOptions(command).action(async ({ yes, json, ...flags }: AdoptFlags) => {
    const actor = await readActor(flags);
    const folder = readJournalFolder(context);
    if (!yes) {
      const question = `Is Redis right about what account ${folder.platformId} sent before now, and was nothing that waits sent already?`;
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
