import { setFlagsFromString } from 'node:v8';
import { ConflictError, InvalidInputError } from '../../errors.js';
import type { CliContext } from '../cli-context.js';
import { confirm } from '../confirm.js';
import { withAccount } from '../with-account.js';
import { CappedLines } from './capped-lines.js';
import { checkRows, type FileCheck } from './check-rows.js';
import { describeCheck, describeConflict, describeCounts } from './describe-import.js';
import { enqueueSpool, type EnqueueCounts } from './enqueue-spool.js';
import type { ImportSource } from './open-source.js';
import { PayoutSpool } from './payout-spool.js';
import { startProgress } from './progress.js';

export interface ImportOptions {
  readonly batch: string | undefined;
  readonly dryRun: boolean;
  readonly skipInvalid: boolean;
  /** Do not ask. */
  readonly yes: boolean;
  readonly json: boolean;
  /** Between two sends of the account, ms. */
  readonly intervalMs: number;
}

/** So many errors, or conflicts, are written out; a file that has more is mended by a program. */
const SHOWN_LINES = 50;

/**
 * Checks a file, says what is in it, asks, and enqueues it.
 * @throws InvalidInputError when the file has errors that are not to be skipped, or no payout; StoppedError;
 * ConflictError when payouts are there with other data, all others are enqueued then; RedisUnavailableError
 */
export async function runImport(context: CliContext, source: ImportSource, options: ImportOptions): Promise<void> {
  const { dryRun, skipInvalid, yes, json, batch, intervalMs } = options;
  // Without it V8 lets garbage pile up to several times of what is in use before it looks; this costs no time here.
  setFlagsFromString('--heap-growing-percent=50');
  const signal = context.stopSignal();
  const counts: EnqueueCounts = { created: 0, existing: 0, conflicts: 0 };
  const spool = dryRun ? undefined : await PayoutSpool.create();
  try {
    const check = await checkSource(context, source, { batch, spool, signal });
    const writeSummary = (): void => {
      const estimatedMs = check.payouts * intervalMs;
      context.writeJson({ file: source.name, batch, ...check, estimatedMs, dryRun, ...counts });
    };
    const refusal = findRefusal(source, check, skipInvalid);
    if (refusal !== undefined) {
      if (json) writeSummary();
      throw refusal;
    }
    // For a program stdout holds the one object at the end; a person who is asked needs to see it all the same.
    if (!json) context.write(describeCheck(check, intervalMs));
    else if (!yes && !dryRun) context.writeError(describeCheck(check, intervalMs));
    if (spool !== undefined) {
      if (!yes) await confirm(`Enqueue ${check.payouts} payouts?`);
      await enqueueChecked(context, spool, { total: check.payouts, counts, signal });
    }
    if (json) writeSummary();
    else context.write(dryRun ? 'Dry run: nothing was enqueued.\n' : describeCounts(counts));
  } finally {
    await spool?.close();
  }
  if (counts.conflicts === 0) return;
  throw new ConflictError(`${counts.conflicts} payouts are there with other data and stay as they are`);
}

interface CheckSourceOptions {
  readonly batch: string | undefined;
  readonly spool: PayoutSpool | undefined;
  readonly signal: AbortSignal;
}

async function checkSource(
  context: CliContext,
  source: ImportSource,
  { batch, spool, signal }: CheckSourceOptions,
): Promise<FileCheck> {
  const errors = new CappedLines(context.writeError, SHOWN_LINES);
  const progress = startProgress('Checking ', source.sizeBytes);
  try {
    return await checkRows(source.rows, {
      batch,
      signal,
      onPayout: async (line, payout) => spool?.write(line, payout),
      onProblem: (line, { field, message }) => {
        errors.add(`line ${line}: ${source.nameField(field)}: ${message}`);
      },
      onProgress: () => {
        progress.update(source.bytesRead());
      },
    });
  } finally {
    progress.stop();
    errors.end();
  }
}

function findRefusal(
  { name }: ImportSource,
  { rows, payouts, invalid }: FileCheck,
  skipInvalid: boolean,
): InvalidInputError | undefined {
  if (invalid > 0 && !skipInvalid) {
    const message = `${invalid} of ${rows} rows have errors, nothing was enqueued; mend them, or leave them out with --skip-invalid`;
    return new InvalidInputError([{ field: name, message }]);
  }
  return payouts > 0 ? undefined : new InvalidInputError([{ field: name, message: 'holds no payout' }]);
}

interface EnqueueCheckedOptions {
  readonly total: number;
  readonly counts: EnqueueCounts;
  readonly signal: AbortSignal;
}

async function enqueueChecked(
  context: CliContext,
  spool: PayoutSpool,
  { total, counts, signal }: EnqueueCheckedOptions,
): Promise<void> {
  const conflicts = new CappedLines(context.writeError, SHOWN_LINES);
  const progress = startProgress('Enqueuing', total);
  const countDone = (): number => counts.created + counts.existing + counts.conflicts;
  try {
    await withAccount(context, (account) =>
      enqueueSpool(spool, {
        account,
        counts,
        signal,
        onConflict: (conflict) => {
          conflicts.add(describeConflict(conflict));
        },
        onProgress: () => {
          progress.update(countDone());
        },
      }),
    );
  } catch (error) {
    context.writeError(`${countDone()} of ${total} payouts are done; the same command again goes on.\n`);
    throw error;
  } finally {
    progress.stop();
    conflicts.end();
  }
}
