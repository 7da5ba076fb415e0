import { type Command, Option } from 'commander';
import { isAborted } from '../../base/clock.js';
import { readConfig } from '../../base/config.js';
import { ConflictError, StoppedError } from '../../base/errors.js';
import { formatCount, formatDuration } from '../../base/format.js';
import { checkSignable, PayoutSigner, signAllForLedger } from '../../control/intents/intent-signer.js';
import { type Signer, trySigner } from '../../control/keys/signer.js';
import { type NewPayout } from '../../ledger/payout.js';
import type { EnqueueResult } from '../../ledger/payout-ledger.js';
import type { Currency, GatewayFacts } from '../../ledger/reads/gateway-facts.js';
import { CHUNK_SIZE, PayoutIntake } from '../../producer/payout-intake.js';
import { ListedCurrencies } from '../../producer/listed-currencies.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { readFacts, withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm, requireOperator } from '../context/confirm.js';
import { checkBatch, help, readVariable } from '../context/flags.js';
import { readAudience, readPayoutSigner } from '../context/keys.js';
import { checkFile, type CheckedPayout, type FileCheck, refuseUnusable } from './check-rows.js';
import { type CurrencyTotal, formatCover, formatTotals } from './currency-totals.js';
import { findTwins, TWIN_DAYS, type Twins } from './find-twins.js';
import { type ImportSource, openSource } from './open-source.js';
import { RowMessages, startProgress } from './progress.js';
import { DELIMITERS, type Delimiter } from './read-records.js';

interface Flags {
  readonly batch?: string;
  readonly delimiter?: Delimiter;
  readonly dryRun?: true;
  readonly skipInvalid?: true;
  readonly yes?: true;
  readonly json?: true;
}

const HELP = help(
  `CSV names its columns in the first line: payout_id, payment_id, amount, address_to; optional destination_tag, symbol, reference,
priority, not_before, metadata, requested_by. JSON lines have payoutId, paymentId and so on. docs/import.md has the rules.

Every row is checked before anything is enqueued, and every error names its line. After a stop run the same command again:
payouts that already exist are counted, never doubled. With PAYOUT_SIGNER the payouts are signed.

Exit codes: 0 all are in the queue. 1 stopped, or Redis unavailable: run it again. 2 rows have errors, nothing was enqueued. 4 some
payouts already exist, or were removed, with different data; all others were enqueued.`,
  'payouts import salaries.csv --dry-run',
  'payouts import salaries.csv --batch 2030-01-salaries',
  'your-program | payouts import - --yes --json',
  'payouts list --batch 2030-01-salaries --all --csv > results.csv',
);

export function defineImportCommand(command: Command, context: CliContext): void {
  const delimiter = new Option(
    '--delimiter <character>',
    'between the values of a CSV file (default: as its first line)',
  );
  command
    .argument('<file>', 'the file, or - for stdin')
    .option('--batch <name>', 'group the payouts for list and stats')
    .addOption(delimiter.choices(DELIMITERS))
    .option('--dry-run', 'check and total the file, enqueue nothing; needs no Redis')
    .option('--skip-invalid', 'enqueue the valid rows although others have errors')
    .option('-y, --yes', 'do not ask for confirmation; required without a terminal')
    .option('--json', 'print {rows, payouts, invalid, totals, unchecked, created, existing, conflicts, …} as JSON')
    .addHelpText('after', HELP)
    .action(async (path: string, flags: Flags) => importFile(context, path, flags));
}

type Conflict = Extract<EnqueueResult, { kind: 'conflict' | 'removed' }> & { readonly line: number };

interface EnqueueCounts {
  created: number;
  existing: number;
  /** Existing payouts in another batch, or in none. */
  otherBatch: number;
  conflicts: number;
  /** Removed payouts, whose data can no longer be compared. */
  removed: number;
}

interface ImportRun {
  readonly context: CliContext;
  readonly source: ImportSource;
  readonly flags: Flags;
  /** Between two sends of the account, ms. */
  readonly intervalMs: number;
  readonly signer: Signer | undefined;
  readonly audience: string | undefined;
  readonly signal: AbortSignal;
  readonly counts: EnqueueCounts;
  /** Undefined if Redis cannot be read, which a dry run does not need. */
  readonly facts: GatewayFacts | undefined;
}

/**
 * @throws InvalidInputError if the file has no payout, or errors that it may not skip
 * @throws ConflictError if payouts exist with other data, after enqueuing all others
 */
async function importFile(context: CliContext, path: string, flags: Flags): Promise<void> {
  const { environment, terminal } = context;
  const { batch, dryRun, yes, json } = flags;
  checkBatch(batch);
  const names = dryRun ? [] : (['REDIS_URL', 'GATEWAY_PLATFORM_ID'] as const);
  const {
    WITHDRAW_INTERVAL_MS: intervalMs,
    PAYOUT_CHECK_ADDRESSES: checksums,
    PAYOUT_CHECK_PAYMENT_IDS: paymentIds,
    PAYOUT_REQUIRE_CURRENCIES: isRequired,
  } = readConfig(
    [
      'WITHDRAW_INTERVAL_MS',
      'PAYOUT_CHECK_ADDRESSES',
      'PAYOUT_CHECK_PAYMENT_IDS',
      'PAYOUT_REQUIRE_CURRENCIES',
      ...names,
    ],
    environment,
  );
  // Fails before a large file is read.
  const signer = readPayoutSigner(environment);
  if (signer !== undefined && !dryRun) await trySigner(signer, undefined);
  const audience = signer === undefined || dryRun ? undefined : readAudience(environment);
  if (!yes && !dryRun) requireOperator(terminal, path);
  const signal = context.stopSignal();
  const source = await openSource(path, signal, undefined, flags.delimiter);
  const counts: EnqueueCounts = { created: 0, existing: 0, otherBatch: 0, conflicts: 0, removed: 0 };
  const facts = await readFacts(context);
  const run: ImportRun = { context, source, flags, intervalMs, signer, audience, signal, counts, facts };
  const check = (payout: NewPayout): void => {
    if (signer !== undefined) checkSignable(payout, Date.now());
  };
  const checkAll = async (listed?: ListedCurrencies) =>
    checkFile(context, source, { batch, checksums, listed, check }, signal);
  const checkWithList = async ({ ledger }: LedgerAccess) => {
    const listed = new ListedCurrencies(ledger, { checksums, paymentIds, isRequired });
    await listed.read();
    const file = await checkAll(listed);
    const payouts = file.checked.map(({ payout }) => payout);
    return { ...file, twins: await findTwins(ledger.connection, payouts, signal) };
  };
  const file: Awaited<ReturnType<typeof checkAll>> & { readonly twins?: Twins } =
    dryRun && facts === undefined ? await checkAll() : await withAccount(context, checkWithList);
  try {
    await importChecked(run, file.check, file.checked, file.twins);
  } finally {
    // A program also learns how many payouts were enqueued before an error.
    if (json) writeSummary(run, file.check, file.twins);
  }
  if (counts.conflicts === 0) return;
  const what = formatCount(counts.conflicts, 'payout');
  throw new ConflictError(`${what} not enqueued: the payoutId already exists, or was removed, with different data`);
}

async function importChecked(
  run: ImportRun,
  check: FileCheck,
  checked: readonly CheckedPayout[],
  twins: Twins | undefined,
): Promise<void> {
  const { context, source, counts, intervalMs, signal } = run;
  const { dryRun, skipInvalid, yes, json } = run.flags;
  refuseUnusable(source, check, 'enqueued', skipInvalid ? undefined : 'fix them, or skip them with --skip-invalid');
  // With --json, stdout has one object, but the operator must see the check before a yes.
  const described = describeCheck(check, intervalMs, run.facts) + describeTwins(twins);
  if (!json) context.write(described);
  else if (!yes && !dryRun) context.writeError(described);
  if (!dryRun) {
    if (!yes) {
      const account = readVariable('GATEWAY_PLATFORM_ID', context.environment);
      const question = `Enqueue ${formatCount(check.payouts, 'payout')} for account ${account}?`;
      await confirm(question, context.terminal, signal);
    }
    await enqueueAll(run, checked);
  }
  if (!json) context.write(dryRun ? 'Dry run: nothing was enqueued.\n' : describeCounts(counts));
}

async function enqueueAll(run: ImportRun, checked: readonly CheckedPayout[]): Promise<void> {
  const { context, counts } = run;
  const messages = new RowMessages(context);
  const progress = startProgress('Enqueuing', checked.length, context.terminal.output);
  const countDone = (): number => counts.created + counts.existing + counts.conflicts;
  let ended = '';
  try {
    await withAccount(context, async (account) => {
      let start = 0;
      for await (const results of enqueueChunks(run, account, checked)) {
        countResults(checked.slice(start, (start += CHUNK_SIZE)), results, run, messages);
        progress.update(countDone());
      }
    });
  } catch (error) {
    ended = `${countDone()} of ${formatCount(checked.length, 'payout')} done; run the same command again to continue.\n`;
    throw error;
  } finally {
    progress.stop();
    messages.end();
    context.writeError(ended);
  }
}

/** An existing payout is a result, so a second run continues the first. */
async function* enqueueChunks(
  { signer, audience, signal }: ImportRun,
  account: LedgerAccess,
  checked: readonly CheckedPayout[],
): AsyncGenerator<readonly EnqueueResult[]> {
  const chunks = function* (): Generator<NewPayout[]> {
    for (let start = 0; start < checked.length; start += CHUNK_SIZE) {
      if (isAborted(signal)) throw new StoppedError('Stopped');
      yield checked.slice(start, start + CHUNK_SIZE).map(({ payout }) => payout);
    }
  };
  const isSigning = signer !== undefined && audience !== undefined;
  const payoutSigner = isSigning ? new PayoutSigner({ signer, audience, ...account.ledger.connection }) : undefined;
  const own = payoutSigner && {
    signAll: async (payouts: readonly NewPayout[]) => signAllForLedger(payoutSigner, payouts),
  };
  yield* (await PayoutIntake.open(account)).enqueueChunks(chunks(), own);
}

function countResults(
  chunk: readonly CheckedPayout[],
  results: readonly EnqueueResult[],
  { counts, source }: ImportRun,
  messages: RowMessages,
): void {
  for (const [index, result] of results.entries()) {
    const given = chunk[index];
    if (given === undefined) throw new Error('The ledger returned more results than it was given payouts');
    if (result.kind === 'created') counts.created += 1;
    else if (result.kind === 'exists') {
      counts.existing += 1;
      if (given.payout.batch !== undefined && result.payout.batch !== given.payout.batch) counts.otherBatch += 1;
    } else {
      counts.conflicts += 1;
      if (result.kind === 'removed') counts.removed += 1;
      messages.add(describeConflict({ ...result, line: given.line }, source.nameField));
    }
  }
}

function writeSummary(
  { context, source, flags, intervalMs, counts }: ImportRun,
  check: FileCheck,
  twins: Twins | undefined,
): void {
  const { batch, dryRun = false } = flags;
  const estimatedMs = check.payouts * intervalMs;
  const sameAsRecent = twins?.rows;
  context.writeJson({ file: source.name, batch, ...check, sameAsRecent, estimatedMs, dryRun, ...counts });
}

function describeCheck(
  { rows, payouts, repeated, invalid, totals, unchecked }: FileCheck,
  intervalMs: number,
  facts: GatewayFacts | undefined,
): string {
  const currencies = facts?.currencies ?? [];
  const others = [
    repeated === 0 ? '' : `, ${repeated} repeated`,
    invalid === 0 ? '' : `, ${invalid} with errors, skipped`,
  ];
  return [
    `${formatCount(rows, 'row')}: ${formatCount(payouts, 'payout')}${others.join('')}\n`,
    formatTotals(totals, currencies),
    facts === undefined ? '' : formatCover(totals, facts),
    warnOfUnknown(totals, currencies),
    ...unchecked.map(
      ({ reason, payouts: count }) => `Network not checked of ${formatCount(count, 'payout')}: ${reason}.\n`,
    ),
    `At one every ${intervalMs} ms, sending them takes at least ${formatDuration(payouts * intervalMs)}.\n`,
  ].join('');
}

function describeTwins(twins: Twins | undefined): string {
  if (twins === undefined) return `Not checked: whether payouts of the last ${TWIN_DAYS} days are the same.\n`;
  const { rows, example, isWhole } = twins;
  const some = isWhole ? '' : 'At least ';
  const what = `have the address, amount and reference of payouts of the last ${TWIN_DAYS} days with other ids`;
  if (rows > 0)
    return `Warning: ${some}${rows} of these rows ${what}, such as ${example?.payoutId ?? ''} (${example?.state ?? ''}).\n`;
  return isWhole ? '' : `Not checked in full: whether payouts of the last ${TWIN_DAYS} days are the same.\n`;
}

/** Of those that are not refused: they exist, the list may be incomplete, or the check is off. */
function warnOfUnknown(totals: readonly CurrencyTotal[], currencies: readonly Currency[]): string {
  if (currencies.length === 0) return '';
  const known = new Set(currencies.map(({ paymentId }) => paymentId));
  const unknown = [...new Set(totals.map(({ paymentId }) => paymentId).filter((id) => !known.has(id)))];
  if (unknown.length === 0) return '';
  const ids = unknown.map((id) => `payment_id ${id}`).join(', ');
  return `Warning: the gateway does not list ${ids}; see \`payouts gateway currencies\`. It may reject such payouts.\n`;
}

function describeCounts({ created, existing, otherBatch, conflicts, removed }: EnqueueCounts): string {
  const others = [
    existing === 0 ? '' : `, ${existing} already existed`,
    conflicts === removed ? '' : `, ${conflicts - removed} with different data`,
    removed === 0 ? '' : `, ${removed} removed earlier`,
  ];
  const batch =
    otherBatch === 0
      ? ''
      : `${otherBatch} of those that already existed belong to another batch, or to none: stats and list do not show them under --batch.\n`;
  return `${formatCount(created, 'payout')} enqueued${others.join('')}.\n${batch}`;
}

function describeConflict(conflict: Conflict, nameField: (field: string) => string): string {
  const { line, payoutId, state } = conflict;
  return conflict.kind === 'removed'
    ? `line ${line}: payout ${payoutId} ended as ${state} and was removed after PAYOUT_RETENTION_DAYS. It is not paid again; use a new ${nameField('payoutId')} for a new payout`
    : `line ${line}: payout ${payoutId} already exists (${state}) with a different ${conflict.fields.map(nameField).join(', ')}`;
}
