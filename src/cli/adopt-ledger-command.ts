import type { Command } from 'commander';
import { readConfig } from '../config.js';
import { InvalidConfigError, NotFoundError } from '../errors.js';
import { readAccountStats } from '../ledger/account-stats.js';
import { findForgottenSends, type ForgottenSend } from '../ledger/adopt-ledger.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import { JOURNAL_WITNESS } from '../ledger/witness.js';
import type { AccountAccess } from '../producer/account-access.js';
import { FileSendJournal } from '../worker/file-send-journal.js';
import { findDisagreement, type JournaledSend } from '../worker/send-journal.js';
import { adoptByJournal, type Adoption } from './adopt-by-journal.js';
import type { CliContext } from './cli-context.js';
import { confirm } from './confirm.js';
import { formatTable } from './format-table.js';
import { formatTime, shorten } from './format-text.js';
import { addPersonOptions, readPerson, type PersonFlags } from './person.js';
import { withAccount } from './with-account.js';

interface Flags extends PersonFlags {
  readonly yes?: true;
  readonly json?: true;
}

const SHOWN_SENDS = 20;

const HELP_AFTER = `
For a Redis that was flushed, exchanged, or put back to an older copy. The worker then refuses to send, because payouts
that look queued may have been sent. If there is a newer copy of the Redis data, bring that back instead.

Run it where the worker runs, with its SEND_JOURNAL_DIR: every send in the journal that the ledger does not know makes
its payout unknown, and \`payouts resolve\` decides. The running worker then goes on by itself. Where workers of the
account run on several hosts, each has a journal of its own: \`payouts pause\` first, run this on every one of them, and
only then \`payouts resume\`.

Payouts that were accepted after that copy and never sent are gone: let the application enqueue them again. Those that
are still there are found by their payoutId and not doubled.

Examples:
  payouts adopt-ledger
  payouts adopt-ledger --yes --reason "disk failure, backup of 03:00 restored"
`;

/** Adds `payouts adopt-ledger`. */
export function registerAdoptLedgerCommand(program: Command, context: CliContext): void {
  const command = program
    .command('adopt-ledger')
    .description('accept a Redis that forgot sends which the journal knows');
  addPersonOptions(command, 'the ledger came back without the newest sends')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print {disagreement, unknown, …} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Flags) => {
      const person = readPerson(flags);
      const { SEND_JOURNAL_DIR: dir } = readConfig(['SEND_JOURNAL_DIR'], context.environment);
      await withAccount(context, async (account) => {
        const disagreement = await compare(account, dir);
        if (disagreement === undefined) {
          if (flags.json) context.writeJson({ disagreement: null, unknown: [] });
          else context.write('The send journal and the ledger agree: there is nothing to adopt.\n');
          return;
        }
        context.writeError(describeDisagreement(disagreement));
        if (!flags.yes) await confirm('Adopt this ledger?');
        const adoption = await adoptByJournal(account, dir, person);
        if (flags.json) context.writeJson({ disagreement: disagreement.reason, ...adoption });
        else context.write(describeAdoption(adoption));
      });
    });
}

interface Disagreement {
  readonly reason: string;
  readonly forgotten: readonly ForgottenSend<JournaledSend>[];
}

/** What the journal and the ledger disagree about; changes neither. */
async function compare({ ledger, clock }: AccountAccess, dir: string): Promise<Disagreement | undefined> {
  const { connection } = ledger;
  const { platformId } = connection;
  const journal = await readJournal(dir, platformId);
  if (journal.ledger === undefined) {
    throw new NotFoundError(
      `There is no send journal of account ${platformId} in ${dir}: run this where the worker runs, with its SEND_JOURNAL_DIR`,
    );
  }
  const senderLedger = new RedisSenderLedger(connection, 'reply');
  const reason =
    (await findDisagreement(journal, await senderLedger.readSender(), senderLedger, clock.wallNow())) ??
    (await findLeftPause(connection));
  if (reason === undefined) return undefined;
  return { reason, forgotten: await findForgottenSends(connection, journal.lastSends(Infinity)) };
}

/**
 * A worker's objection may reach Redis when the ledger has just been adopted, and a worker may know of a begin that never
 * came to its journal. Only an adoption lifts such a pause.
 */
async function findLeftPause(connection: LedgerConnection): Promise<string | undefined> {
  const { pausedBy, pausedReason } = await readAccountStats(connection);
  if (pausedBy !== JOURNAL_WITNESS) return undefined;
  return `The send journal and the ledger agree, but a worker's objection still pauses the account: ${String(pausedReason)}`;
}

async function readJournal(dir: string, platformId: number): ReturnType<typeof FileSendJournal.read> {
  try {
    return await FileSendJournal.read({ dir, platformId });
  } catch (error) {
    throw new InvalidConfigError([{ field: 'SEND_JOURNAL_DIR', message: (error as Error).message }]);
  }
}

function describeDisagreement({ reason, forgotten }: Disagreement): string {
  const rows = forgotten
    .slice(0, SHOWN_SENDS)
    .map(({ send: { payoutId, attempt, at, request }, state }) => [
      '',
      payoutId,
      state ?? 'not there',
      formatTime(new Date(at).toISOString()),
      String(attempt),
      request.amount,
      String(request.paymentId),
      shorten(request.addressTo),
    ]);
  const head = ['', 'PAYOUT', 'IN THE LEDGER', 'SENT (UTC)', 'ATTEMPT', 'AMOUNT', 'PAYMENT ID', 'ADDRESS'];
  const more = forgotten.length - rows.length;
  return [
    `${reason}\n`,
    `\nIn the journal, but unknown to the ledger: ${forgotten.length} sends.\n`,
    rows.length === 0 ? '' : formatTable([head, ...rows], [4, 5, 6]),
    more === 0 ? '' : `  … and ${more} more\n`,
    '\n',
  ].join('');
}

function describeAdoption({ unknown, epoch }: Adoption): string {
  const payouts = unknown.map((payoutId) => `  ${payoutId}\n`).join('');
  const what =
    unknown.length === 0
      ? 'No payout became unknown.\n'
      : `These became unknown, \`payouts resolve\` decides about each:\n${payouts}`;
  return `The ledger is adopted (epoch ${epoch}); the worker goes on with it.\n${what}`;
}
