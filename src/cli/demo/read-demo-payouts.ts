import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CsvError, parse } from 'csv-parse/sync';
import { InvalidInputError, type Problem } from '../../errors.js';
import { parseInput } from '../../fields.js';
import { payoutInputSchema, type ValidPayout } from '../../ledger/payout.js';
import { readPayoutTexts, type PayoutTexts } from '../payout-texts.js';

/** Beside `dist` or `src`, in a clone and in an installed package alike. */
export const DEMO_FILE = fileURLToPath(new URL('../../../examples/payouts.csv', import.meta.url));

const FIELD_OF_COLUMN: Readonly<Record<string, keyof PayoutTexts>> = {
  payout_id: 'payoutId',
  payment_id: 'paymentId',
  amount: 'amount',
  address_to: 'addressTo',
  destination_tag: 'destinationTag',
  symbol: 'symbol',
  reference: 'reference',
};

interface Line {
  readonly number: number;
  readonly cells: Readonly<Record<string, string>>;
}

/**
 * Reads the payouts that the demo pays out. People edit this file, so every problem is told with its line.
 * @param count - how many are wanted: without it all of the file; more than it has are its payouts again, with ids of
 * their own
 * @throws InvalidInputError naming line, column and rule
 */
export function readDemoPayouts(file: string, count?: number): ValidPayout[] {
  const problems: Problem[] = [];
  const payouts: ValidPayout[] = [];
  const seen = new Set<string>();
  for (const line of readLines(file)) {
    const payout = readPayout(line, problems);
    if (payout === undefined) continue;
    if (seen.has(payout.payoutId)) {
      problems.push({ field: `line ${line.number}, payout_id`, message: `is there twice (got "${payout.payoutId}")` });
    }
    seen.add(payout.payoutId);
    payouts.push(payout);
  }
  if (problems.length === 0 && payouts.length === 0) problems.push({ field: 'file', message: 'holds no payout' });
  if (problems.length > 0) throw invalid(file, problems);
  return Array.from({ length: count ?? payouts.length }, (_, index) => repeat(payouts, index));
}

function readLines(file: string): Line[] {
  try {
    const text = readFileSync(file, 'utf8');
    const rows: unknown = parse(text, { columns: true, bom: true, trim: true, skip_empty_lines: true, info: true });
    return (rows as { info: { lines: number }; record: Record<string, string> }[]).map(({ info, record }) => ({
      number: info.lines,
      cells: record,
    }));
  } catch (error) {
    const isTheFiles = error instanceof CsvError || (error as NodeJS.ErrnoException).code !== undefined;
    if (!isTheFiles) throw error;
    throw invalid(file, [{ field: 'file', message: `cannot be read: ${(error as Error).message}` }]);
  }
}

/** @returns undefined when the line breaks rules, which are added to the problems */
function readPayout({ number, cells }: Line, problems: Problem[]): ValidPayout | undefined {
  const columnOf: Record<string, string> = {};
  const texts: Partial<Record<keyof PayoutTexts, string>> = {};
  for (const [column, text] of Object.entries(cells)) {
    const field = FIELD_OF_COLUMN[column];
    if (field === undefined) {
      const known = Object.keys(FIELD_OF_COLUMN).join(', ');
      problems.push({ field: `line ${number}`, message: `has an unknown column "${column}"; known are ${known}` });
      return undefined;
    }
    columnOf[field] = column;
    if (text !== '') texts[field] = text;
  }
  try {
    return parseInput(payoutInputSchema, readPayoutTexts(texts));
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    for (const { field, message } of error.problems) {
      problems.push({ field: `line ${number}, ${columnOf[field] ?? field}`, message });
    }
    return undefined;
  }
}

function repeat(payouts: readonly ValidPayout[], index: number): ValidPayout {
  const payout = payouts[index % payouts.length];
  if (payout === undefined) throw new RangeError('There is no payout to repeat');
  const round = Math.floor(index / payouts.length) + 1;
  return round === 1 ? payout : { ...payout, payoutId: `${payout.payoutId}-${round}` };
}

function invalid(file: string, problems: readonly Problem[]): InvalidInputError {
  return new InvalidInputError(problems.map(({ field, message }) => ({ field: `${file}: ${field}`, message })));
}
