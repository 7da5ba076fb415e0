import type { Readable } from 'node:stream';
import { isUtf8, MAX_ROW_LENGTH, NOT_UTF8_MESSAGE, TOO_LONG_MESSAGE, unreadableRow, type Row } from './row.js';
import { splitLines, type Line } from './split-lines.js';

/** Reads JSON lines: one object a line, with the fields of the producer's input. Blank lines are skipped. */
export async function* readJsonRows(bytes: Readable): AsyncGenerator<Row> {
  for await (const line of splitLines(bytes, MAX_ROW_LENGTH)) {
    if (line.text.trim() !== '') yield parseRow(line);
  }
}

function parseRow({ line, text, isCut }: Line): Row {
  if (isCut) return unreadableRow(line, TOO_LONG_MESSAGE);
  if (!isUtf8(text)) return unreadableRow(line, NOT_UTF8_MESSAGE);
  try {
    const input: unknown = JSON.parse(text);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return { line, input: { ...input } };
    return unreadableRow(line, 'is JSON, but not an object with the fields of a payout');
  } catch (error) {
    return unreadableRow(line, `is not JSON: ${(error as Error).message}`);
  }
}
