/** The columns of a payout in a CSV file, for `payouts import` and `payouts list --csv`, and the field that each fills. */
export const CSV_COLUMNS = {
  payout_id: 'payoutId',
  payment_id: 'paymentId',
  amount: 'amount',
  address_to: 'addressTo',
  destination_tag: 'destinationTag',
  symbol: 'symbol',
  reference: 'reference',
  priority: 'priority',
  not_before: 'notBefore',
  metadata: 'metadata',
} as const;

export type CsvColumn = keyof typeof CSV_COLUMNS;

export const CSV_COLUMN_NAMES = Object.keys(CSV_COLUMNS) as readonly CsvColumn[];

export const REQUIRED_CSV_COLUMNS: readonly CsvColumn[] = ['payout_id', 'payment_id', 'amount', 'address_to'];

/** What `payouts list --csv` adds: the payout's result. */
export const RESULT_CSV_COLUMNS = ['state', 'txhash'] as const;

/** The column that fills a field, for errors to name it as the file does. */
export function toCsvColumn(field: string): string {
  return CSV_COLUMN_NAMES.find((column) => CSV_COLUMNS[column] === field) ?? field;
}
