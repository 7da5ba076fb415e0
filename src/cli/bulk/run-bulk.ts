import { isAborted, systemClock } from '../../base/clock.js';
import { ConflictError, InvalidInputError, NotFoundError, StoppedError } from '../../base/errors.js';
import { formatAlternatives, formatCount } from '../../base/format.js';
import { readGatewayFacts, type Currency } from '../../ledger/reads/gateway-facts.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import type { LedgerAccess } from '../../queues/open-ledger.js';
import type { CliContext } from '../context/cli-context.js';
import { confirm, requireTerminal, stdinIsTaken } from '../context/confirm.js';
import { STDIN } from '../import/open-source.js';
import { formatTotals } from '../import/currency-totals.js';
import { RowMessages, startProgress } from '../import/progress.js';
import type { SelectedPayout } from './read-selection-file.js';
import { surveyPayouts, type ChosenPayout, type Selection, type Survey } from './survey-payouts.js';

export interface BulkChange {
  readonly from: readonly PayoutState[];
  /** @defaultValue all */
  readonly matches?: (payout: Payout) => boolean;
  /** A second run must not repeat the change. */
  readonly wasChanged: (payout: Payout) => boolean;
  /** Question without its mark: `Send 3 payouts of account 4242 again`. */
  readonly describe: (payouts: string) => string;
  /** The operator types the number of payouts: a yes is too easy. */
  readonly asksForCount?: boolean;
  /** `3 payouts queued again` */
  readonly describeDone: (payouts: string) => string;
  /** Payouts in one step. */
  readonly atOnce: number;
  /** From one step's start to the next, ms. `rest` pauses as long as the step took: Redis can serve others. */
  readonly everyMs: number | 'rest';
  /** A ConflictError or NotFoundError skips that payout; any other error ends the command. */
  readonly apply: (payouts: readonly ChosenPayout[]) => Promise<readonly (Error | undefined)[]>;
  /** Called at the end, even of a stopped command. */
  readonly finish?: () => Promise<void>;
}

interface BulkOptions {
  readonly selection: Selection;
  readonly dryRun: boolean;
  readonly yes: boolean;
  /** The operator's count. */
  readonly expectCount?: number | undefined;
  readonly json: boolean;
  readonly signal: AbortSignal;
}

/** A longer step waited for the machine, not for Redis. */
const LONGEST_REST_MS = 5;

interface BulkRun {
  readonly context: CliContext;
  readonly account: LedgerAccess;
  readonly change: BulkChange;
  readonly options: BulkOptions;
  readonly counts: { changed: number; refused: number };
}

/**
 * Fails before a long file or count if the operator cannot be asked.
 * @param field - option that answers instead
 */
export function requireSomebody(
  { yes, dryRun, file }: { readonly yes: boolean; readonly dryRun: boolean; readonly file?: string | undefined },
  { terminal }: CliContext,
  field?: string,
): void {
  if (yes || dryRun) return;
  requireTerminal(terminal, field);
  if (file === STDIN) throw stdinIsTaken(field);
}

/**
 * Counts and sums the chosen payouts, asks, and changes them step by step. A second run continues: it skips payouts
 * that left the state.
 * @throws InvalidInputError if payouts do not exist
 * @throws ConflictError if payouts were refused, after changing all others
 */
export async function runBulk(
  context: CliContext,
  account: LedgerAccess,
  change: BulkChange,
  options: BulkOptions,
): Promise<void> {
  const { dryRun, json } = options;
  const run: BulkRun = { context, account, change, options, counts: { changed: 0, refused: 0 } };
  const survey = await surveyAll(run);
  try {
    // With --json, stdout has only the object at the end.
    const { currencies } = await readGatewayFacts(account.ledger.connection);
    (json ? context.writeError : context.write)(describeSurvey(survey, change.from, currencies));
    if (!dryRun && survey.chosen.length > 0) await changeAll(run, survey);
    if (!dryRun) await change.finish?.();
    if (!json) context.write(describeEnd(run));
  } finally {
    if (json) writeSummary(run, survey);
  }
  const { refused } = run.counts;
  if (refused > 0) throw new ConflictError(`${formatCount(refused, 'payout')} not changed, for the reasons above`);
}

async function surveyAll({ context, account, change, options }: BulkRun): Promise<Survey> {
  const { selection, signal } = options;
  const total = selection.kind === 'named' ? selection.payouts.length : undefined;
  const progress = startProgress('Counting ', total, context.terminal.output);
  const { from, wasChanged, matches = () => true } = change;
  const onProgress = (payouts: number): void => {
    progress.update(payouts);
  };
  try {
    const { connection } = account.ledger;
    const survey = await surveyPayouts(selection, { connection, from, matches, wasChanged, signal, onProgress });
    progress.stop();
    refuseMissing(context, survey.missing);
    return survey;
  } finally {
    progress.stop();
  }
}

/** Missing payouts suggest the wrong account. */
function refuseMissing(context: CliContext, missing: readonly SelectedPayout[]): void {
  if (missing.length === 0) return;
  const messages = new RowMessages(context);
  for (const { line = 0, payoutId } of missing) messages.add(`line ${line}: payout ${payoutId} not found`);
  messages.end();
  const message = `names ${formatCount(missing.length, 'payout')} that this account does not have; nothing was changed`;
  throw new InvalidInputError([{ field: '--file', message }]);
}

async function changeAll(run: BulkRun, { chosen }: Survey): Promise<void> {
  const { context, account, change, options, counts } = run;
  const { signal } = options;
  const asked = { terminal: context.terminal, signal };
  const payouts = `${formatCount(chosen.length, 'payout')} of account ${account.ledger.connection.platformId}`;
  if (change.asksForCount === true) {
    if (options.expectCount === undefined) {
      const question = `${change.describe(payouts)}? Type how many:`;
      await confirm(question, { ...asked, answer: String(chosen.length) });
    } else if (options.expectCount !== chosen.length) {
      const message = `must be the number of payouts to change, ${chosen.length} (got ${options.expectCount}). Nothing was changed`;
      throw new InvalidInputError([{ field: '--expect-count', message }]);
    }
  } else if (!options.yes) await confirm(`${change.describe(payouts)}?`, asked);
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

async function rest(beganAt: number, { everyMs }: BulkChange, signal: AbortSignal): Promise<void> {
  const tookMs = systemClock.now() - beganAt;
  await systemClock.sleep(everyMs === 'rest' ? Math.min(tookMs, LONGEST_REST_MS) : everyMs - tookMs, signal);
}

/** @throws the first failure not about a single payout, after counting all */
function countErrors(errors: readonly (Error | undefined)[], counts: BulkRun['counts'], messages: RowMessages): void {
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

function describeEnd({ change, options, counts }: BulkRun): string {
  return options.dryRun
    ? 'Dry run: nothing was changed.\n'
    : `${change.describeDone(formatCount(counts.changed, 'payout'))}.\n`;
}

function writeSummary({ context, options, counts }: BulkRun, { chosen, totals, changedBefore, others }: Survey): void {
  context.writeJson({ payouts: chosen.length, totals, changedBefore, others, dryRun: options.dryRun, ...counts });
}

function describeSurvey(
  { chosen, totals, changedBefore, others }: Survey,
  from: readonly PayoutState[],
  currencies: readonly Currency[],
): string {
  const states = formatAlternatives(from);
  const left = Object.entries(others).map(([state, count]) => `, ${count} ${state} left as they are`);
  const table = chosen.length === 0 ? '' : formatTotals(totals, currencies);
  const again =
    changedBefore === 0
      ? ''
      : `${formatCount(changedBefore, 'payout')} left as they are: decided so before, for the same reason, and ${states} again since. Look at each, or give another reason.\n`;
  return `${formatCount(chosen.length, 'payout')} ${states}${left.join('')}\n${again}${table}`;
}
