import type { Command } from 'commander';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readAuditRows } from '../audit/read-audit-rows.js';
import type { CliContext } from '../context/cli-context.js';
import { readJournalFolder } from '../context/journal-place.js';
import { findKeyring } from '../context/keyring.js';
import { withAccount } from '../context/with-account.js';
import { parseTime } from '../list/read-filter.js';
import { AUDIT_CSV_HEADER, formatAuditRow } from '../output/format-audit.js';

interface ExportFlags {
  readonly since?: string;
  readonly until?: string;
  readonly offline?: true;
  readonly json?: true;
}

const HELP_AFTER = `
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

/** Defines `payouts audit export`. */
export function defineAuditExport(parent: Command, context: CliContext): void {
  parent
    .command('export')
    .description('print every send with its outcome, fee, who signed and approved it, and which policy let it pass')
    .option('--since <time>', 'only sends from this time on: 2030-01-31, or 2030-01-31T09:00:00Z')
    .option('--until <time>', 'only sends before this time')
    .option('--offline', 'without Redis: no fee, no names of currencies and approvers')
    .option('--csv', 'print CSV, which is the default')
    .option('--json', 'print each send as one line of JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: ExportFlags) => {
      const since = parseTime('--since', flags.since) ?? -Infinity;
      const until = parseTime('--until', flags.until) ?? Infinity;
      const folder = readJournalFolder(context);
      const keyring = findKeyring(context.environment);
      const write = async (connection: LedgerConnection | undefined): Promise<void> => {
        let isFirst = true;
        for await (const rows of readAuditRows({ ...folder, since, until, keyring, connection })) {
          // Not before the first answer of Redis: a file without fees would look like a whole one.
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
