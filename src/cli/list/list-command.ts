import { type Command, Option } from 'commander';
import { z } from 'zod';
import type { ArchiveFolder } from '../../archive/archive-files.js';
import { NotFoundError } from '../../base/errors.js';
import { type CsvOptions, formatCsvHeader, formatCsvRows, UNREADABLE } from '../../ledger/payout-csv.js';
import { formatMoney, formatTime, shorten } from '../../base/format.js';
import { lastComment } from '../../ledger/payout-comment.js';
import {
  findPayouts,
  listPayoutIds,
  listPayouts,
  type PayoutFilter,
  type UnreadablePayout,
} from '../../ledger/payout-queries.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { amountField, parseInput } from '../../base/fields.js';
import { batchField, lastMessage, type Payout } from '../../ledger/payout.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import type { ReceiptVerifier } from '../../control/intents/receipt.js';
import { namingArchive, readCurrencies, requireArchiveFolder, withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { help, parseLimit, parseTime } from '../context/flags.js';
import { openReceiptVerifier } from '../context/keys.js';
import { startProgress } from '../import/progress.js';
import { colourState, formatTable } from '../output/format-table.js';
import { toPayoutJson } from '../output/payout-json.js';
import { findInArchive } from './find-in-archive.js';

interface Flags {
  readonly state?: PayoutState;
  readonly batch?: string;
  readonly address?: string;
  readonly reference?: string;
  readonly amount?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: string;
  readonly all?: true;
  readonly archived?: true;
  readonly json?: true;
  readonly csv?: true;
  /** Off with `--no-quote-formulas`. */
  readonly quoteFormulas: boolean;
}

const PAGE_SIZE = 500;

export function defineListCommand(command: Command, context: CliContext): void {
  command
    .addOption(new Option('--state <state>', 'payouts in this state').choices(PAYOUT_STATES))
    .option('--batch <name>', 'payouts of this batch')
    .option('--address <address>', 'payouts to this address, with its destination tag or without')
    .option('--reference <text>', 'payouts whose reference has this text in it')
    .option('--amount <amount>', 'payouts of this amount')
    .option('--since <time>', 'that came into their state at this time or later (2030-01-31, 2030-01-31T09:00:00Z)')
    .option('--until <time>', 'that came into their state before this time')
    .option('--archived', 'payouts that were removed from Redis, from PAYOUT_ARCHIVE_DIR')
    .option('--limit <number>', 'maximum number of payouts to print', '50')
    .option('--all', 'all of them')
    .option('--json', 'print each payout as one line of JSON')
    .addOption(new Option('--csv', 'print them as CSV, for a spreadsheet or `payouts import`').conflicts('json'))
    .option('--no-quote-formulas', 'with --csv: leave texts as they are that a spreadsheet would run')
    .addHelpText(
      'after',
      help(
        `A payout must meet all filters. --state or --batch alone lists in the order of arrival. Other filters search, the newest first.
--archived reads PAYOUT_ARCHIVE_DIR on the worker's host, the newest day first. --csv writes the columns of \`payouts import\` and the
results. A text that a spreadsheet would run (it begins with = + - @) gets an apostrophe. With PAYOUT_KEYS_FILE, verified in --json
says whether a worker of the keyring signed the final state.`,
        'payouts list --state unknown',
        'payouts list --state completed --since 2030-01-31 --until 2030-02-01 --all --csv > january-31.csv',
        'payouts list --reference INV-77 --amount 12.5',
        'payouts list --batch 2030-01-salaries --all --json > salaries.jsonl',
        'payouts list --archived --since 2029-01-01 --until 2029-02-01 --all --json > january-2029.jsonl',
      ),
    )
    .action(async (flags: Flags) => {
      const filter = readFilter(flags);
      if (Object.keys(filter).length === 0 && !flags.archived) {
        command.error('error: give --state, --batch, --address, --reference, --amount, --since, --until or --archived');
      }
      const archive = flags.archived && requireArchiveFolder(context);
      const limit = flags.all ? Infinity : parseLimit(flags.limit);
      const isTable = !flags.json && !flags.csv;
      const write = await chooseWriter(flags, isTable ? await readCurrencies(context) : [], context);
      const more = await withAccount(context, async ({ ledger: { connection } }) =>
        archive !== undefined
          ? namingArchive(archive, async () => listArchive(connection, archive, { filter, limit }, context, write))
          : isSearch(filter)
            ? searchPages(connection, { filter, limit }, context, write)
            : listPages(connection, { filter, limit }, context, write),
      );
      if (more) context.writeError(`More payouts follow: use a larger --limit, or --all.\n`);
    });
}

async function chooseWriter(
  { json, csv, quoteFormulas: safe }: Flags,
  currencies: readonly Currency[],
  { environment }: CliContext,
): Promise<WritePayouts> {
  if (json) return createLineWriter(await openReceiptVerifier(environment));
  return csv ? createCsvWriter({ safe }) : createTableWriter(currencies);
}

interface Selection {
  readonly filter: PayoutFilter;
  readonly limit: number;
}

/** @returns whether more payouts follow. @throws NotFoundError if the batch is empty */
async function listPages(
  connection: LedgerConnection,
  { filter: { state, batch }, limit }: Selection,
  context: CliContext,
  write: WritePayouts,
): Promise<boolean> {
  const index = batch === undefined ? { ...(state === undefined ? {} : { state }) } : { batch };
  let left = limit;
  let cursor: { readonly cursor?: string } = {};
  for (;;) {
    const page = await listPayouts(connection, { ...index, ...cursor, limit: Math.min(left, PAGE_SIZE) });
    const { next } = page;
    const payouts = [...page.payouts, ...page.unreadable];
    if (batch !== undefined && payouts.length === 0 && left === limit) {
      throw new NotFoundError(`Batch ${batch} not found`);
    }
    write(payouts, context);
    left -= payouts.length;
    if (next === undefined) return false;
    if (left <= 0) return (await listPayoutIds(connection, { ...index, cursor: next, limit: 1 })).payoutIds.length > 0;
    cursor = { cursor: next };
  }
}

/** @returns whether there may be more */
async function searchPages(
  connection: LedgerConnection,
  { filter, limit }: Selection,
  context: CliContext,
  write: WritePayouts,
): Promise<boolean> {
  const progress = startProgress('Searching ', undefined, context.terminal.output);
  const found: ListedPayout[] = [];
  const flush = (): void => {
    if (found.length === 0) return;
    progress.stop();
    write(found.splice(0), context);
  };
  try {
    let [left, searched] = [limit, 0];
    let after: string | undefined;
    do {
      const page = await findPayouts(connection, filter, Math.min(left, PAGE_SIZE), after);
      found.push(...page.payouts, ...page.unreadable);
      left -= page.payouts.length + page.unreadable.length;
      searched += page.searched;
      after = page.next;
      progress.update(searched);
      // Each flush writes a table.
      if (found.length >= PAGE_SIZE) flush();
    } while (after !== undefined && left > 0);
    flush();
    return after !== undefined;
  } finally {
    progress.stop();
  }
}

/** @returns whether more payouts follow */
async function listArchive(
  connection: LedgerConnection,
  archive: ArchiveFolder,
  { filter, limit }: Selection,
  context: CliContext,
  write: WritePayouts,
): Promise<boolean> {
  const warned = new Set<string>();
  const warn = (message: string): void => {
    if (!warned.has(message)) context.writeError(`${message}.\n`);
    warned.add(message);
  };
  let left = limit;
  // One more than shown tells whether more follow.
  const pageSize = Math.min(limit + 1, PAGE_SIZE);
  for await (const payouts of findInArchive(connection, archive, filter, pageSize, warn)) {
    const shown = payouts.slice(0, left);
    write(shown, context);
    left -= shown.length;
    if (shown.length < payouts.length) return true;
  }
  return false;
}

type ListedPayout = Payout | UnreadablePayout;

type WritePayouts = (payouts: readonly ListedPayout[], context: CliContext) => void;

function createLineWriter(verifier: ReceiptVerifier | undefined): WritePayouts {
  return (payouts, context) => {
    for (const payout of payouts) {
      context.writeJson('reason' in payout ? toUnreadableJson(payout) : toPayoutJson(verifier?.mark(payout) ?? payout));
    }
  };
}

/** Writes the header once, after Redis has replied. */
function createCsvWriter(options: CsvOptions): WritePayouts {
  let header = formatCsvHeader();
  return (payouts, { writeCsv }) => {
    writeCsv(`${header}${formatCsvRows(payouts, options)}`);
    header = '';
  };
}

/** One table a page: the widths of all rows are known only at the end. */
function createTableWriter(currencies: readonly Currency[]): WritePayouts {
  return (payouts, context) => {
    if (payouts.length > 0) writeTable(payouts, context, currencies);
  };
}

function writeTable(
  payouts: readonly ListedPayout[],
  { write, colours }: CliContext,
  currencies: readonly Currency[],
): void {
  const hasComments = payouts.some((payout) => 'comments' in payout);
  const head = ['PAYOUT', 'STATE', 'AMOUNT', 'ADDRESS', 'TXHASH', 'SINCE (UTC)', 'MESSAGE'];
  if (hasComments) head.push('COMMENT');
  const rows = payouts.map((payout) => {
    if ('reason' in payout) return [payout.payoutId, colours.red(UNREADABLE), '', '', '', '', payout.reason];
    const row = toRow(payout, colours, currencies);
    return hasComments ? [...row, lastComment(payout) ?? ''] : row;
  });
  write(formatTable([head.map((text) => colours.dim(text)), ...rows], [2], [0, 1, 2, 5]));
}

function toRow(payout: Payout, colours: CliContext['colours'], currencies: readonly Currency[]): string[] {
  return [
    payout.payoutId,
    colourState(payout.state, colours),
    formatMoney(payout.amount, payout.paymentId, currencies),
    shorten(payout.addressTo),
    shorten(payout.txhash ?? ''),
    formatTime(payout.updatedAt),
    lastMessage(payout) ?? '',
  ];
}

/** Programs tell it by its field `unreadable`: it has no state. */
function toUnreadableJson({ payoutId, reason }: UnreadablePayout): object {
  return { payoutId, unreadable: reason };
}

const text = z.string().trim().min(1, 'must not be empty').optional();

const schema = z.object({
  '--batch': batchField.optional(),
  '--address': text,
  '--reference': text,
  '--amount': amountField.optional(),
});

/** @throws InvalidInputError naming every unusable flag */
function readFilter({ state, batch, address, reference, amount, since, until }: Flags): PayoutFilter {
  // As tables show it. Nothing is paid here, so the groups cannot be read as another amount.
  const plain = /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(amount ?? '') ? amount?.replaceAll(',', '') : amount;
  const given = { '--batch': batch, '--address': address, '--reference': reference, '--amount': plain };
  const parsed = parseInput(schema, given);
  const filter: PayoutFilter = {
    state,
    batch: parsed['--batch'],
    address: parsed['--address'],
    reference: parsed['--reference'],
    amount: parsed['--amount'],
    since: parseTime('--since', since),
    until: parseTime('--until', until),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** Only state and batch have an index. */
function isSearch(filter: PayoutFilter): boolean {
  const names = Object.keys(filter);
  return names.length > 1 || (filter.state === undefined && filter.batch === undefined);
}
