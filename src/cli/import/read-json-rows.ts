import type { Readable } from 'node:stream';
import { isUtf8, MAX_ROW_LENGTH, UTF8_PROBLEM, type Row } from './row.js';
import { splitLines } from './split-lines.js';

/**
 * Reads JSON lines: one object a line, with the fields that the producer takes. Blank lines are passed over.
 * @throws InvalidInputError when a line has no end
 */
export async function* readJsonRows(bytes: Readable): AsyncGenerator<Row> {
  for await (const { line, text } of splitLines(bytes, MAX_ROW_LENGTH)) {
    if (text.trim() !== '') yield readRow(text, line);
  }
}

function readRow(text: string, line: number): Row {
  if (!isUtf8(text)) return { line, problems: [UTF8_PROBLEM] };
  try {
    const input: unknown = JSON.parse(line === 1 ? text.replace(/^\uFEFF/, '') : text);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return { line, input: { ...input } };
    return { line, problems: [{ field: 'row', message: 'is JSON, but no object with the fields of a payout' }] };
  } catch (error) {
    return { line, problems: [{ field: 'row', message: `is not JSON: ${(error as Error).message}` }] };
  }
}
