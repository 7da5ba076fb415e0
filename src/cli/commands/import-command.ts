import type { Command } from 'commander';
import { z } from 'zod';
import { readConfig } from '../../config.js';
import { parseInput } from '../../fields.js';
import { batchField } from '../../ledger/payout.js';
import type { CliContext } from '../context/cli-context.js';
import { requireTerminal, stdinIsTaken } from '../context/confirm.js';
import { openSource, STDIN } from '../import/open-source.js';
import { runImport } from '../import/run-import.js';

interface Flags {
  readonly batch?: string;
  readonly dryRun?: true;
  readonly skipInvalid?: true;
  readonly yes?: true;
  readonly json?: true;
}

const HELP_AFTER = `
CSV (UTF-8, commas): the first line names the columns, in any order: payout_id, payment_id, amount and address_to, and
where needed destination_tag, symbol, reference, priority, not_before and metadata. JSON lines: one object a line, with
the fields payoutId, paymentId, amount, addressTo and so on, as the producer takes them. The name's ending tells which
it is (.csv, .json, .jsonl, .ndjson), or else the first character.

Every row is checked before anything is enqueued, and every error is named with its line. What was checked is what is
enqueued, even if the file is changed meanwhile: it is kept in TMPDIR until then, readable for you alone.

When it is stopped, or Redis goes away, the same command again goes on: payouts that are there already are counted,
never doubled. The same payout twice in a file is one payout; with other data in the second row, that row is an error.

Exit codes: 0 all are in the queue. 1 stopped, or Redis is away: run it again. 2 rows have errors, nothing was enqueued.
4 payouts are, or were, there with other data; all others were enqueued.

Examples:
  payouts import salaries.csv --dry-run
  payouts import salaries.csv --batch 2030-01-salaries
  your-program | payouts import - --yes --json
  payouts stats --batch 2030-01-salaries
  payouts list --batch 2030-01-salaries --all --csv > results.csv
`;

/** Adds `payouts import`. */
export function registerImportCommand(program: Command, context: CliContext): void {
  program
    .command('import')
    .description('check the payouts of a CSV or JSON lines file, add them up, and enqueue them')
    .argument('<file>', 'the file, or - for stdin')
    .option('--batch <name>', 'put them into a group that list and stats can follow')
    .option('--dry-run', 'check the file and add it up, enqueue nothing; needs no Redis')
    .option('--skip-invalid', 'enqueue the rows that are right, although others have errors')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
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
      if (!yes && !dryRun) requireSomebody(path, context);
      const signal = context.stopSignal();
      const source = await openSource(path, signal);
      await runImport(context, source, { batch, dryRun, skipInvalid, yes, json, intervalMs, signal });
    });
}

/** @throws InvalidInputError when nobody can be asked */
function requireSomebody(path: string, { terminal }: CliContext): void {
  requireTerminal(terminal);
  if (path === STDIN) throw stdinIsTaken();
}
