import { z } from 'zod';
import { isAborted } from '../../base/clock.js';
import { StoppedError } from '../../base/errors.js';
import { amountField, gatewayIdField, isNoTransaction, parseInput } from '../../base/fields.js';
import { INPUT_COLUMNS } from '../../ledger/payout-csv.js';
import type { ListedPayment } from '../../operator/match-payments.js';
import type { CliContext } from '../context/cli-context.js';
import { refuse } from '../context/flags.js';
import { openSource, readEachRow } from '../import/open-source.js';
import { RowMessages } from '../import/progress.js';

/** What a payment needs to be matched. */
const MAPPED = ['gateway_id', 'address', 'amount', 'time'] as const;
type Mapped = (typeof MAPPED)[number];
type ColumnMap = Readonly<Record<Mapped, string>>;

const EXAMPLE = '--map gateway_id=Hash,address=To,amount=Amount,time=Created';

/**
 * Which column of the gateway's list has which fact. A fact that is not mapped has its own name.
 * @throws InvalidInputError
 */
export function parseMap(given = ''): ColumnMap {
  const map = Object.fromEntries(MAPPED.map((fact) => [fact, fact])) as Record<Mapped, string>;
  for (const pair of given.split(',').filter((each) => each.trim() !== '')) {
    const [fact = '', column = '', ...rest] = pair.split('=').map((text) => text.trim());
    if (!isMapped(fact) || column === '' || rest.length > 0)
      refuse('--map', `must name columns by ${MAPPED.join(', ')}, such as ${EXAMPLE} (got ${JSON.stringify(pair)})`);
    map[fact] = column;
  }
  return map;
}

function isMapped(fact: string): fact is Mapped {
  return (MAPPED as readonly string[]).includes(fact);
}

const TIME =
  'must be a time with its zone, such as 2030-01-31T09:00:00Z or 2030-01-31 09:00:00+02:00, or seconds or milliseconds since 1970';

const timeField = z
  .union([z.string(), z.number().transform(String)], TIME)
  .transform((text) => toTime(text.trim()))
  .refine((at) => !Number.isNaN(at), TIME);

function toTime(text: string): number {
  if (/^\d{10}(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  if (/^\d{13}$/.test(text)) return Number(text);
  return /^\d{4}-\d\d-\d\d[T ].*(Z|UTC|[+-]\d\d:?\d\d)$/.test(text) ? Date.parse(text.replace(/ ?UTC$/, 'Z')) : NaN;
}

/** A list may have the amounts of withdrawals below zero. */
const listedAmount = z
  .string('must be a text: a number would lose digits')
  .transform((text) => text.trim().replace(/^-/, ''))
  .pipe(amountField);

const paymentSchema = z.object({
  gateway_id: gatewayIdField,
  address: z.string('must be a text').trim().min(1, 'must not be empty'),
  amount: listedAmount,
  time: timeField,
});

const FIELDS: Readonly<Record<string, string>> = INPUT_COLUMNS;

function namesNoPayment(id: unknown): boolean {
  return id === undefined || id === null || (typeof id === 'string' && isNoTransaction(id));
}

export interface GatewayList {
  readonly payments: readonly ListedPayment[];
  /** Rows without a transaction: the gateway has not sent these yet, or never will. */
  readonly withoutTransaction: number;
}

/**
 * Reads the gateway's own list of payments, as CSV or JSON lines; other columns may stay in it.
 * @throws InvalidInputError if a column is missing, or any row has an error
 */
export async function readGatewayList(
  context: CliContext,
  path: string,
  map: ColumnMap,
  signal: AbortSignal,
): Promise<GatewayList> {
  const required = MAPPED.map((fact) => map[fact]);
  const source = await openSource(path, signal, { columns: 'any', required, toInput: (texts) => texts });
  const messages = new RowMessages(context);
  const payments: ListedPayment[] = [];
  let withoutTransaction = 0;
  const reading = readEachRow(
    { ...source, nameField: (fact) => (isMapped(fact) ? map[fact] : fact) },
    messages.addProblem,
    (input, line) => {
      if (isAborted(signal)) throw new StoppedError('Stopped while reading; nothing was changed');
      const facts: Record<string, unknown> = {};
      // JSON rows have the fields of a payout under their own names.
      for (const fact of MAPPED) facts[fact] = input[map[fact]] ?? input[FIELDS[map[fact]] ?? ''];
      if (namesNoPayment(facts['gateway_id'])) {
        withoutTransaction += 1;
        return;
      }
      const { gateway_id: gatewayId, address: addressTo, amount, time: at } = parseInput(paymentSchema, facts);
      payments.push({ line, gatewayId, addressTo, amount, at });
    },
  );
  const invalid = await reading.finally(() => {
    messages.end();
  });
  if (invalid > 0) refuse(source.name, `${invalid} of its rows cannot be used; nothing was changed`);
  return { payments, withoutTransaction };
}
