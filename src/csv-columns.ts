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

export const CSV_COLUMN_NAMES = Object.keys(CSV_COLUMNS) as readonly (keyof typeof CSV_COLUMNS)[];

/** What `payouts import` takes beside them. */
export const INPUT_COLUMNS = { ...CSV_COLUMNS, requested_by: 'requestedBy' } as const;

export type CsvColumn = keyof typeof INPUT_COLUMNS;

export const INPUT_COLUMN_NAMES = Object.keys(INPUT_COLUMNS) as readonly CsvColumn[];

export const REQUIRED_CSV_COLUMNS: readonly CsvColumn[] = ['payout_id', 'payment_id', 'amount', 'address_to'];

/** What `payouts list --csv` adds: the payout's result, and the field of each column. */
export const RESULT_COLUMNS = {
  state: 'state',
  txhash: 'txhash',
  fee: 'fee',
  message: 'message',
  batch: 'batch',
  created_at: 'createdAt',
  updated_at: 'updatedAt',
  late_txhash: 'lateTxhash',
} as const;

export const RESULT_CSV_COLUMNS = Object.keys(RESULT_COLUMNS) as readonly (keyof typeof RESULT_COLUMNS)[];

const COLUMN_OF_FIELD: ReadonlyMap<string, string> = new Map(
  Object.entries({ ...INPUT_COLUMNS, ...RESULT_COLUMNS }).map(([column, field]) => [field, column]),
);

/** The column that fills a field, for errors to name it as the file does. */
export function toCsvColumn(field: string): string {
  return INPUT_COLUMN_NAMES.find((column) => INPUT_COLUMNS[column] === field) ?? field;
}

/** A column as it is called here, by either of its spellings: `payoutId`, the library's, is `payout_id`, the API's. */
export function toColumnName(name: string): string {
  return COLUMN_OF_FIELD.get(name) ?? name;
}

/** What spreadsheets run as a formula, behind apostrophes or not (OWASP, "CSV Injection"). */
const FORMULA = /^'*[=+\-@\t\r]/;

/** A value for a spreadsheet: one that it would run as a formula gets an apostrophe in front, and is shown as text. */
export function quoteFormula(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/** The value that {@link quoteFormula} was given. */
export function unquoteFormula(text: string): string {
  return text.startsWith("'") && FORMULA.test(text) ? text.slice(1) : text;
}
