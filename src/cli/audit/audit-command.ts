import type { Command } from 'commander';
import { findArchived } from '../../archive/find-archived.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import { FileSendJournal } from '../../journal/file-send-journal.js';
import { readJournal } from '../../journal/journal-reader.js';
import type { Actor } from '../../ledger/payout.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readAudited } from '../../ledger/reads/read-audited.js';
import {
  type JournalFolder,
  namingArchive,
  noJournal,
  readArchiveFolder,
  readJournalFolder,
  withAccount,
} from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { CommandFailedError, UntrustedError } from '../context/exit-code.js';
import { addActorOptions, help, parseTime, readActor, readVariable, refuse } from '../context/flags.js';
import { findKeyring, findPolicy } from '../context/keys.js';
import { startProgress } from '../import/progress.js';
import {
  AUDIT_CSV_HEADER,
  type AuditRow,
  describeAudit,
  formatAuditRow,
  toAuditJson,
  toAuditRow,
} from '../output/format-audit.js';
import { pagesOfSends } from './audit-ledger.js';
import { type AuditResult, runAudit } from './run-audit.js';

interface VerifyFlags {
  readonly head?: string;
  readonly journal?: readonly string[];
  readonly offline?: true;
  readonly json?: true;
}

interface ExportFlags {
  readonly since?: string;
  readonly until?: string;
  readonly offline?: true;
  readonly json?: true;
}

interface AdoptFlags extends Actor {
  readonly yes?: true;
  readonly json?: true;
}

export function defineAuditCommand(command: Command, context: CliContext): void {
  command.addHelpText(
    'after',
    help(
      `They read the send journal of this host (SEND_JOURNAL_DIR, GATEWAY_PLATFORM_ID), also beside a worker. adopt-journal
writes to it: run it as the worker's user, on each host that has a journal of its own. See docs/control.md#the-audit.`,
      'payouts audit verify',
      'payouts audit export --since 2030-01-01 --csv > sends.csv',
      'payouts audit adopt-journal --reason "new account, nothing was sent yet"',
    ),
  );
  addVerify(command, context);
  addExport(command, context);
  addAdopt(command, context);
}

function addVerify(parent: Command, context: CliContext): void {
  parent
    .command('verify')
    .description('check that nothing of the journal was changed, and compare it with signatures and Redis')
    .option('--head <hash>', 'hash of a line that has to be there')
    .option('--journal <dir...>', 'folder of the journal of another host, repeatable')
    .option('--offline', 'without Redis: the journal and the keys of its sends alone')
    .option(
      '--json',
      'print {journalId, files, lines, sends, head, faults, verified, notVerifiable, ledger, findings, …} as JSON',
    )
    .addHelpText(
      'after',
      help(
        `Checks the chain of hashes of the journal; with PAYOUT_KEYS_FILE, the signatures and approvals of each send; and each send against
Redis, both ways (docs/control.md#the-audit).

Exit codes: 0 nothing is wrong. 1 Redis could not be compared, and the rest is right. 3 no journal. 5 something is wrong: each finding
says what, and what to do.`,
        'payouts audit verify',
        'payouts audit verify --json | jq .findings',
        'payouts audit verify --offline --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      ),
    )
    .action(async ({ head: given, journal = [], offline, json }: VerifyFlags) => {
      const head = parseHash(given);
      const { dir, platformId } = readJournalFolder(context);
      const keyring = findKeyring(context.environment);
      const policy = await findPolicy(context.environment);
      const retentionDays = readVariable('PAYOUT_RETENTION_DAYS', context.environment);
      const verify = async (connection: LedgerConnection | undefined): Promise<AuditResult> => {
        const progress = startProgress('Compared:', undefined, context.terminal.output);
        const about = { platformId, keyring, policy, retentionDays, isArchived: openArchive(context), connection };
        const auditing = runAudit([dir, ...journal], head, { ...about, onProgress: progress.update });
        return auditing.finally(progress.stop);
      };
      const result = offline
        ? await verify(undefined)
        : await withAccount(context, async ({ ledger }) => verify(ledger.connection));
      if (json) context.writeJson(toAuditJson(result));
      else context.write(describeAudit(result, head, keyring !== undefined));
      requireRight(result, offline === true);
    });
}

function openArchive(context: CliContext): (payoutId: string, state: string) => Promise<boolean> {
  const folder = readArchiveFolder(context);
  const onDamage = (message: string): void => {
    context.writeError(`${message}.\n`);
  };
  return async (payoutId, state) => {
    if (folder === undefined) return false;
    const found = await namingArchive(folder, async () => findArchived(folder, { payoutId }, { onDamage }));
    return found?.state === state;
  };
}

function requireRight({ reports, findings, notCompared }: AuditResult, isOffline: boolean): void {
  const isWhole = reports.every(({ faults }) => faults.length === 0);
  if (!isWhole || findings.length > 0) throw new UntrustedError('Something is not as it was written');
  if (notCompared !== undefined && !isOffline) throw new CommandFailedError('Redis could not be compared');
}

function parseHash(given: string | undefined): string | undefined {
  if (given === undefined || /^[0-9a-f]{64}$/.test(given)) return given;
  return refuse('--head', `must be 64 hexadecimal digits, as \`payouts audit verify\` prints it (got "${given}")`);
}

function addExport(parent: Command, context: CliContext): void {
  parent
    .command('export')
    .description('print every send with its outcome, fee, who signed and approved it, and which policy let it pass')
    .option('--since <time>', 'only sends from this time on: 2030-01-31, or 2030-01-31T09:00:00Z')
    .option('--until <time>', 'only sends before this time')
    .option('--offline', 'without Redis: no fee, no names of currencies and approvers')
    .option('--csv', 'print CSV, which is the default')
    .option('--json', 'print each send as one line of JSON')
    .addHelpText(
      'after',
      help(
        `Every send that the journal has, the oldest first. State, fee, currency and approvals come from Redis, and people from
PAYOUT_KEYS_FILE: nothing of that is verified here. Files older than SEND_JOURNAL_DAYS are gone.`,
        'payouts audit export --csv > sends.csv',
        'payouts audit export --since 2030-01-01 --until 2030-02-01 --json | jq -r .txhash',
      ),
    )
    .action(async (flags: ExportFlags) => {
      const since = parseTime('--since', flags.since) ?? -Infinity;
      const until = parseTime('--until', flags.until) ?? Infinity;
      const folder = readJournalFolder(context);
      const keyring = findKeyring(context.environment);
      const write = async (connection: LedgerConnection | undefined): Promise<void> => {
        let isFirst = true;
        for await (const rows of readAuditRows(folder, since, until, keyring, connection)) {
          // Wait for Redis: a file without fees would look complete.
          if (isFirst && !flags.json) context.writeCsv(AUDIT_CSV_HEADER);
          isFirst = false;
          for (const row of rows) {
            if (flags.json) context.writeJson(row);
            else context.writeCsv(formatAuditRow(row));
          }
        }
      };
      if (flags.offline) await write(undefined);
      else await withAccount(context, async ({ ledger }) => write(ledger.connection));
    });
}

function addAdopt(parent: Command, context: CliContext): void {
  const command = parent
    .command('adopt-journal')
    .description('state that Redis is right about what this journal does not know')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print {journalId, at, by, reason} as JSON')
    .addHelpText(
      'after',
      help(
        `You state that Redis is right about what was sent before now, if this journal does not know it. If that is wrong, a payout is paid
twice: docs/runbooks/journal.md says what to compare before. A running worker continues by itself.`,
        'payouts audit adopt-journal --reason "new account, nothing was sent yet"',
        `payouts audit adopt-journal --yes --reason "host a is lost, compared with the gateway's records, ticket 812"`,
      ),
    );
  addActorOptions(command).action(async ({ yes, json, ...flags }: AdoptFlags) => {
    const actor = await readActor(flags);
    const folder = readJournalFolder(context);
    if (!yes) {
      const question = `Is Redis right about what account ${folder.platformId} sent before now, and was nothing that waits sent already?`;
      await confirm(question, context.terminal);
    }
    const note = { at: Date.now(), by: actor.by, reason: actor.reason };
    const journalId = await withJournal(folder, async (journal) => {
      await journal.noteComplete(note);
      return journal.journalId;
    });
    if (json) context.writeJson({ journalId, ...note });
    else context.write(`Journal ${journalId} counts as complete since ${formatTimeUtc(toIsoTime(note.at))}.\n`);
  });
}

export async function withJournal<Result>(
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

/** Oldest first, in pages. The first page may be empty. */
export async function* readAuditRows(
  folder: JournalFolder,
  since: number,
  until: number,
  keyring: BoundKeyring | undefined,
  connection: LedgerConnection | undefined,
): AsyncGenerator<AuditRow[]> {
  const { dir, platformId } = folder;
  const journal = await readJournal(dir, platformId);
  if (journal === undefined) throw noJournal(folder);
  const currencies = connection === undefined ? [] : (await readGatewayFacts(connection)).currencies;
  yield [];
  for await (const sends of pagesOfSends(journal.items(), ({ at }) => at >= since && at < until)) {
    const payoutIds = sends.map(({ payoutId }) => payoutId);
    const records = connection && (await readAudited(connection, payoutIds));
    yield sends.map((send, index) => {
      const found = records?.[index];
      const payout = found?.kind === 'payout' ? found.payout : undefined;
      return toAuditRow(send, { platformId, payout, currencies, keyring });
    });
  }
}
