import type { WriteStream } from 'node:tty';
import { formatMs, shorten } from '../../base/format.js';
import { PAYOUT_STATES, type PayoutState } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';
import { colourState } from '../output/format-table.js';
import type { BoardChange, BoardRow } from './payout-board.js';

type Colours = CliContext['colours'];

interface DemoMoment {
  readonly rows: readonly BoardRow[];
  readonly elapsedMs: number;
  readonly smallestGapMs: number | null;
  readonly meanGapMs: number | null;
  readonly workerPid: number | undefined;
}

export interface DemoView {
  note(text: string): void;
  change(change: BoardChange, elapsedMs: number): void;
  draw(moment: DemoMoment): void;
  /** Keeps the last picture. Safe to call twice. */
  close(): void;
}

/** For logs, pipes and CI. */
export function createLineView(write: (text: string) => void): DemoView {
  return {
    note: (text) => {
      write(`${text}\n`);
    },
    change: ({ from, row }, elapsedMs) => {
      const seconds = (elapsedMs / 1_000).toFixed(1).padStart(6);
      const gap =
        from === 'sending' && row.gapMs !== null ? ` (arrived ${formatMs(row.gapMs)} after the previous one)` : '';
      write(`${seconds} s  ${row.payoutId}  ${from} → ${row.state}${gap}\n`);
    },
    draw: () => undefined,
    close: () => undefined,
  };
}

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
/** Wrapped lines would break the line count. */
const CUT_LONG_LINES = '\u001b[?7l';
const WRAP_LONG_LINES = '\u001b[?7h';
/** Clearing the screen makes some terminals keep each picture in their history. */
const END_LINE = '\u001b[K\n';
const ERASE_BELOW = '\u001b[J';
const USUAL_HEIGHT = 24;

/** Redraws in place. Notes scroll above it. */
export function createTableView(terminal: WriteStream, colours: Colours): DemoView {
  let drawnLines = 0;
  let last: DemoMoment | undefined;

  const backToTop = (): string => (drawnLines === 0 ? '' : `\u001b[${drawnLines}A\r`);
  const draw = (above: readonly string[]): void => {
    const lines = last === undefined ? [] : formatMoment(last, terminal.rows || USUAL_HEIGHT, colours);
    const picture = [...above, ...lines].map((line) => `${line}${END_LINE}`).join('');
    terminal.write(`${backToTop()}${CUT_LONG_LINES}${picture}${WRAP_LONG_LINES}${ERASE_BELOW}`);
    drawnLines = lines.length;
  };
  const showCursor = (): void => void terminal.write(SHOW_CURSOR);

  terminal.write(HIDE_CURSOR);
  // Shows the cursor again after an early exit.
  process.once('exit', showCursor);
  return {
    note: (text) => {
      draw(text.split('\n'));
    },
    change: () => undefined,
    draw: (moment) => {
      last = moment;
      draw([]);
    },
    close: () => {
      process.removeListener('exit', showCursor);
      showCursor();
    },
  };
}

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
  written_off: '–',
};

/** Heading, count, bar, gaps, blank lines, the cursor's line, and some notes above. */
const OTHER_LINES = 11;
const FEWEST_ROWS = 3;
const BAR_WIDTH = 40;
/** Sent payouts shown above the first unsent one. */
const ROWS_OF_CONTEXT = 4;

function formatMoment(moment: DemoMoment, height: number, colours: Colours): string[] {
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
    ...shown.map((row) => formatRow(row, width, spinner, colours)),
    ...(shown.length < rows.length ? [colours.dim(`  … ${rows.length} payouts in total`)] : []),
    '',
    formatBar(rows, colours),
    formatGaps(moment, colours),
  ];
}

function findStart(rows: readonly BoardRow[], window: number): number {
  const firstQueued = rows.findIndex(({ state }) => state === 'queued' || state === 'sending');
  const focus = firstQueued === -1 ? rows.length : firstQueued;
  return Math.min(Math.max(0, focus - ROWS_OF_CONTEXT), Math.max(0, rows.length - window));
}

function formatRow(
  { payoutId, amount, addressTo, state, gapMs }: BoardRow,
  width: number,
  spinner: string,
  colours: Colours,
): string {
  const sign = SIGN[state] === '' ? spinner : SIGN[state];
  const text = `${sign} ${state}`.padEnd(13);
  const coloured = state === 'queued' ? colours.dim(text) : colourState(state, colours, text);
  const gap = gapMs === null ? '' : colours.dim(`after ${formatMs(gapMs)}`);
  return `  ${payoutId.padEnd(width)}  ${amount.padStart(10)}  ${shorten(addressTo).padEnd(15)}  ${coloured}  ${gap}`;
}

function formatBar(rows: readonly BoardRow[], colours: Colours): string {
  const counts = PAYOUT_STATES.map((state) => ({
    state,
    count: rows.filter((row) => row.state === state).length,
  })).filter(({ count }) => count > 0);
  const completed = rows.filter(({ state }) => state === 'completed').length;
  const filled = Math.floor((completed / rows.length) * BAR_WIDTH);
  const bar = `${colours.green('█'.repeat(filled))}${colours.dim('░'.repeat(BAR_WIDTH - filled))}`;
  return `  ${bar}  ${counts.map(({ state, count }) => `${count} ${colourState(state, colours)}`).join(', ')}`;
}

function formatGaps({ elapsedMs, smallestGapMs, meanGapMs, workerPid }: DemoMoment, colours: Colours): string {
  const seconds = `${Math.floor(elapsedMs / 1_000)} s`;
  const worker = workerPid === undefined ? colours.red('no worker') : `worker ${workerPid}`;
  const gaps =
    smallestGapMs === null || meanGapMs === null
      ? 'the gateway has not received two payouts yet'
      : `smallest gap at the gateway ${colours.bold(formatMs(smallestGapMs))}, mean ${formatMs(meanGapMs)}`;
  return `  ${seconds}  ${worker}  ${gaps}`;
}
