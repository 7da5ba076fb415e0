import type { Readable } from 'node:stream';
import { InvalidInputError } from '../../errors.js';
import { INPUT_COLUMNS } from '../../csv-columns.js';
import { parseJson } from './parse-payout-texts.js';
import { isUtf8, MAX_ROW_LENGTH, NOT_UTF8_MESSAGE, TOO_LONG_MESSAGE, unreadableRow, type Row } from './row.js';
import { splitLines, type Line } from './split-lines.js';

/** Reads JSON lines: one object a line, with the fields of the producer's input, in its spelling or the API's. Blank lines are skipped. */
export async function* readJsonRows(bytes: Readable): AsyncGenerator<Row> {
  for await (const line of splitLines(bytes, MAX_ROW_LENGTH)) {
    if (line.text.trim() !== '') yield parseRow(line);
  }
}

function parseRow({ line, text, isCut }: Line): Row {
  if (isCut) return unreadableRow(line, TOO_LONG_MESSAGE);
  if (!isUtf8(text)) return unreadableRow(line, NOT_UTF8_MESSAGE);
  try {
    const input = parseJson(text, 'row');
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return nameFields(line, input);
    return unreadableRow(line, 'is JSON, but not an object with the fields of a payout');
  } catch (error) {
    if (error instanceof InvalidInputError) return { line, problems: error.problems };
    throw error;
  }
}

const FIELD_OF_COLUMN: ReadonlyMap<string, string> = new Map(Object.entries(INPUT_COLUMNS));

/** The fields as the library spells them: `payout_id` is `payoutId`. Both in one row are an error. */
function nameFields(line: number, given: object): Row {
  const spellings = new Map<string, string>();
  for (const name of Object.keys(given)) {
    const field = FIELD_OF_COLUMN.get(name) ?? name;
    const other = spellings.get(field);
    if (other !== undefined)
      return { line, problems: [{ field: name, message: `is the same field as ${other}: give one` }] };
    spellings.set(field, name);
  }
  // A field `__proto__` becomes one as any other: assigned, it would give the row fields that nobody wrote into it.
  const input = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [FIELD_OF_COLUMN.get(name) ?? name, value]),
  );
  return { line, input };
}
