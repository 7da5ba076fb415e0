import { stringify } from 'csv-stringify/sync';
import type { Payout } from '../../ledger/payout.js';
import { CSV_COLUMN_NAMES, CSV_COLUMNS, RESULT_CSV_COLUMNS } from '../import/csv-columns.js';

/** The header line: the columns of `payouts import`, then those of the result. */
export function formatCsvHeader(): string {
  return stringify([[...CSV_COLUMN_NAMES, ...RESULT_CSV_COLUMNS]]);
}

/** Payouts as lines of CSV. The address stays whole, as the ledger has it: one with a colon need not end with a tag. */
export function formatCsvRows(payouts: readonly Payout[]): string {
  return stringify(
    payouts.map((payout) => {
      const { metadata, ...texts } = payout;
      const fields: Readonly<Record<string, unknown>> = {
        ...texts,
        ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
      };
      return [...CSV_COLUMN_NAMES.map((column) => CSV_COLUMNS[column]), ...RESULT_CSV_COLUMNS].map(
        (name) => fields[name],
      );
    }),
  );
}
