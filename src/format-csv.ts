import { stringify } from 'csv-stringify/sync';
import { CSV_COLUMN_NAMES, CSV_COLUMNS, quoteFormula, RESULT_COLUMNS, RESULT_CSV_COLUMNS } from './csv-columns.js';
import { lastMessage, type Payout } from './ledger/payout.js';

export interface CsvOptions {
  /**
   * Puts an apostrophe before a text that a spreadsheet would run as a formula; `payouts import` removes it.
   * @defaultValue true
   */
  readonly safe?: boolean;
}

const FIELDS = [...Object.values(CSV_COLUMNS), ...Object.values(RESULT_COLUMNS)];

export function formatCsvHeader(): string {
  return stringify([[...CSV_COLUMN_NAMES, ...RESULT_CSV_COLUMNS]]);
}

/** The address stays whole, as the ledger has it: one with a colon need not end with a tag. */
export function formatCsvRows(payouts: readonly Payout[], { safe = true }: CsvOptions = {}): string {
  return stringify(
    payouts.map((payout) => {
      const { metadata, ...texts } = payout;
      const fields: Readonly<Record<string, unknown>> = {
        ...texts,
        message: lastMessage(payout),
        ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
      };
      return FIELDS.map((name) => {
        const value = fields[name];
        return safe && typeof value === 'string' ? quoteFormula(value) : value;
      });
    }),
  );
}
