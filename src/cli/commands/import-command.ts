import { Option, type Command } from 'commander';
import { z } from 'zod';
import { readConfig } from '../../base/config.js';
import { parseInput } from '../../base/fields.js';
import { batchField } from '../../ledger/payout.js';
import type { CliContext } from '../context/cli-context.js';
import { requireTerminal, stdinIsTaken } from '../context/confirm.js';
import { readAudience, readEnvironmentKey } from '../context/signing.js';
import { openSource, STDIN } from '../import/open-source.js';
import { DELIMITERS, type Delimiter } from '../import/read-records.js';
import { runImport } from '../import/run-import.js';

interface Flags {
  readonly batch?: string;
  readonly delimiter?: Delimiter;
  readonly dryRun?: true;
  readonly skipInvalid?: true;
  readonly yes?: true;
  readonly json?: true;
}

const HELP_AFTER = `
Formats:
  CSV (UTF-8, commas or semicolons). The first line names the columns, in any order. Required: payout_id, payment_id,
  amount, address_to. Optional: destination_tag, symbol, reference, priority, not_before, metadata, requested_by.
  Amounts have a point before their decimals, also between semicolons.
  JSON lines. One object a line, with the fields payoutId, paymentId, amount, addressTo and so on.
  The file's extension decides (.csv, .json, .jsonl, .ndjson), else the first character.

With PAYOUT_SIGNING_KEY_FILE and PAYOUT_SIGNING_KEY_NAME the payouts are signed. JSON lines of \`payouts keys sign\` carry their signatures
already (key, signature, issuedAt, expiresAt, audience), which are kept; this host then needs no key.

An address whose checksum is wrong is an error of its row; PAYOUT_CHECK_ADDRESSES=false takes it.

Every row is checked before anything is enqueued, and every error names its line. Exactly what was checked is enqueued,
even if the file changes meanwhile. A file has at most 250,000 rows: split a longer one.

After a stop, or when Redis was unavailable, run the same command again to continue: payouts that already exist are
counted, never doubled. A payout that is repeated in the file counts once; with different data the later row is an error.

Exit codes:
  0  all payouts are in the queue
  1  stopped, or Redis unavailable: run it again
  2  rows have errors, nothing was enqueued
  4  some payouts already exist, or were removed, with different data; all others were enqueued

Examples:
  payouts import salaries.csv --dry-run
  payouts import salaries.csv --batch 2030-01-salaries
  your-program | payouts import - --yes --json
  payouts stats --batch 2030-01-salaries
  payouts list --batch 2030-01-salaries --all --csv > results.csv
`;

export function defineImportCommand(command: Command, context: CliContext): void {
  command
    .argument('<file>', 'the file, or - for stdin')
    .option('--batch <name>', 'group the payouts for list and stats')
    .addOption(
      new Option(
        '--delimiter <character>',
        'what separates the values of a CSV file; by default what its first line has',
      ).choices(DELIMITERS),
    )
    .option('--dry-run', 'check and total the file, enqueue nothing; needs no Redis')
    .option('--skip-invalid', 'enqueue the valid rows although others have errors')
    .option('-y, --yes', 'do not ask for confirmation; required without a terminal')
    .option('--json', 'print {rows, payouts, invalid, totals, created, existing, conflicts, …} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (path: string, flags: Flags) => {
      const { batch, delimiter, dryRun = false, skipInvalid = false, yes = false, json = false } = flags;
      parseInput(z.object({ '--batch': batchField.optional() }), { '--batch': batch });
      const names = [
        'WITHDRAW_INTERVAL_MS',
        'PAYOUT_CHECK_ADDRESSES',
        ...(dryRun ? [] : (['REDIS_URL', 'GATEWAY_PLATFORM_ID'] as const)),
      ] as const;
      const { WITHDRAW_INTERVAL_MS: intervalMs, PAYOUT_CHECK_ADDRESSES: checksums } = readConfig(
        names,
        context.environment,
      );
      // Fails before a large file is read.
      const key = readEnvironmentKey(context.environment);
      const audience = key === undefined || dryRun ? undefined : readAudience(context.environment);
      if (!yes && !dryRun) requireOperator(path, context);
      const signal = context.stopSignal();
      const source = await openSource(path, signal, delimiter === undefined ? {} : { delimiter });
      await runImport(context, source, {
        ...{ batch, dryRun, skipInvalid, yes, json, intervalMs, checksums, key, audience, signal },
      });
    });
}

function requireOperator(path: string, { terminal }: CliContext): void {
  requireTerminal(terminal);
  if (path === STDIN) throw stdinIsTaken();
}
