import type { WriteStream } from 'node:tty';
import type { CliContext } from '../context/cli-context.js';
import type { DemoMoment, DemoView } from './demo-view.js';
import { formatMoment } from './format-moment.js';

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
/** Cuts off long lines instead of wrapping them, which would break the line count. */
const CUT_LONG_LINES = '\u001b[?7l';
const WRAP_LONG_LINES = '\u001b[?7h';
/** Line by line: clearing the whole screen makes some terminals keep each picture in their history. */
const END_LINE = '\u001b[K\n';
const ERASE_BELOW = '\u001b[J';
const USUAL_HEIGHT = 24;

/** A table of all payouts, redrawn in place; notes scroll above it. */
export function createTableView(terminal: WriteStream, colours: CliContext['colours']): DemoView {
  let drawnLines = 0;
  let last: DemoMoment | undefined;

  const backToTop = (): string => (drawnLines === 0 ? '' : `\u001b[${drawnLines}A\r`);
  const draw = (above: readonly string[]): void => {
    const lines = last === undefined ? [] : formatMoment(last, { height: terminal.rows || USUAL_HEIGHT, colours });
    const picture = [...above, ...lines].map((line) => `${line}${END_LINE}`).join('');
    terminal.write(`${backToTop()}${CUT_LONG_LINES}${picture}${WRAP_LONG_LINES}${ERASE_BELOW}`);
    drawnLines = lines.length;
  };
  const showCursor = (): void => void terminal.write(SHOW_CURSOR);

  terminal.write(HIDE_CURSOR);
  // A process that exits early must not leave the terminal without a cursor.
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
