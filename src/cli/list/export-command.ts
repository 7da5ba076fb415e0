import type { Command } from 'commander';
import { readArchive } from '../../archive/read-archive.js';
import { NotFoundError } from '../../base/errors.js';
import { formatCount } from '../../base/format.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readActivity } from '../../ledger/reads/activity.js';
import { readAudited, readRemoved, scanPayoutIds } from '../../ledger/reads/read-audited.js';
import { readEvents } from '../../producer/events/payout-events.js';
import { readAuditRows } from '../audit/audit-command.js';
import { namingArchive, readArchiveFolder, readJournalFolder, withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { help } from '../context/flags.js';
import { findKeyring } from '../context/keys.js';
import { startProgress } from '../import/progress.js';
import { toPayoutJson } from '../output/payout-json.js';

/** The other lines are `account`, the first, and `end`, the last, without which a file is cut off. */
const KINDS = ['payout', 'unreadable', 'removed', 'send', 'activity', 'event'] as const;
type Kind = (typeof KINDS)[number];

const PAGE_SIZE = 500;

export function defineExportCommand(command: Command, context: CliContext): void {
  command
    .addHelpText(
      'after',
      help(
        `Each line is a JSON object with its kind: account (the first line), payout (with its history and approvals), unreadable, send
(an attempt, from the send journal), removed (the id of what PAYOUT_RETENTION_DAYS removed, with its final state), activity (what operators did), event, end (the last line, with the number of each). Payouts
that were removed come from PAYOUT_ARCHIVE_DIR, sends from SEND_JOURNAL_DIR: run the command on the worker's host.
Redis keeps about the newest 10,000 acts, and the events of some weeks. It may run while payouts are sent; signatures are left out.`,
        'payouts export > payouts.jsonl',
        'payouts export | node node_modules/payout-queue/examples/bookkeeping.mjs books.db',
      ),
    )
    .action(async () => {
      const { platformId } = readJournalFolder(context);
      await withAccount(context, async ({ ledger: { connection } }) => {
        context.writeJson({ kind: 'account', platformId, at: new Date().toISOString() });
        const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
        const progress = startProgress('Exported:', undefined, context.terminal.output);
        let exported = 0;
        const write = (kind: Kind, fields: object): void => {
          counts[kind] += 1;
          progress.update((exported += 1));
          context.writeJson({ kind, ...fields });
        };
        await writeAll(connection, write, context).finally(progress.stop);
        context.writeJson({ kind: 'end', counts });
        if (counts.unreadable > 0)
          context.writeError(
            `${formatCount(counts.unreadable, 'payout')} cannot be read: see the lines "unreadable".\n`,
          );
      });
    });
}

type Write = (kind: Kind, fields: object) => void;

async function writeAll(connection: LedgerConnection, write: Write, context: CliContext): Promise<void> {
  const written = await writePayouts(connection, write);
  await writeArchived(written, write, context);
  for await (const removed of readRemoved(connection))
    for (const [payoutId, state] of removed) write('removed', { payoutId, state });
  await writeSends(connection, write, context);
  let place: string | undefined;
  do {
    const { activities, next } = await readActivity(connection, PAGE_SIZE, place);
    for (const activity of activities) write('activity', activity);
    place = next;
  } while (place !== undefined);
  let events = await readEvents(connection, { sinceMs: 0 }, PAGE_SIZE);
  for (let last = events.at(-1); last !== undefined; last = events.at(-1)) {
    for (const event of events) write('event', event);
    events = await readEvents(connection, { afterEventId: last.eventId }, PAGE_SIZE);
  }
}

/** @returns the payoutIds that were written */
async function writePayouts(connection: LedgerConnection, write: Write): Promise<ReadonlySet<string>> {
  const written = new Set<string>();
  for await (const found of scanPayoutIds(connection)) {
    // A scan may bring an id twice.
    const payoutIds = [...new Set(found)].filter((payoutId) => !written.has(payoutId));
    const records = await readAudited(connection, payoutIds);
    for (const [index, payoutId] of payoutIds.entries()) {
      const record = records[index];
      // Retention may remove a payout between the two.
      if (record?.kind !== 'payout' && record?.kind !== 'unreadable') continue;
      written.add(payoutId);
      if (record.kind === 'payout') write('payout', toPayoutJson(record.payout));
      else write('unreadable', { payoutId, message: record.message });
    }
  }
  return written;
}

async function writeArchived(written: ReadonlySet<string>, write: Write, context: CliContext): Promise<void> {
  const folder = readArchiveFolder(context);
  if (folder === undefined) return;
  const onDamage = (message: string): void => {
    context.writeError(`${message}.\n`);
  };
  await namingArchive(folder, async () => {
    for await (const payouts of readArchive(folder, { onDamage })) {
      for (const payout of payouts) if (!written.has(payout.payoutId)) write('payout', toPayoutJson(payout));
    }
  });
}

async function writeSends(connection: LedgerConnection, write: Write, context: CliContext): Promise<void> {
  const keyring = findKeyring(context.environment);
  try {
    for await (const rows of readAuditRows(readJournalFolder(context), -Infinity, Infinity, keyring, connection)) {
      for (const row of rows) write('send', row);
    }
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    context.writeError(`Without sends: ${error.message}.\n`);
  }
}
