import { formatMs, shorten } from '../../format.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState } from '../output/colour-state.js';
import type { DemoMoment } from './demo-view.js';
import type { BoardRow } from './payout-board.js';

const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const SPINNER_STEP_MS = 100;

const SIGN: Readonly<Record<PayoutState, string>> = {
  queued: '·',
  held: '!',
  sending: '',
  in_progress: '',
  completed: '✔',
  failed: '✖',
  rejected: '✖',
  unknown: '?',
  cancelled: '–',
};

/** Lines other than payouts: heading, count, bar, gaps, blank lines, the cursor's line, and some notes above. */
const OTHER_LINES = 11;
const FEWEST_ROWS = 3;
const BAR_WIDTH = 40;
/** Sent payouts shown above the first one that is not sent. */
const ROWS_OF_CONTEXT = 4;

export interface MomentOptions {
  /** Lines of the terminal. */
  readonly height: number;
  readonly colours: CliContext['colours'];
}

/** The picture of a moment: payouts with their states, a progress bar, and the gaps that the gateway measured. */
export function formatMoment(moment: DemoMoment, { height, colours }: MomentOptions): string[] {
  const { rows, elapsedMs } = moment;
  const window = Math.max(FEWEST_ROWS, height - OTHER_LINES);
  const start = findStart(rows, window);
  const shown = rows.slice(start, start + window);
  const width = Math.max('payout'.length, ...rows.map(({ payoutId }) => payoutId.length));
  const spinner = SPINNER[Math.floor(elapsedMs / SPINNER_STEP_MS) % SPINNER.length] ?? '';
  const names = `  ${'payout'.padEnd(width)}  ${'amount'.padStart(10)}  ${'to'.padEnd(15)}  ${'state'.padEnd(13)}  arrived`;
  return [
    '',
    colours.dim(names),
    ...shown.map((row) => formatRow(row, { width, spinner, colours })),
    ...(shown.length < rows.length ? [colours.dim(`  … ${rows.length} payouts in total`)] : []),
    '',
    formatBar(rows, colours),
    formatGaps(moment, colours),
  ];
}

/** The window follows the first payout that is not sent. */
function findStart(rows: readonly BoardRow[], window: number): number {
  const firstQueued = rows.findIndex(({ state }) => state === 'queued' || state === 'sending');
  const focus = firstQueued === -1 ? rows.length : firstQueued;
  return Math.min(Math.max(0, focus - ROWS_OF_CONTEXT), Math.max(0, rows.length - window));
}

function formatRow(
  { payoutId, amount, addressTo, state, gapMs }: BoardRow,
  { width, spinner, colours }: { width: number; spinner: string; colours: CliContext['colours'] },
): string {
  const sign = SIGN[state] === '' ? spinner : SIGN[state];
  const text = `${sign} ${state}`.padEnd(13);
  const coloured = state === 'queued' ? colours.dim(text) : colourState(state, colours, text);
  const gap = gapMs === null ? '' : colours.dim(`after ${formatMs(gapMs)}`);
  return `  ${payoutId.padEnd(width)}  ${amount.padStart(10)}  ${shorten(addressTo).padEnd(15)}  ${coloured}  ${gap}`;
}

function formatBar(rows: readonly BoardRow[], colours: CliContext['colours']): string {
  const counts = PAYOUT_STATES.map((state) => ({
    state,
    count: rows.filter((row) => row.state === state).length,
  })).filter(({ count }) => count > 0);
  const completed = rows.filter(({ state }) => state === 'completed').length;
  const filled = Math.floor((completed / rows.length) * BAR_WIDTH);
  const bar = `${colours.green('█'.repeat(filled))}${colours.dim('░'.repeat(BAR_WIDTH - filled))}`;
  return `  ${bar}  ${counts.map(({ state, count }) => `${count} ${colourState(state, colours)}`).join(', ')}`;
}

function formatGaps(
  { elapsedMs, smallestGapMs, meanGapMs, workerPid }: DemoMoment,
  colours: CliContext['colours'],
): string {
  const seconds = `${Math.floor(elapsedMs / 1_000)} s`;
  const worker = workerPid === undefined ? colours.red('no worker') : `worker ${workerPid}`;
  const gaps =
    smallestGapMs === null || meanGapMs === null
      ? 'the gateway has not received two payouts yet'
      : `smallest gap at the gateway ${colours.bold(formatMs(smallestGapMs))}, mean ${formatMs(meanGapMs)}`;
  return `  ${seconds}  ${worker}  ${gaps}`;
}
