import { isAborted, systemClock } from '../../clock.js';
import { ConflictError, InvalidInputError, NotFoundError, StoppedError } from '../../errors.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm, requireTerminal } from '../context/confirm.js';
import { formatCount } from '../../format.js';
import { formatTotals } from '../import/describe-import.js';
import { startProgress } from '../import/progress.js';
import { RowMessages } from '../import/row-messages.js';
import type { SelectedPayout } from './selection.js';
import { surveyPayouts, surveyState, type ChosenPayout, type Survey, type SurveyOptions } from './survey-payouts.js';

/** What a command does with many payouts. */
export interface BulkChange {
  /** The state from which it leads. */
  readonly from: PayoutState;
  /** Whether a payout has been through this very change: run again, the command continues and does nothing twice. */
  readonly wasChanged: (payout: Payout) => boolean;
  /** `Send 3 payouts again`: the question, without its mark. */
  readonly describe: (payouts: string) => string;
  /** `3 payouts queued again`: what was done. */
  readonly describeDone: (payouts: string) => string;
  /** How many may be under way at the same time … */
  readonly atOnce: number;
  /** … and the time after which as many more may begin, in ms. */
  readonly everyMs: number;
  /** @throws ConflictError, NotFoundError: this payout is left as it is; anything else ends the command */
  readonly apply: (payout: ChosenPayout) => Promise<unknown>;
}

export interface BulkOptions {
  /** `all`: every payout that is in the state. */
  readonly selected: readonly SelectedPayout[] | 'all';
  readonly dryRun: boolean;
  /** Do not ask. */
  readonly yes: boolean;
  readonly json: boolean;
  readonly signal: AbortSignal;
}

interface BulkRun {
  readonly context: CliContext;
  readonly account: LedgerAccess;
  readonly change: BulkChange;
  readonly options: BulkOptions;
  readonly counts: { changed: number; refused: number };
}

/**
 * Counts and adds up what was chosen, asks, and changes it payout by payout. Doing it again continues where it ended: what
 * has left the state is left as it is.
 * @throws InvalidInputError when payouts are not there, or nobody can be asked; StoppedError; ConflictError when payouts
 * were refused, all others are changed then; RedisUnavailableError; what `apply` throws
 */
export async function runBulk(
  context: CliContext,
  account: LedgerAccess,
  change: BulkChange,
  options: BulkOptions,
): Promise<void> {
  const { dryRun, yes, json } = options;
  // Before a long count, not after.
  if (!yes && !dryRun) requireTerminal(context.terminal);
  const run: BulkRun = { context, account, change, options, counts: { changed: 0, refused: 0 } };
  const survey = await surveyAll(run);
  try {
    // For a program stdout holds the one object at the end.
    (json ? context.writeError : context.write)(describeSurvey(survey, change.from));
    if (!dryRun && survey.chosen.length > 0) await changeAll(run, survey);
    if (!json) context.write(describeEnd(run));
  } finally {
    if (json) writeSummary(run, survey);
  }
  const { refused } = run.counts;
  if (refused > 0) throw new ConflictError(`${formatCount(refused, 'payout')} not changed, for the reasons above`);
}

async function surveyAll({ context, account, change, options }: BulkRun): Promise<Survey> {
  const { selected, signal } = options;
  const progress = startProgress(
    'Counting ',
    selected === 'all' ? undefined : selected.length,
    context.terminal.output,
  );
  const { connection } = account.ledger;
  const survey: SurveyOptions = {
    connection,
    from: change.from,
    wasChanged: change.wasChanged,
    signal,
    onProgress: (payouts) => {
      progress.update(payouts);
    },
  };
  try {
    const result = selected === 'all' ? await surveyState(survey) : await surveyPayouts(selected, survey);
    progress.stop();
    refuseMissing(context, result.missing);
    return result;
  } finally {
    progress.stop();
  }
}

/** Names of payouts that are not there suggest that it is the wrong account. */
function refuseMissing(context: CliContext, missing: readonly SelectedPayout[]): void {
  if (missing.length === 0) return;
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  for (const { line = 0, payoutId } of missing) messages.add(`line ${line}: payout ${payoutId} not found`);
  messages.end();
  const message = `names ${formatCount(missing.length, 'payout')} that this account does not have; nothing was changed`;
  throw new InvalidInputError([{ field: '--file', message }]);
}

function describeSurvey({ chosen, totals, changedBefore, others }: Survey, from: PayoutState): string {
  const left = Object.entries(others).map(([state, count]) => `, ${count} ${state} left as they are`);
  const table = chosen.length === 0 ? '' : formatTotals(totals);
  const again =
    changedBefore === 0
      ? ''
      : `${formatCount(changedBefore, 'payout')} left as they are: resolved so before, for the same reason, and ${from} again since. Look at each, or give another reason.\n`;
  return `${formatCount(chosen.length, 'payout')} ${from}${left.join('')}\n${again}${table}`;
}

async function changeAll(run: BulkRun, { chosen }: Survey): Promise<void> {
  const { context, change, options, counts } = run;
  const { signal } = options;
  if (!options.yes) {
    const question = `${change.describe(formatCount(chosen.length, 'payout'))}?`;
    await confirm(question, { terminal: context.terminal, signal });
  }
  const messages = new RowMessages({ write: context.writeError, isTerminal: context.terminal.output.isTTY === true });
  const progress = startProgress('Changing ', chosen.length, context.terminal.output);
  let ended = '';
  try {
    for (let start = 0; start < chosen.length; start += change.atOnce) {
      if (isAborted(signal)) throw new StoppedError('Stopped');
      const beganAt = systemClock.now();
      const settled = await Promise.allSettled(chosen.slice(start, start + change.atOnce).map(change.apply));
      countSettled(settled, counts, messages);
      progress.update(counts.changed + counts.refused);
      if (start + change.atOnce < chosen.length)
        await systemClock.sleep(beganAt + change.everyMs - systemClock.now(), signal);
    }
  } catch (error) {
    const done = counts.changed + counts.refused;
    ended = `${done} of ${formatCount(chosen.length, 'payout')} done; run the same command again to continue.\n`;
    throw error;
  } finally {
    progress.stop();
    messages.end();
    context.writeError(ended);
  }
}

/** @throws the first failure that is not about one payout alone, once all are counted */
function countSettled(
  settled: readonly PromiseSettledResult<unknown>[],
  counts: BulkRun['counts'],
  messages: RowMessages,
): void {
  const failures: unknown[] = [];
  for (const one of settled) {
    if (one.status === 'fulfilled') counts.changed += 1;
    else if (one.reason instanceof ConflictError || one.reason instanceof NotFoundError) {
      counts.refused += 1;
      messages.add(one.reason.message);
    } else failures.push(one.reason);
  }
  if (failures.length > 0) throw failures[0];
}

function describeEnd({ change, options, counts }: BulkRun): string {
  return options.dryRun
    ? 'Dry run: nothing was changed.\n'
    : `${change.describeDone(formatCount(counts.changed, 'payout'))}.\n`;
}

function writeSummary({ context, options, counts }: BulkRun, { chosen, totals, changedBefore, others }: Survey): void {
  context.writeJson({ payouts: chosen.length, totals, changedBefore, others, dryRun: options.dryRun, ...counts });
}
