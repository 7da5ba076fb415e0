import { type PayoutState, STATE_TONE, type Tone } from '../../ledger/states.js';
import { toPlainText } from '../../base/plain-text.js';
import type { CliContext } from '../context/cli-context.js';

type Row = readonly string[];

const GAP = '  ';
/** A shortened cell still has both its ends, such as `TXYZ…AeBf`. */
const SHORTEST = 9;
/** A narrower column of sentences is harder to read than a sentence below its name. */
const NARROWEST_TEXT = 24;

/**
 * No borders, for copying and for other tools. On a terminal no line is longer than the terminal is wide: sentences in
 * the last column are wrapped, and a row that still does not fit goes over several lines.
 *
 * @param rightAligned - positions of columns with numbers
 * @param kept - for a list with a heading: the columns that stay whole; the others may be shortened in their middle
 */
export function formatTable(
  rows: readonly Row[],
  rightAligned: readonly number[] = [],
  kept?: readonly number[],
): string {
  // A line break in a value could pass for another row.
  const cells = rows.map((row) => row.map(toCell));
  const width = terminalWidth();
  const fitting = kept === undefined ? cells : shortenCells(cells, width, kept);
  const lines =
    fitting === undefined
      ? cells.slice(1).flatMap((row) => stackRow(row, width))
      : alignRows(fitting, width, rightAligned);
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

function alignRows(rows: readonly Row[], width: number, rightAligned: readonly number[]): string[] {
  const widths = columnWidths(rows);
  const indent = total(widths.slice(0, -1));
  return rows.flatMap((row) => {
    const last = row.at(-1) ?? '';
    const [first = '', ...others] = wrap(last, Math.max(1, width - indent));
    const isNarrow = width - indent < Math.min(NARROWEST_TEXT, widthOf(last)) || longestWord(last) > width - indent;
    if (isNarrow) return stackRow(row, width);
    const head = padRow([...row.slice(0, -1), first], widths, rightAligned);
    return [head, ...others.map((line) => `${' '.repeat(indent)}${line}`)];
  });
}

/** Of what is written to a terminal. A file or a pipe gets everything. */
function terminalWidth(): number {
  const { isTTY, columns } = process.stdout;
  return isTTY ? columns || Number(process.env['COLUMNS']) || 80 : Infinity;
}

const COLOUR_CODE = /(\u001b\[\d+;\d+m)/;

/** As the terminal shows it, with the colours of its context. */
function toCell(cell: string): string {
  const parts = cell.split(COLOUR_CODE);
  return parts.map((part, index) => (index % 2 === 1 ? part : toPlainText(part))).join('');
}

const ZERO_WIDTH = /\p{M}/u;
const DOUBLE_WIDTH =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6]/u;

function widthOf(cell: string): number {
  const shown = cell.split(COLOUR_CODE).filter((_, index) => index % 2 === 0);
  return Array.from(shown.join('')).reduce((sum, character) => {
    return sum + (ZERO_WIDTH.test(character) ? 0 : DOUBLE_WIDTH.test(character) ? 2 : 1);
  }, 0);
}

function columnWidths(rows: readonly Row[]): number[] {
  return (rows[0] ?? []).map((_, column) => Math.max(1, ...rows.map((row) => widthOf(row[column] ?? ''))));
}

/** With the gap after each. */
function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each + GAP.length, 0);
}

function padRow(row: Row, widths: readonly number[], rightAligned: readonly number[]): string {
  const cells = row.map((cell, column) => {
    const space = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)));
    return rightAligned.includes(column) ? `${space}${cell}` : `${cell}${space}`;
  });
  return cells.join(GAP);
}

/**
 * Leaves out columns with nothing but a heading, then takes from the widest.
 * @returns undefined if that does not suffice
 */
function shortenCells(rows: readonly Row[], width: number, kept: readonly number[]): readonly Row[] | undefined {
  const widths = columnWidths(rows);
  if (total(widths) - GAP.length <= width) return rows;
  for (const column of widths.keys())
    if (rows.slice(1).every((row) => row[column] === '')) widths[column] = -GAP.length;
  for (let over = total(widths) - GAP.length - width; over > 0; over -= 1) {
    const widest = Math.max(...widths.filter((_, column) => !kept.includes(column)));
    const column = widths.findIndex((each, place) => each === widest && !kept.includes(place));
    if (column === -1 || widest <= SHORTEST) return undefined;
    widths[column] = widest - 1;
  }
  return rows.map((row) =>
    row.flatMap((cell, column) => ((widths[column] ?? 0) < 0 ? [] : [cut(cell, widths[column] ?? 0)])),
  );
}

/** Keeps both ends of a text. */
function cut(cell: string, width: number): string {
  if (widthOf(cell) <= width) return cell;
  const [before = '', open = '', text = before, ...after] = cell.split(COLOUR_CODE);
  const characters = Array.from(text);
  const size = charactersIn(text, width - 1);
  const tail = Math.floor(size / 2);
  const short = `${characters.slice(0, size - tail).join('')}…${characters.slice(-tail).join('')}`;
  return `${open}${short}${after.join('')}`;
}

function charactersIn(text: string, width: number): number {
  return DOUBLE_WIDTH.test(text) ? Math.floor(width / 2) : width;
}

/** The first cell alone, so that it can be copied, and the others below. */
function stackRow(row: Row, width: number): string[] {
  const indent = row[0] === '' ? 1 + GAP.length : 0;
  const [first = '', ...others] = row.filter((cell) => cell !== '');
  const lines = wrap(others.join(GAP), width - indent - GAP.length);
  return [`${' '.repeat(indent)}${first}`, ...lines.map((line) => `${' '.repeat(indent)}${GAP}${line}`)];
}

function longestWord(text: string): number {
  return Math.max(...text.split(' ').map(widthOf));
}

/** Only a word that is longer than a line is broken. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (widthOf(longer) <= width) line = longer;
    else {
      if (line !== '') lines.push(line);
      line = word;
    }
    while (widthOf(line) > width && !COLOUR_CODE.test(line)) {
      const characters = Array.from(line);
      const size = charactersIn(line, width);
      lines.push(characters.slice(0, size).join(''));
      line = characters.slice(size).join('');
    }
  }
  return [...lines, line];
}

/** A sentence for a terminal, wrapped between words. */
export function formatText(text: string): string {
  return `${wrap(toCell(text), terminalWidth()).join('\n')}\n`;
}

export type Fact = readonly [name: string, value: string | number | undefined];

/** Names and values below a heading; undefined values are left out. */
export function formatFacts(colours: CliContext['colours'], facts: readonly Fact[]): string {
  const known = facts.filter(([, value]) => value !== undefined);
  return formatTable(known.map(([name, value]) => ['', colours.dim(name), String(value)]));
}

const COLOUR = {
  active: 'cyan',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  muted: 'dim',
} as const satisfies Readonly<Record<Tone, keyof CliContext['colours']>>;

/** Green is well, red has failed, yellow needs an operator. */
export function colourState(state: PayoutState, colours: CliContext['colours'], text: string = state): string {
  return colours[COLOUR[STATE_TONE[state]]](text);
}
