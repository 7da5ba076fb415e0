import { Option, type Command } from 'commander';
import { z } from 'zod';
import { NotFoundError } from '../../errors.js';
import { parseInput } from '../../fields.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import type { Payout } from '../../ledger/payout.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import type { PayoutProducer } from '../../producer/payout-producer.js';
import { colourState } from '../output/colour-state.js';
import type { CliContext } from '../context/cli-context.js';
import { formatCsvHeader, formatCsvRows } from '../../format-csv.js';
import { formatTable } from '../output/format-table.js';
import { formatMoney, formatTime, shorten } from '../../format.js';
import { readCurrencies } from '../context/read-currencies.js';
import { withProducer } from '../context/with-producer.js';

interface Flags {
  readonly state?: PayoutState;
  readonly batch?: string;
  readonly limit: string;
  readonly all?: true;
  readonly json?: true;
  readonly csv?: true;
}

const PAGE_SIZE = 500;

const HELP_AFTER = `
Payouts come in the order in which they came into the state, or were accepted into the batch.

--csv writes the columns of \`payouts import\`, then state and txhash. \`payouts import\` refuses those two columns:
the payouts have been enqueued before, so take them out only to enqueue the rows in another account.

Examples:
  payouts list --state unknown
  payouts list --state completed --limit 5
  payouts list --batch 2030-01-salaries --all --json > salaries.jsonl
  payouts list --batch 2030-01-salaries --all --csv > salaries-results.csv
`;

/** Defines `payouts list`. */
export function defineListCommand(command: Command, context: CliContext): void {
  command
    .addOption(new Option('--state <state>', 'payouts in this state').choices(PAYOUT_STATES).conflicts('batch'))
    .option('--batch <name>', 'payouts of this batch')
    .option('--limit <number>', 'maximum number of payouts to print', '50')
    .option('--all', 'all of them')
    .option('--json', 'print each payout as one line of JSON')
    .addOption(
      new Option('--csv', 'print them as CSV, in the columns of `payouts import`, with state and txhash').conflicts(
        'json',
      ),
    )
    .addHelpText('after', HELP_AFTER)
    .action(async (flags: Flags) => {
      const { state, batch } = flags;
      if (state === undefined && batch === undefined) command.error('error: give --state or --batch');
      const filter = state === undefined ? { batch: batch ?? '' } : { state };
      const limit = flags.all ? Infinity : parseLimit(flags.limit);
      const write: WritePage = flags.json ? writeLines : flags.csv ? createCsvWriter() : writeTable;
      const currencies = write === writeTable ? await readCurrencies(context) : [];
      const more = await withProducer(context, (producer) =>
        writePages(producer, { filter, limit }, (payouts) => {
          write(payouts, context, currencies);
        }),
      );
      if (more) context.writeError(`More payouts follow: use a larger --limit, or --all.\n`);
    });
}

function parseLimit(text: string): number {
  const schema = z.object({ '--limit': z.coerce.number().int('must be a whole number').min(1, 'must be at least 1') });
  return parseInput(schema, { '--limit': text })['--limit'];
}

interface Selection {
  readonly filter: { readonly state: PayoutState } | { readonly batch: string };
  readonly limit: number;
}

/** @returns whether more payouts follow. @throws NotFoundError when no payout is in the batch */
async function writePages(
  producer: PayoutProducer,
  { filter, limit }: Selection,
  write: (payouts: readonly Payout[]) => void,
): Promise<boolean> {
  let left = limit;
  let cursor: { readonly cursor?: string } = {};
  for (;;) {
    const { payouts, next } = await producer.list({ ...filter, ...cursor, limit: Math.min(left, PAGE_SIZE) });
    if ('batch' in filter && payouts.length === 0 && left === limit) {
      throw new NotFoundError(`Batch ${filter.batch} not found`);
    }
    write(payouts);
    left -= payouts.length;
    if (next === undefined) return false;
    if (left <= 0) return (await producer.list({ ...filter, cursor: next, limit: 1 })).payouts.length > 0;
    cursor = { cursor: next };
  }
}

type WritePage = (payouts: readonly Payout[], context: CliContext, currencies: readonly Currency[]) => void;

function writeLines(payouts: readonly Payout[], context: CliContext): void {
  for (const payout of payouts) context.writeJson(payout);
}

/** The columns are named once, and only when Redis has replied. */
function createCsvWriter(): WritePage {
  let header = formatCsvHeader();
  return (payouts, { write }) => {
    write(`${header}${formatCsvRows(payouts)}`);
    header = '';
  };
}

/** One table for each page: the longest value of a hundred thousand rows is not known before the last one. */
function writeTable(payouts: readonly Payout[], { write, colours }: CliContext, currencies: readonly Currency[]): void {
  if (payouts.length === 0) return;
  const head = ['PAYOUT', 'STATE', 'AMOUNT', 'ADDRESS', 'TXHASH', 'SINCE (UTC)', 'MESSAGE'];
  const rows = payouts.map((payout) => [
    payout.payoutId,
    colourState(payout.state, colours),
    formatMoney(payout.amount, payout.paymentId, currencies),
    shorten(payout.addressTo),
    shorten(payout.txhash ?? ''),
    formatTime(payout.updatedAt),
    payout.message ?? '',
  ]);
  write(formatTable([head.map((text) => colours.dim(text)), ...rows], [2]));
}
