import type { Command } from 'commander';
import { findArchived } from '../../archive/find-archived.js';
import { readConfig } from '../../base/config.js';
import type { BoundKeyring } from '../../control/keys/keyring.js';
import { InvalidInputError } from '../../base/errors.js';
import { formatTime } from '../../base/format.js';
import { FileSendJournal } from '../../journal/file-send-journal.js';
import type { JournalEntry } from '../../journal/journal-line.js';
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
import { addActorOptions, readActor } from '../context/flags.js';
import { findKeyring, findPolicy } from '../context/signing.js';
import { startProgress } from '../import/progress.js';
import { parseTime } from '../list/read-filter.js';
import {
  AUDIT_CSV_HEADER,
  type AuditRow,
  describeAudit,
  formatAuditRow,
  toAuditJson,
  toAuditRow,
} from '../output/format-audit.js';
import { type AuditOptions, type AuditResult, runAudit } from './run-audit.js';

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

const HELP_AFTER = `
They read the send journal of this host (SEND_JOURNAL_DIR, GATEWAY_PLATFORM_ID). A worker may be running.

verify and export also read the keyring (PAYOUT_KEYS_FILE, where it is set) and Redis, and change nothing. With --offline they
need no Redis. adopt-journal and upgrade-journal write to the journal, as the worker's user, and need no Redis. The worker reads
what they add. Hosts that have journals of their own each need it.

Examples:
  payouts audit verify
  payouts audit export --since 2030-01-01 --csv > sends.csv
  payouts audit adopt-journal --reason "new account, nothing was sent yet"
`;

const VERIFY_HELP_AFTER = `
1. Each line of the journal names the one before it by its SHA-256: a line that was changed, removed, put in or moved shows. What
   was cut off at the end shows by the head, which the worker tells every ten minutes in its log, as an event and as a metric: the
   line of the newest event has to be there, and the one that you give with --head. Lines of the formats 1 and 2 name none; of them
   only the last before the upgrade is covered.
2. With PAYOUT_KEYS_FILE: the key of each signed send was a producer's then, the signature in the journal and in the payout's record
   holds, and so does each approval that counted, of another person than the signer. Sends of which one of these is gone are counted
   apart; so are those of keys that are revoked now. Where PAYOUT_POLICY_FILE is the policy by which a send was judged, its quorums are
   there (rules without a window or hours).
3. Against Redis: each send is there, with the data and the transaction that the journal has, in a state that can follow from it, and
   each payment that Redis knows is in the journal. Of payouts that PAYOUT_RETENTION_DAYS removed, state and time are compared, or
   PAYOUT_ARCHIVE_DIR is asked. What was sent before the journal began is counted, and cannot be compared. Where an operator gave
   the transaction, it rests on his word.

Other hosts with journals of their own: copy their folders, or mount them, and name each with --journal.

Exit codes: 0 nothing is wrong. 1 Redis could not be compared, and the rest is right. 3 no journal. 5 something is wrong: each finding
says what, and what to do.

Examples:
  payouts audit verify
  payouts audit verify --json | jq .findings
  payouts audit verify --offline --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
`;

const EXPORT_HELP_AFTER = `
Every send that the journal has, the oldest first: what was sent, its outcome as the sender saw it, and for signed payouts the
key, the hash of the intent and the hash of the act that allowed another attempt; with a policy its hash, what the send was worth in
dollars, and the hashes of the approvals that counted. Files older than SEND_JOURNAL_DAYS are gone.

From Redis, as far as the payout is still there: the name of the currency, the fee (of the attempt that was paid), the state and
since when, and whose approvals counted. Who these persons are, and who signed, the keyring says (PAYOUT_KEYS_FILE). Nothing of that
is verified here: see payouts audit verify. --offline leaves out what Redis has.

Examples:
  payouts audit export --csv > sends.csv
  payouts audit export --since 2030-01-01 --until 2030-02-01 --json | jq -r .txhash
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
  payouts audit adopt-journal --reason "new account, nothing was sent yet"
  payouts audit adopt-journal --yes --reason "host a is lost, compared with the gateway's records, ticket 812"
`;

const UPGRADE_HELP_AFTER = `
A worker upgrades the journal by itself when it starts; this does it before. From then on each line names the one before it by
its hash. No earlier line is changed, and a worker of the version before refuses the journal.

Examples:
  payouts audit upgrade-journal
  payouts audit upgrade-journal --json
`;

export function defineAuditCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  addVerify(command, context);
  addExport(command, context);
  addAdopt(command, context);
  addUpgrade(command, context);
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
    .addHelpText('after', VERIFY_HELP_AFTER)
    .action(async ({ head: given, journal = [], offline, json }: VerifyFlags) => {
      const head = parseHash(given);
      const { dir, platformId } = readJournalFolder(context);
      const keyring = findKeyring(context.environment);
      const policy = await findPolicy(context.environment);
      const { PAYOUT_RETENTION_DAYS: retentionDays } = readConfig(['PAYOUT_RETENTION_DAYS'], context.environment);
      const verify = async (connection: AuditOptions['connection']): Promise<AuditResult> =>
        showProgress(context, async (onProgress) =>
          runAudit({
            ...{ dirs: [dir, ...journal], platformId, keyring, policy, head },
            ...{ retentionDays, isArchived: openArchive(context), connection, onProgress },
          }),
        );
      const result = offline
        ? await verify(undefined)
        : await withAccount(context, async ({ ledger }) => verify(ledger.connection));
      if (json) context.writeJson(toAuditJson(result));
      else context.write(describeAudit(result, head, keyring !== undefined));
      requireRight(result, head, offline === true);
    });
}

function openArchive(context: CliContext): AuditOptions['isArchived'] {
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

async function showProgress<Result>(
  { terminal }: CliContext,
  work: (onProgress: (done: number) => void) => Promise<Result>,
): Promise<Result> {
  const progress = startProgress('Compared:', undefined, terminal.output);
  try {
    return await work((done) => {
      progress.update(done);
    });
  } finally {
    progress.stop();
  }
}

function requireRight(
  { reports, findings, notCompared }: AuditResult,
  head: string | undefined,
  isOffline: boolean,
): void {
  const isHeadThere = head === undefined || reports[0]?.found !== undefined;
  const isWhole = reports.every(({ faults }) => faults.length === 0) && isHeadThere;
  if (!isWhole || findings.length > 0) throw new UntrustedError('Something is not as it was written');
  if (notCompared !== undefined && !isOffline) throw new CommandFailedError('Redis could not be compared');
}

function parseHash(given: string | undefined): string | undefined {
  if (given === undefined || /^[0-9a-f]{64}$/.test(given)) return given;
  throw new InvalidInputError([
    {
      field: '--head',
      message: `must be 64 hexadecimal digits, as \`payouts audit verify\` prints it (got "${given}")`,
    },
  ]);
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
    .addHelpText('after', EXPORT_HELP_AFTER)
    .action(async (flags: ExportFlags) => {
      const since = parseTime('--since', flags.since) ?? -Infinity;
      const until = parseTime('--until', flags.until) ?? Infinity;
      const folder = readJournalFolder(context);
      const keyring = findKeyring(context.environment);
      const write = async (connection: LedgerConnection | undefined): Promise<void> => {
        let isFirst = true;
        for await (const rows of readAuditRows({ ...folder, since, until, keyring, connection })) {
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
    .command('upgrade-journal')
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

interface AuditRowsOptions extends JournalFolder {
  /** Wall clock, ms. */
  readonly since: number;
  readonly until: number;
  readonly keyring: BoundKeyring | undefined;
  readonly connection: LedgerConnection | undefined;
}

const PAGE = 500;

/** Oldest first, in pages. The first page may be empty. */
async function* readAuditRows(options: AuditRowsOptions): AsyncGenerator<AuditRow[]> {
  const { since, until, connection, keyring, platformId } = options;
  const journal = await readJournal(options.dir, platformId);
  if (journal === undefined) throw noJournal(options);
  const currencies = connection === undefined ? [] : (await readGatewayFacts(connection)).currencies;
  const toRows = async (sends: readonly JournalEntry[]): Promise<AuditRow[]> => {
    const payoutIds = sends.map(({ payoutId }) => payoutId);
    const records = connection && (await readAudited(connection, payoutIds));
    return sends.map((send, index) => {
      const found = records?.[index];
      const payout = found?.kind === 'payout' ? found.payout : undefined;
      return toAuditRow(send, { platformId, payout, currencies, keyring });
    });
  };
  let page: JournalEntry[] = [];
  for await (const item of journal.items()) {
    if (!('payoutId' in item) || item.at < since || item.at >= until) continue;
    page.push(item);
    if (page.length < PAGE) continue;
    yield await toRows(page);
    page = [];
  }
  yield await toRows(page);
}
