import { isAborted, systemClock } from '../../base/clock.js';
import { ConflictError, NotFoundError, StoppedError } from '../../base/errors.js';
import { formatAlternatives, formatCount } from '../../base/format.js';
import { readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import type { PayoutState } from '../../ledger/states.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm } from '../context/confirm.js';
import { refuse } from '../context/flags.js';
import { formatTotals } from '../import/currency-totals.js';
import { RowMessages, startProgress } from '../import/progress.js';
import { type Choice, surveyPayouts, type ChosenPayout, type Selection, type Survey } from './survey-payouts.js';

export interface BulkSteps extends Pick<Choice, 'wasChanged' | 'findStale'> {
  readonly atOnce: number;
  /** From one step's start to the next, ms. `rest` pauses as long as the step took: Redis can serve others. */
  readonly everyMs: number | 'rest';
  /** A ConflictError or NotFoundError skips that payout; any other error ends the command. */
  readonly apply: (payouts: readonly ChosenPayout[]) => Promise<readonly (Error | undefined)[]>;
}

interface BulkChange extends BulkSteps, Choice {
  /** Question without its mark: `Send 3 payouts of account 4242 again`. */
  readonly describe: (payouts: string) => string;
  /** `3 payouts queued again` */
  readonly describeDone: (payouts: string) => string;
  /** The operator types the number of payouts: a yes is too easy. */
  readonly asksForCount?: boolean;
  /** Which worker has what was changed on its disk. */
  readonly describeKept?: () => Promise<string>;
  /** Called at the end, even of a stopped command. */
  readonly finish?: () => Promise<void>;
}

interface BulkFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly expectCount?: number;
  readonly json?: boolean;
}

interface Counts {
  changed: number;
  refused: number;
}

/**
 * Counts and sums the chosen payouts, asks, and changes them step by step. A second run continues: it skips payouts
 * that left the state.
 * @throws InvalidInputError if payouts do not exist
 * @throws ConflictError if payouts were refused, after changing all others
 */
export async function runBulk(
  context: CliContext,
  { ledger: { connection } }: LedgerAccess,
  change: BulkChange,
  selection: Selection,
  flags: BulkFlags,
  signal: AbortSignal,
): Promise<void> {
  const { dryRun = false, json = false } = flags;
  const total = selection.kind === 'named' ? selection.payouts.length : undefined;
  const progress = startProgress('Counting ', total, context.terminal.output);
  const surveying = surveyPayouts(connection, selection, change, signal, progress.update);
  const survey = await surveying.finally(progress.stop);
  refuseMissing(context, survey.missing);
  const counts: Counts = { changed: 0, refused: 0 };
  const messages = new RowMessages(context);
  for (const message of survey.stale) messages.add(message);
  messages.end();
  try {
    // With --json, stdout has only the object at the end.
    const { currencies } = await readGatewayFacts(connection);
    const table = survey.chosen.length === 0 ? '' : formatTotals(survey.totals, currencies);
    (json ? context.writeError : context.write)(`${describeSurvey(survey, change.from)}${table}`);
    if (!dryRun && survey.chosen.length > 0) {
      await askToChange(context, change, `of account ${connection.platformId}`, survey.chosen.length, flags, signal);
      await changeAll(context, change, survey.chosen, counts, signal);
    }
    if (!dryRun) await change.finish?.();
    const done = dryRun ? 'Dry run: nothing was changed' : change.describeDone(formatCount(counts.changed, 'payout'));
    const write = json ? context.writeError : context.write;
    if (!json) write(`${done}.\n`);
    if (counts.changed > 0) write((await change.describeKept?.()) ?? '');
  } finally {
    counts.refused += survey.stale.length;
    const { chosen, totals, changedBefore, others } = survey;
    if (json) context.writeJson({ payouts: chosen.length, totals, changedBefore, others, dryRun, ...counts });
  }
  const { refused } = counts;
  if (refused > 0) throw new ConflictError(`${formatCount(refused, 'payout')} not changed, for the reasons above`);
}

/** Missing payouts suggest the wrong account. */
function refuseMissing(context: CliContext, missing: Survey['missing']): void {
  if (missing.length === 0) return;
  const messages = new RowMessages(context);
  for (const { line = 0, payoutId } of missing) messages.add(`line ${line}: payout ${payoutId} not found`);
  messages.end();
  const message = `names ${formatCount(missing.length, 'payout')} that this account does not have; nothing was changed`;
  refuse('--file', message);
}

async function askToChange(
  { terminal }: CliContext,
  { describe, asksForCount = false }: BulkChange,
  ofAccount: string,
  count: number,
  { yes = false, expectCount }: BulkFlags,
  signal: AbortSignal,
): Promise<void> {
  const question = `${describe(`${formatCount(count, 'payout')} ${ofAccount}`)}?`;
  if (!asksForCount) {
    if (!yes) await confirm(question, terminal, signal);
  } else if (expectCount === undefined) {
    await confirm(`${question} Type how many:`, terminal, signal, String(count));
  } else if (expectCount !== count) {
    const message = `must be the number of payouts to change, ${count} (got ${expectCount}). Nothing was changed`;
    refuse('--expect-count', message);
  }
}

async function changeAll(
  context: CliContext,
  change: BulkChange,
  chosen: readonly ChosenPayout[],
  counts: Counts,
  signal: AbortSignal,
): Promise<void> {
  const messages = new RowMessages(context);
  const progress = startProgress('Changing ', chosen.length, context.terminal.output);
  let ended = '';
  try {
    for (let start = 0; start < chosen.length; start += change.atOnce) {
      if (isAborted(signal)) throw new StoppedError('Stopped');
      const beganAt = systemClock.now();
      countErrors(await change.apply(chosen.slice(start, start + change.atOnce)), counts, messages);
      progress.update(counts.changed + counts.refused);
      if (start + change.atOnce < chosen.length) await rest(beganAt, change, signal);
    }
  } catch (error) {
    const done = counts.changed + counts.refused;
    ended = `${done} of ${formatCount(chosen.length, 'payout')} done; run the same command again to continue.\n`;
    await change.finish?.().catch(() => undefined);
    throw error;
  } finally {
    progress.stop();
    messages.end();
    context.writeError(ended);
  }
}

/** A longer step waited for the machine, not for Redis. */
const LONGEST_REST_MS = 5;

async function rest(beganAt: number, { everyMs }: BulkChange, signal: AbortSignal): Promise<void> {
  const tookMs = systemClock.now() - beganAt;
  await systemClock.sleep(everyMs === 'rest' ? Math.min(tookMs, LONGEST_REST_MS) : everyMs - tookMs, signal);
}

/** @throws the first failure not about a single payout, after counting all */
function countErrors(errors: readonly (Error | undefined)[], counts: Counts, messages: RowMessages): void {
  const failures: Error[] = [];
  for (const error of errors) {
    if (error === undefined) counts.changed += 1;
    else if (error instanceof ConflictError || error instanceof NotFoundError) {
      counts.refused += 1;
      messages.add(error.message);
    } else failures.push(error);
  }
  if (failures[0] !== undefined) throw failures[0];
}

function describeSurvey({ chosen, changedBefore, others }: Survey, from: readonly PayoutState[]): string {
  const states = formatAlternatives(from);
  const left = Object.entries(others).map(([state, count]) => `, ${count} ${state} left as they are`);
  const before =
    changedBefore === 0
      ? ''
      : `${formatCount(changedBefore, 'payout')} left as they are: decided so before, for the same reason, and ${states} again since. Look at each, or give another reason.\n`;
  return `${formatCount(chosen.length, 'payout')} ${states}${left.join('')}\n${before}`;
}
