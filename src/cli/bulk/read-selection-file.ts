import { z } from 'zod';
import { isAborted } from '../../base/clock.js';
import { INPUT_COLUMN_NAMES, RESULT_CSV_COLUMNS } from '../../ledger/payout-csv.js';
import { StoppedError } from '../../base/errors.js';
import { gatewayIdField, gatewayIdKey, isSameGatewayId, parseInput, payoutIdField } from '../../base/fields.js';
import type { CliContext } from '../context/cli-context.js';
import { openSource, readEachRow } from '../import/open-source.js';
import { refuse } from '../context/flags.js';
import { RowMessages } from '../import/progress.js';
import type { CsvTable } from '../import/read-csv-rows.js';

export interface SelectedPayout {
  readonly payoutId: string;
  readonly gatewayId?: string;
  /** The attempt that the row is about. */
  readonly attempt?: number;
  /** Since when the payout was in its state, as the file has it: wall clock, ms. */
  readonly since?: number | undefined;
  readonly line?: number;
}

type Needs = 'gatewayId' | 'attempt' | 'nothing';

const ATTEMPT = 'must be the number of the attempt that was not sent, as `payouts list --csv` writes it';

const attemptField = z
  .union(
    [
      z.int(),
      z
        .string()
        .regex(/^\d{1,6}$/)
        .transform(Number),
    ],
    ATTEMPT,
  )
  .refine((attempt) => attempt >= 0, ATTEMPT);

const TIME = 'must be a time, as `payouts list --csv` writes it';

const sinceField = z
  .string(TIME)
  .refine((text) => text === '' || !Number.isNaN(Date.parse(text)), TIME)
  .transform((text) => (text === '' ? undefined : Date.parse(text)));

const mustBeEmpty = z.literal('', 'must be empty: a payout with a payment was sent').optional();

const SCHEMAS: Record<Needs, z.ZodType<SelectedPayout>> = {
  gatewayId: z.object({ payoutId: payoutIdField, gatewayId: gatewayIdField }),
  /** A payout with a payment was paid, and one that was sent since may be: each would be paid twice. */
  attempt: z
    .object({
      payoutId: payoutIdField,
      gatewayId: mustBeEmpty,
      txhash: mustBeEmpty,
      attempt: attemptField,
      updatedAt: sinceField.optional(),
    })
    .transform(({ payoutId, attempt, updatedAt: since }) => ({ payoutId, attempt, since })),
  nothing: z.object({ payoutId: payoutIdField }),
};

const COLUMNS: readonly string[] = [...INPUT_COLUMN_NAMES, ...RESULT_CSV_COLUMNS];

/** Other columns of `payouts list --csv` may stay in the file. */
const SELECTION_TABLE: CsvTable = {
  columns: COLUMNS,
  required: ['payout_id'],
  describeUnknown: () => `is not a known column; expected one of ${COLUMNS.join(', ')}`,
  toInput: ({ payoutId, gatewayId, txhash, attempt, updatedAt }) => ({
    payoutId,
    gatewayId,
    txhash,
    attempt,
    updatedAt,
  }),
};

/**
 * Returns each payout once.
 * @throws InvalidInputError if any row has an error, or no row names a payout
 */
export async function readSelectionFile(
  context: CliContext,
  path: string,
  needs: Needs,
  signal: AbortSignal,
): Promise<readonly SelectedPayout[]> {
  const source = await openSource(path, signal, SELECTION_TABLE);
  const messages = new RowMessages(context);
  const selected = new Map<string, SelectedPayout>();
  const gatewayIds = new Map<string, SelectedPayout>();
  const reading = readEachRow(source, messages.addProblem, (input, line) => {
    if (isAborted(signal)) throw new StoppedError('Stopped while reading; nothing was changed');
    const payout = { ...parseInput(SCHEMAS[needs], input), line };
    refuseOther(payout, selected, gatewayIds);
    selected.set(payout.payoutId, payout);
    if (payout.gatewayId !== undefined) gatewayIds.set(gatewayIdKey(payout.gatewayId), payout);
  });
  const invalid = await reading.finally(() => {
    messages.end();
  });
  if (invalid > 0) refuse(source.name, `${invalid} of its rows cannot be used; nothing was changed`);
  if (selected.size === 0) refuse(source.name, 'names no payout');
  return [...selected.values()];
}

/** A payout may occur twice, but not with two payments or attempts, nor a payment with two payouts. */
function refuseOther(
  { payoutId, gatewayId, attempt }: SelectedPayout,
  selected: ReadonlyMap<string, SelectedPayout>,
  gatewayIds: ReadonlyMap<string, SelectedPayout>,
): void {
  const earlier = selected.get(payoutId);
  if (earlier !== undefined && earlier.gatewayId !== gatewayId && !isSameGatewayId(earlier.gatewayId, gatewayId)) {
    const message = `is already on line ${earlier.line ?? 0}, with another gatewayId (got "${payoutId}")`;
    refuse('payoutId', message);
  }
  if (earlier !== undefined && earlier.attempt !== attempt) {
    refuse('payoutId', `is already on line ${earlier.line ?? 0}, with another attempt (got "${payoutId}")`);
  }
  const holder = gatewayId === undefined ? undefined : gatewayIds.get(gatewayIdKey(gatewayId));
  if (holder !== undefined && holder.payoutId !== payoutId) {
    const message = `is already on line ${holder.line ?? 0}, for payout ${holder.payoutId} (got "${gatewayId ?? ''}")`;
    refuse('gatewayId', message);
  }
}
