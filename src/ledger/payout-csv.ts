import { stringify } from 'csv-stringify/sync';
import { lastMessage, type Payout } from './payout.js';
import { lastComment } from './payout-comment.js';
import type { UnreadablePayout } from './payout-queries.js';

/** The CSV columns of `payouts import` and `payouts list --csv`, with the field of each. */
const CSV_COLUMNS = {
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

const CSV_COLUMN_NAMES = Object.keys(CSV_COLUMNS) as readonly (keyof typeof CSV_COLUMNS)[];

export const INPUT_COLUMNS = { ...CSV_COLUMNS, requested_by: 'requestedBy' } as const;

type CsvColumn = keyof typeof INPUT_COLUMNS;

export const INPUT_COLUMN_NAMES = Object.keys(INPUT_COLUMNS) as readonly CsvColumn[];

export const REQUIRED_CSV_COLUMNS: readonly CsvColumn[] = ['payout_id', 'payment_id', 'amount', 'address_to'];

/** The additional columns of `payouts list --csv`: the payout's result. */
export const RESULT_COLUMNS = {
  state: 'state',
  final: 'final',
  gateway_id: 'gatewayId',
  txhash: 'txhash',
  fee: 'fee',
  message: 'message',
  batch: 'batch',
  created_at: 'createdAt',
  updated_at: 'updatedAt',
  late_gateway_id: 'lateGatewayId',
  late_txhash: 'lateTxhash',
  attempt: 'attempt',
  comment: 'comment',
} as const;

export const RESULT_CSV_COLUMNS = Object.keys(RESULT_COLUMNS) as readonly (keyof typeof RESULT_COLUMNS)[];

const COLUMN_OF_FIELD: ReadonlyMap<string, string> = new Map(
  Object.entries({ ...INPUT_COLUMNS, ...RESULT_COLUMNS }).map(([column, field]) => [field, column]),
);

export function toCsvColumn(field: string): string {
  return COLUMN_OF_FIELD.get(field) ?? field;
}

/** Accepts both spellings: the library's `payoutId` is the API's `payout_id`. */
export function toColumnName(name: string): string {
  return COLUMN_OF_FIELD.get(name) ?? name;
}

/**
 * Spreadsheets run this as a formula, with or without apostrophes (OWASP, "CSV Injection"): also in full width, and
 * behind what separates cells where the comma does not.
 */
const FORMULA = /^'*[;\t\r\n ]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^'*[\t\r]|[;\t\r\n] *[=+\-@\uff1d\uff0b\uff0d\uff20]/;

/** Puts an apostrophe before a formula, so that a spreadsheet shows it as text. */
export function quoteFormula(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

export function unquoteFormula(text: string): string {
  return text.startsWith("'") && FORMULA.test(text) ? text.slice(1) : text;
}

export interface CsvOptions {
  /**
   * Puts an apostrophe before a text that a spreadsheet would run as a formula; `payouts import` removes it.
   * @defaultValue true
   */
  readonly safe?: boolean;
}

/** In place of the state. */
export const UNREADABLE = 'unreadable';

const FIELDS = [...Object.values(CSV_COLUMNS), ...Object.values(RESULT_COLUMNS)];

export function formatCsvHeader(): string {
  return stringify([[...CSV_COLUMN_NAMES, ...RESULT_CSV_COLUMNS]]);
}

/** A payout that cannot be read is a row with its id and the reason. */
export function formatCsvRows(
  payouts: readonly (Payout | UnreadablePayout)[],
  { safe = true }: CsvOptions = {},
): string {
  return stringify(
    payouts.map((payout) => {
      if ('reason' in payout) return formatUnreadable(payout, safe);
      const { metadata, ...texts } = payout;
      const fields: Readonly<Record<string, unknown>> = {
        ...texts,
        final: String(payout.final),
        message: lastMessage(payout),
        comment: lastComment(payout),
        ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
      };
      return FIELDS.map((name) => {
        const value = fields[name];
        return safe && typeof value === 'string' ? quoteFormula(value) : value;
      });
    }),
  );
}

function formatUnreadable({ payoutId, reason: message }: UnreadablePayout, safe: boolean): unknown[] {
  const fields: Readonly<Record<string, string>> = { payoutId, state: UNREADABLE, message };
  return FIELDS.map((name) => (safe ? quoteFormula(fields[name] ?? '') : fields[name]));
}
