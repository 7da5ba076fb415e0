import type { Command } from 'commander';
import { z } from 'zod';
import { readConfig } from '../config.js';
import { parseInput } from '../fields.js';
import { batchField } from '../ledger/payout.js';
import type { CliContext } from './cli-context.js';
import { requireTerminal } from './confirm.js';
import { openSource } from './import/open-source.js';
import { runImport } from './import/run-import.js';

interface Flags {
  readonly batch?: string;
  readonly dryRun?: boolean;
  readonly skipInvalid?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

const HELP_AFTER = `
CSV: the first line names the columns, in any order: payout_id, payment_id, amount and address_to, and where needed
destination_tag, symbol, reference, priority, not_before and metadata. JSON lines: one object a line, with the fields
payoutId, paymentId, amount, addressTo and so on, as the producer takes them.

Every row is checked before anything is enqueued, and every error is named with its line. When it is stopped, or Redis
goes away, the same command again goes on: payouts that are there already are counted, never doubled.

Exit code 2: rows have errors; nothing was enqueued. 4: payouts are there with other data; all others were enqueued.

Examples:
  payouts import salaries.csv --dry-run
  payouts import salaries.csv --batch 2030-01-salaries
  your-program | payouts import - --yes --json
  payouts list --batch 2030-01-salaries --all --csv > results.csv
`;

/** Adds `payouts import`. */
export function registerImportCommand(program: Command, context: CliContext): void {
  program
    .command('import')
    .description('enqueue the payouts of a CSV or JSON lines file')
    .argument('<file>', 'the file, or - for stdin')
    .option('--batch <name>', 'put them into a group that list and stats can follow')
    .option('--dry-run', 'check the file and add it up, enqueue nothing')
    .option('--skip-invalid', 'enqueue the rows that are right when others are not')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print {rows, payouts, invalid, totals, created, existing, conflicts, …} as JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async (path: string, flags: Flags) => {
      const { batch, dryRun = false, skipInvalid = false, yes = false, json = false } = flags;
      parseInput(z.object({ '--batch': batchField.optional() }), { '--batch': batch });
      const names = [
        'WITHDRAW_INTERVAL_MS',
        ...(dryRun ? [] : (['REDIS_URL', 'GATEWAY_PLATFORM_ID'] as const)),
      ] as const;
      const { WITHDRAW_INTERVAL_MS: intervalMs } = readConfig(names, context.environment);
      // Before a large file is read, not after.
      if (!yes && !dryRun) requireTerminal();
      await runImport(context, await openSource(path), { batch, dryRun, skipInvalid, yes, json, intervalMs });
    });
}
