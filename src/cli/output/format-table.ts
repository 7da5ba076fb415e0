import Table from 'cli-table3';
import { type PayoutState, STATE_TONE, type Tone } from '../../ledger/states.js';
import { toPlainText } from '../../base/plain-text.js';
import type { CliContext } from '../context/cli-context.js';

const NOTHING = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' };
const NO_LINES = {
  ...NOTHING,
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/**
 * No borders, for copying and for other tools.
 * @param rightAligned - positions of columns with numbers
 */
export function formatTable(rows: readonly (readonly string[])[], rightAligned: readonly number[] = []): string {
  if (rows.length === 0) return '';
  const width = rows[0]?.length ?? 0;
  const table = new Table({
    chars: NO_LINES,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colAligns: Array.from({ length: width }, (_, column) => (rightAligned.includes(column) ? 'right' : 'left')),
  });
  // A line break in a value could pass for another row.
  table.push(...rows.map((row) => row.map((cell) => cell.replaceAll('\n', toPlainText('\n')))));
  const lines = table.toString().split('\n');
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
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
