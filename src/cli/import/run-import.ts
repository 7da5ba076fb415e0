import { setFlagsFromString } from 'node:v8';
import { readConfig } from '../../config.js';
import { ConflictError, InvalidInputError } from '../../errors.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import type { SigningKey } from '../../control/keys/signing-key-file.js';
import { checkSignable, PayoutSigner } from '../../control/intents/payout-signer.js';
import type { Currency } from '../../ledger/gateway-facts.js';
import { formatCount } from '../../format.js';
import { readCurrencies, withAccount } from '../context/account.js';
import { checkRows, type FileCheck } from './check-rows.js';
import { describeCheck, describeConflict, describeCounts } from './describe-import.js';
import { enqueueSpool, type EnqueueCounts } from './enqueue-spool.js';
import type { ImportSource } from './open-source.js';
import { PayoutSpool } from './payout-spool.js';
import { startProgress } from './progress.js';
import { RowMessages } from './row-messages.js';

export interface ImportOptions {
  readonly batch: string | undefined;
  readonly dryRun: boolean;
  readonly skipInvalid: boolean;
  /** Without asking for confirmation. */
  readonly yes: boolean;
  readonly json: boolean;
  /** Between two sends of the account, ms. */
  readonly intervalMs: number;
  /** Refuses an address whose checksum is wrong. */
  readonly checksums: boolean;
  /** Undefined where payouts are not signed. */
  readonly key: SigningKey | undefined;
  /** For which environment the key signs; undefined where nothing is signed. */
  readonly audience: string | undefined;
  readonly signal: AbortSignal;
}

/** One run: its source, its spool, and the counts so far. */
interface ImportRun {
  readonly context: CliContext;
  readonly source: ImportSource;
  readonly options: ImportOptions;
  readonly spool: PayoutSpool;
  readonly counts: EnqueueCounts;
  /** Read once. */
  readonly currencies: () => Promise<readonly Currency[]>;
}

/**
 * Checks a file, reports what is in it, asks for confirmation, and enqueues it.
 * @throws InvalidInputError when the file has errors that are not to be skipped, or no payout; StoppedError;
 * ConflictError when payouts exist with different data, after all others were enqueued; RedisUnavailableError
 */
export async function runImport(context: CliContext, source: ImportSource, options: ImportOptions): Promise<void> {
  // By default V8 lets garbage grow to several times of what is in use; collecting earlier costs no time here.
  setFlagsFromString('--heap-growing-percent=50');
  const counts: EnqueueCounts = { created: 0, existing: 0, otherBatch: 0, conflicts: 0, removed: 0 };
  const spool = await PayoutSpool.create();
  let reading: Promise<readonly Currency[]> | undefined;
  const currencies = async () => (reading ??= readCurrencies(context));
  const run: ImportRun = { context, source, options, spool, counts, currencies };
  try {
    const check = await checkSource(run);
    try {
      await enqueueChecked(run, check);
    } finally {
      // A program that gets an error is told, too, how many payouts were enqueued.
      if (options.json) writeSummary(run, check);
    }
  } finally {
    await spool.close();
  }
  if (counts.conflicts === 0) return;
  const what = formatCount(counts.conflicts, 'payout');
  throw new ConflictError(`${what} not enqueued: the payoutId already exists, or was removed, with different data`);
}

async function checkSource({ context, source, options, spool, currencies }: ImportRun): Promise<FileCheck> {
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const progress = startProgress('Checking ', source.sizeBytes, context.terminal.output);
  try {
    return await checkRows(source, {
      batch: options.batch,
      signal: options.signal,
      spool,
      checksums: options.checksums,
      currencies,
      check: (payout) => {
        if (options.key !== undefined) checkSignable(payout, Date.now());
      },
      onProblem: (line, { field, message }) => {
        messages.add(`line ${line}: ${field}: ${message}`);
      },
      onProgress: (rows) => {
        progress.update(source.sizeBytes === undefined ? rows : source.bytesRead());
      },
    });
  } finally {
    progress.stop();
    messages.end();
  }
}

async function enqueueChecked(run: ImportRun, check: FileCheck): Promise<void> {
  const { context, source, counts } = run;
  const { dryRun, skipInvalid, yes, json, intervalMs } = run.options;
  refuseUnusable(source, check, skipInvalid);
  // With --json stdout holds one object; an operator who is asked must see the check as well.
  const described = describeCheck(check, intervalMs, await run.currencies());
  if (!json) context.write(described);
  else if (!yes && !dryRun) context.writeError(described);
  if (!dryRun) {
    if (!yes) await askToEnqueue(run, check);
    await enqueueAll(run, check.payouts);
  }
  if (!json) context.write(dryRun ? 'Dry run: nothing was enqueued.\n' : describeCounts(counts));
}

/** @throws InvalidInputError */
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

async function enqueueAll({ context, source, options, spool, counts }: ImportRun, total: number): Promise<void> {
  const { key, audience, signal } = options;
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const progress = startProgress('Enqueuing', total, context.terminal.output);
  const countDone = (): number => counts.created + counts.existing + counts.conflicts;
  let ended = '';
  try {
    await withAccount(context, (account) =>
      enqueueSpool(spool, {
        account,
        signer:
          key === undefined || audience === undefined
            ? undefined
            : new PayoutSigner({ key, audience, ...account.ledger.connection }),
        counts,
        signal,
        onConflict: (conflict) => {
          messages.add(describeConflict(conflict, source.nameField));
        },
        onProgress: () => {
          progress.update(countDone());
        },
      }),
    );
  } catch (error) {
    ended = `${countDone()} of ${formatCount(total, 'payout')} done; run the same command again to continue.\n`;
    throw error;
  } finally {
    progress.stop();
    messages.end();
    context.writeError(ended);
  }
}

function writeSummary({ context, source, options, counts }: ImportRun, check: FileCheck): void {
  const { batch, dryRun, intervalMs } = options;
  const estimatedMs = check.payouts * intervalMs;
  context.writeJson({ file: source.name, batch, ...check, estimatedMs, dryRun, ...counts });
}
