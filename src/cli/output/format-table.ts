import Table from 'cli-table3';
import { toPlainText } from '../../plain-text.js';

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
 * Rows as aligned columns without borders, which can be copied, and cut by other tools.
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
  // One line a row: a line break in a value could pass for a row of ours.
  table.push(...rows.map((row) => row.map((cell) => cell.replaceAll('\n', toPlainText('\n')))));
  const lines = table.toString().split('\n');
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}
