import { stringify } from 'csv-stringify/sync';
import type { Payout } from './ledger/payout.js';
import { CSV_COLUMN_NAMES, CSV_COLUMNS, RESULT_CSV_COLUMNS } from './csv-columns.js';

/** The header line: the columns of `payouts import`, then those of the result. */
export function formatCsvHeader(): string {
  return stringify([[...CSV_COLUMN_NAMES, ...RESULT_CSV_COLUMNS]]);
}

interface CsvOptions {
  /** For spreadsheets: a text that they would run as a formula gets an apostrophe in front. @defaultValue false */
  readonly safe?: boolean;
}

/** Payouts as lines of CSV. The address stays whole, as the ledger has it: one with a colon need not end with a tag. */
export function formatCsvRows(payouts: readonly Payout[], { safe = false }: CsvOptions = {}): string {
  return stringify(
    payouts.map((payout) => {
      const { metadata, ...texts } = payout;
      const fields: Readonly<Record<string, unknown>> = {
        ...texts,
        ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
      };
      return [...CSV_COLUMN_NAMES.map((column) => CSV_COLUMNS[column]), ...RESULT_CSV_COLUMNS].map((name) =>
        safe ? withoutFormula(fields[name]) : fields[name],
      );
    }),
  );
}

/** What spreadsheets take for a formula (OWASP, "CSV Injection"). */
function withoutFormula(value: unknown): unknown {
  return typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
}
