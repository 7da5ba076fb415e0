import { isAborted } from '../../base/clock.js';
import { readConfig } from '../../base/config.js';
import { ConflictError, InvalidInputError, StoppedError } from '../../base/errors.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import type { SigningKey } from '../../control/keys/signing-key.js';
import { checkSignable, PayoutSigner } from '../../control/intents/intent-signer.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { NewPayout } from '../../ledger/payout.js';
import type { EnqueueResult } from '../../ledger/payout-ledger.js';
import { CHUNK_SIZE, PayoutIntake } from '../../producer/payout-intake.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import { formatCount, formatDuration } from '../../base/format.js';
import { readCurrencies, withAccount } from '../context/account.js';
import { checkRows, type CheckedPayout, type FileCheck } from './check-rows.js';
import { formatTotals, type CurrencyTotal } from './currency-totals.js';
import type { ImportSource } from './open-source.js';
import { RowMessages, startProgress } from './progress.js';

interface ImportOptions {
  readonly batch: string | undefined;
  readonly dryRun: boolean;
  readonly skipInvalid: boolean;
  readonly yes: boolean;
  readonly json: boolean;
  /** Between two sends of the account, ms. */
  readonly intervalMs: number;
  readonly checksums: boolean;
  /** Undefined if payouts are not signed. */
  readonly key: SigningKey | undefined;
  /** The environment that the key signs for. */
  readonly audience: string | undefined;
  readonly signal: AbortSignal;
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
  readonly options: ImportOptions;
  readonly counts: EnqueueCounts;
  /** Read once. */
  readonly currencies: () => Promise<readonly Currency[]>;
}

/**
 * @throws InvalidInputError if the file has no payout, or errors that it may not skip
 * @throws ConflictError if payouts exist with other data, after enqueuing all others
 */
export async function runImport(context: CliContext, source: ImportSource, options: ImportOptions): Promise<void> {
  const counts: EnqueueCounts = { created: 0, existing: 0, otherBatch: 0, conflicts: 0, removed: 0 };
  let reading: Promise<readonly Currency[]> | undefined;
  const currencies = async () => (reading ??= readCurrencies(context));
  const run: ImportRun = { context, source, options, counts, currencies };
  const { check, checked } = await checkSource(run);
  try {
    await importChecked(run, check, checked);
  } finally {
    // A program also learns how many payouts were enqueued before an error.
    if (options.json) writeSummary(run, check);
  }
  if (counts.conflicts === 0) return;
  const what = formatCount(counts.conflicts, 'payout');
  throw new ConflictError(`${what} not enqueued: the payoutId already exists, or was removed, with different data`);
}

async function checkSource({ context, source, options, currencies }: ImportRun): ReturnType<typeof checkRows> {
  const messages = new RowMessages(context);
  const progress = startProgress('Checking ', source.sizeBytes, context.terminal.output);
  try {
    return await checkRows(source, {
      batch: options.batch,
      signal: options.signal,
      checksums: options.checksums,
      currencies,
      check: (payout) => {
        if (options.key !== undefined) checkSignable(payout, Date.now());
      },
      onProblem: messages.addProblem,
      onProgress: (rows) => {
        progress.update(source.sizeBytes === undefined ? rows : source.bytesRead());
      },
    });
  } finally {
    progress.stop();
    messages.end();
  }
}

async function importChecked(run: ImportRun, check: FileCheck, checked: readonly CheckedPayout[]): Promise<void> {
  const { context, source, counts } = run;
  const { dryRun, skipInvalid, yes, json, intervalMs } = run.options;
  refuseUnusable(source, check, skipInvalid);
  // With --json, stdout has one object, but the operator must see the check before a yes.
  const described = describeCheck(check, intervalMs, await run.currencies());
  if (!json) context.write(described);
  else if (!yes && !dryRun) context.writeError(described);
  if (!dryRun) {
    if (!yes) await askToEnqueue(run, check);
    await enqueueAll(run, checked);
  }
  if (!json) context.write(dryRun ? 'Dry run: nothing was enqueued.\n' : describeCounts(counts));
}

function refuseUnusable({ name }: ImportSource, { rows, payouts, invalid }: FileCheck, skipInvalid: boolean): void {
  if (invalid > 0 && !skipInvalid) {
    const message = `${invalid} of ${formatCount(rows, 'row')} ${invalid === 1 ? 'has' : 'have'} errors, nothing was enqueued; fix them, or skip them with --skip-invalid`;
    throw new InvalidInputError([{ field: name, message }]);
  }
  if (payouts === 0) throw new InvalidInputError([{ field: name, message: 'contains no payouts' }]);
}

async function askToEnqueue({ context, options }: ImportRun, { payouts }: FileCheck): Promise<void> {
  const { GATEWAY_PLATFORM_ID: platformId } = readConfig(['GATEWAY_PLATFORM_ID'], context.environment);
  const question = `Enqueue ${formatCount(payouts, 'payout')} for account ${platformId}?`;
  await confirm(question, { terminal: context.terminal, signal: options.signal });
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
  { options: { key, audience, signal } }: ImportRun,
  account: LedgerAccess,
  checked: readonly CheckedPayout[],
): AsyncGenerator<readonly EnqueueResult[]> {
  const chunks = function* (): Generator<NewPayout[]> {
    for (let start = 0; start < checked.length; start += CHUNK_SIZE) {
      if (isAborted(signal)) throw new StoppedError('Stopped');
      yield checked.slice(start, start + CHUNK_SIZE).map(({ payout }) => payout);
    }
  };
  const isSigning = key !== undefined && audience !== undefined;
  const signer = isSigning ? new PayoutSigner({ key, audience, ...account.ledger.connection }) : undefined;
  yield* (await PayoutIntake.open(account)).enqueueChunks(chunks(), signer);
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

function writeSummary({ context, source, options, counts }: ImportRun, check: FileCheck): void {
  const { batch, dryRun, intervalMs } = options;
  const estimatedMs = check.payouts * intervalMs;
  context.writeJson({ file: source.name, batch, ...check, estimatedMs, dryRun, ...counts });
}

function describeCheck(
  { rows, payouts, repeated, invalid, totals }: FileCheck,
  intervalMs: number,
  currencies: readonly Currency[],
): string {
  const others = [
    repeated === 0 ? '' : `, ${repeated} repeated`,
    invalid === 0 ? '' : `, ${invalid} with errors, skipped`,
  ];
  return [
    `${formatCount(rows, 'row')}: ${formatCount(payouts, 'payout')}${others.join('')}\n`,
    formatTotals(totals, currencies),
    warnOfUnknown(totals, currencies),
    `At one every ${intervalMs} ms, sending them takes at least ${formatDuration(payouts * intervalMs)}.\n`,
  ].join('');
}

/** Only warns: the gateway may know more currencies than its list had. */
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
