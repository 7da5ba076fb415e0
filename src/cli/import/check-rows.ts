import { isAborted } from '../../base/clock.js';
import { formatCount } from '../../base/format.js';
import { StoppedError, type Problem } from '../../base/errors.js';
import type { ListedCurrencies } from '../../producer/listed-currencies.js';
import { parsePayout } from '../../producer/parse-payouts.js';
import type { NewPayout } from '../../ledger/payout.js';
import { differingFields, pairsToRecord, toRecordFields } from '../../ledger/payout-record.js';
import { CurrencyTotals, type CurrencyTotal } from './currency-totals.js';
import type { CliContext } from '../context/cli-context.js';
import { type ImportSource, readEachRow } from './open-source.js';
import { refuse } from '../context/flags.js';
import { RowMessages, startProgress } from './progress.js';
import type { Row } from './read-records.js';

/** Rows of one file, all in memory until they are enqueued. */
const MAX_ROWS = 250_000;

export interface CheckedPayout {
  readonly line: number;
  readonly payout: NewPayout;
}

export interface FileCheck {
  readonly rows: number;
  readonly payouts: number;
  readonly repeated: number;
  readonly invalid: number;
  readonly totals: readonly CurrencyTotal[];
  /** Payouts whose network could not be compared with their currency's, by the reason. */
  readonly unchecked: readonly { readonly reason: string; readonly payouts: number }[];
}

interface RowRules {
  /** Of all payouts. */
  readonly batch?: string | undefined;
  readonly checksums: boolean;
  /** The gateway's list; without it no payout is compared with it. */
  readonly listed?: ListedCurrencies | undefined;
  readonly check?: (payout: NewPayout) => void;
}

interface CheckedFile {
  readonly check: FileCheck;
  readonly checked: readonly CheckedPayout[];
}

const PROGRESS_EVERY_ROWS = 1_000;

/** As {@link checkRows}, with its progress and problems on stderr. */
export async function checkFile(
  context: CliContext,
  source: ImportSource,
  rules: RowRules,
  signal: AbortSignal,
): Promise<CheckedFile> {
  const messages = new RowMessages(context);
  const progress = startProgress('Checking ', source.sizeBytes, context.terminal.output);
  const onProgress = (rows: number): void => {
    progress.update(source.sizeBytes === undefined ? rows : source.bytesRead());
  };
  try {
    return await checkRows(source, rules, signal, messages.addProblem, onProgress);
  } finally {
    progress.stop();
    messages.end();
  }
}

/**
 * @param undone - `signed`
 * @param remedy - undefined if rows with errors are left out
 * @throws InvalidInputError if the file has no payout, or errors that may not be skipped
 */
export function refuseUnusable(
  { name }: ImportSource,
  { rows, payouts, invalid }: FileCheck,
  undone: string,
  remedy: string | undefined,
): void {
  if (invalid > 0 && remedy !== undefined) {
    const has = invalid === 1 ? 'has' : 'have';
    refuse(name, `${invalid} of ${formatCount(rows, 'row')} ${has} errors, nothing was ${undone}; ${remedy}`);
  }
  if (payouts === 0) refuse(name, 'contains no payouts');
}

/** @throws InvalidInputError if the file as a whole is not usable */
export async function checkRows(
  { name, rows, nameField }: ImportSource,
  { batch, checksums, listed, check }: RowRules,
  signal: AbortSignal,
  onProblem: (line: number, problem: Problem) => void,
  onProgress: (rows: number) => void = () => undefined,
): Promise<CheckedFile> {
  const checked = new Map<string, CheckedPayout>();
  const suspects: NewPayout[] = [];
  const unchecked = new Map<string, number>();
  const counts = { rows: 0, repeated: 0 };
  const counted = async function* (): AsyncGenerator<Row> {
    for await (const row of rows) {
      counts.rows += 1;
      if (counts.rows > MAX_ROWS) {
        refuse(name, `has more than ${MAX_ROWS} rows: split the file, and give the parts one after the other`);
      }
      if (counts.rows % PROGRESS_EVERY_ROWS === 0) onProgress(counts.rows);
      if (isAborted(signal)) throw new StoppedError('Stopped while checking; nothing was enqueued');
      yield row;
    }
  };
  let invalid = await readEachRow({ rows: counted(), nameField }, onProblem, (input, line) => {
    const parsed = parsePayout(withBatch(input, batch), { checksums });
    const { payout } = parsed;
    check?.(payout);
    const earlier = checked.get(payout.payoutId);
    if (earlier === undefined) {
      checked.set(payout.payoutId, { line, payout });
      if (listed?.mayRefuse([parsed]) === true) suspects.push(payout);
      const reason = listed === undefined ? NO_LIST : listed.whyUnchecked(parsed);
      if (reason !== undefined) unchecked.set(reason, (unchecked.get(reason) ?? 0) + 1);
    } else {
      requireSame(payout, earlier, nameField);
      counts.repeated += 1;
    }
  });
  const refused = suspects.length === 0 ? undefined : await listed?.findRefused(suspects);
  for (const [{ payoutId }, { problems }] of refused ?? []) {
    const line = checked.get(payoutId)?.line ?? 0;
    for (const { field, message } of problems) onProblem(line, { field: nameField(field), message });
    checked.delete(payoutId);
    invalid += 1;
  }
  const totals = new CurrencyTotals();
  for (const { payout } of checked.values()) totals.add(payout);
  const reasons = [...unchecked].map(([reason, payouts]) => ({ reason, payouts }));
  const sums = { payouts: checked.size, invalid, totals: totals.list(), unchecked: reasons };
  return { check: { ...counts, ...sums }, checked: [...checked.values()] };
}

/** Neither `sign` nor a dry run needs Redis. */
const NO_LIST = "the gateway's list of currencies cannot be read";

function withBatch(input: Readonly<Record<string, unknown>>, batch: string | undefined): unknown {
  const own = input['batch'];
  if (batch === undefined || own === batch) return input;
  if (own === undefined) return { ...input, batch };
  const message = `must be absent, or that of --batch, "${batch}" (got ${JSON.stringify(own)})`;
  refuse('batch', message);
}

/** Compares by the ledger's own rule. */
function requireSame(payout: NewPayout, earlier: CheckedPayout, nameField: ImportSource['nameField']): void {
  const { payoutId, ...rest } = earlier.payout;
  const fields = differingFields(pairsToRecord(toRecordFields(rest)), payout).map(nameField);
  if (fields.length === 0) return;
  const message = `already used in line ${earlier.line} with a different ${fields.join(', ')} (got "${payoutId}")`;
  refuse('payoutId', message);
}
