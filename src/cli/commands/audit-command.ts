import type { Command } from 'commander';
import { InvalidInputError } from '../../errors.js';
import { formatCount, formatTime } from '../../format.js';
import { readJournal } from '../../journal/read-journal.js';
import { verifyJournal, type JournalReport } from '../../journal/verify-journal.js';
import type { CliContext } from '../context/cli-context.js';
import { UntrustedError } from '../context/exit-code.js';
import { noJournal, readJournalFolder } from '../context/journal-place.js';
import { parseTime } from '../list/read-filter.js';
import { AUDIT_CSV_HEADER, formatAuditRow, toAuditRow } from '../output/format-audit.js';
import { formatResponse } from '../output/format-response.js';

interface VerifyFlags {
  readonly head?: string;
  readonly json?: true;
}

interface ExportFlags {
  readonly since?: string;
  readonly until?: string;
  readonly json?: true;
}

const HELP_AFTER = `
They read the send journal of this host (SEND_JOURNAL_DIR, GATEWAY_PLATFORM_ID) and change nothing. They need no Redis, and a
worker may be running.

Examples:
  payouts audit verify
  payouts audit export --since 2030-01-01 --csv > sends.csv
`;

const VERIFY_HELP_AFTER = `
Each line of the journal names the one before it by its SHA-256: a line that was changed, removed, put in or moved shows. What
was cut off at the end does not show by itself. Keep the head elsewhere, and give it with --head: that line has to be there.
Lines of the formats 1 and 2 name none; of them only the last before the upgrade is covered.

Exit code 5 when a line is not as it was written, or the head is not there.

Examples:
  payouts audit verify
  payouts audit verify --json | jq -r .head
  payouts audit verify --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
`;

const EXPORT_HELP_AFTER = `
Every send that the journal has, the oldest first: what was sent, its outcome as the sender saw it, and for signed payouts the
key, the hash of the intent and the hash of the act that allowed another attempt; with a policy its hash, what the send was worth in
dollars, and the hashes of the approvals that counted. Files older than SEND_JOURNAL_DAYS are gone.

Examples:
  payouts audit export --csv > sends.csv
  payouts audit export --since 2030-01-01 --until 2030-02-01 --json | jq -r .txhash
`;

/** Defines `payouts audit`: what the send journal of this host proves. */
export function defineAuditCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  addVerify(command, context);
  addExport(command, context);
}

function addVerify(parent: Command, context: CliContext): void {
  parent
    .command('verify')
    .description('check that no line of the journal was changed, removed or put in')
    .option('--head <hash>', 'hash of a line that has to be there')
    .option('--json', 'print {journalId, files, lines, sends, head, faults, …} as JSON')
    .addHelpText('after', VERIFY_HELP_AFTER)
    .action(async ({ head, json }: VerifyFlags) => {
      const folder = readJournalFolder(context);
      const report = await verifyJournal(folder.dir, folder.platformId, parseHash(head));
      if (report === undefined) throw noJournal(folder);
      if (json) context.writeJson(report);
      else context.write(describeReport(report, head));
      const isWhole = report.faults.length === 0 && (head === undefined || report.found !== undefined);
      if (!isWhole) throw new UntrustedError('The journal is not as it was written');
    });
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

function describeReport(report: JournalReport, wanted: string | undefined): string {
  const { journalId, files, lines, unchained, sends, bornAt, head, found, faults } = report;
  const facts = {
    journal: journalId,
    files: String(files),
    lines: unchained === 0 ? String(lines) : `${lines}, ${unchained} of a format without hashes`,
    sends: String(sends),
    begins: describeBirth(bornAt),
    head: head ?? 'none',
    ...(wanted === undefined ? {} : { 'head given': found ? `${found.file}:${found.line}` : 'not in this journal' }),
    chain: faults.length === 0 ? 'whole' : formatCount(faults.length, 'fault'),
  };
  return formatResponse(facts) + faults.map(({ file, line, message }) => `${file}:${line}: ${message}\n`).join('');
}

function describeBirth(bornAt: number | undefined): string {
  if (bornAt === undefined) return 'format 1 or 2: `payouts journal upgrade`';
  return bornAt === 0 ? 'complete, as an operator stated' : formatTime(new Date(bornAt).toISOString());
}

function addExport(parent: Command, context: CliContext): void {
  parent
    .command('export')
    .description('print every send with its outcome, who signed it, and which policy let it pass')
    .option('--since <time>', 'only sends from this time on: 2030-01-31, or 2030-01-31T09:00:00Z')
    .option('--until <time>', 'only sends before this time')
    .option('--csv', 'print CSV, which is the default')
    .option('--json', 'print each send as one line of JSON')
    .addHelpText('after', EXPORT_HELP_AFTER)
    .action(async (flags: ExportFlags) => {
      const since = parseTime('--since', flags.since) ?? -Infinity;
      const until = parseTime('--until', flags.until) ?? Infinity;
      const folder = readJournalFolder(context);
      const journal = await readJournal(folder.dir, folder.platformId);
      if (journal === undefined) throw noJournal(folder);
      if (!flags.json) context.write(AUDIT_CSV_HEADER);
      for await (const item of journal.items()) {
        if (!('payoutId' in item) || item.at < since || item.at >= until) continue;
        if (flags.json) context.writeJson(toAuditRow(item));
        else context.write(formatAuditRow(item));
      }
    });
}
