import type { PayoutIndex } from './keys.js';
import { type LedgerConnection, pipelinedReadable } from './ledger-connection.js';
import { storedAmount } from './parse-stored.js';
import { nextPlace, readIndex } from './payout-queries.js';
import { isPayoutState, type PayoutState } from './states.js';

export interface PaymentFacts {
  readonly paymentId: number;
  readonly symbol: string | undefined;
  /** A decimal string; `0` if someone has altered it to what is none: the payout is counted, its sum is not known. */
  readonly amount: string;
  readonly batch?: string | undefined;
}

const FACTS = ['paymentId', 'symbol', 'amount', 'batch'] as const;

/** @returns in the order asked for; undefined if there is no such payout (any more) */
export async function readPaymentFacts(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<(PaymentFacts | undefined)[]> {
  const rows = await readFields(connection, payoutIds, FACTS);
  return rows.map(toPaymentFacts);
}

/** The part of a payout that may be debited from the balance. */
export interface SendFacts extends PaymentFacts {
  /** A decimal string, as the gateway stated it; undefined until then. */
  readonly fee: string | undefined;
}

export async function readSendFacts(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<(SendFacts | undefined)[]> {
  const rows = await readFields(connection, payoutIds, [...FACTS, 'fee']);
  return rows.map((row) => {
    const facts = toPaymentFacts(row);
    return facts && { ...facts, fee: row[4] ?? undefined };
  });
}

/** One page of an index, with each payout's state according to its events. */
interface IndexPage {
  readonly payouts: readonly {
    readonly payoutId: string;
    readonly state: PayoutState | undefined;
    readonly facts: PaymentFacts;
  }[];
  /** Where the next page begins; undefined at the end. */
  readonly next: string | undefined;
}

/**
 * @param after - `next` of the page before; '' for the first
 * @param upTo - the last place; undefined for all
 */
export async function readIndexPage(
  connection: LedgerConnection,
  index: PayoutIndex,
  { after, upTo, limit }: { readonly after: string; readonly upTo?: string; readonly limit: number },
): Promise<IndexPage> {
  const range = { after: after === '' ? undefined : after, upTo, limit };
  const entries = await readIndex(connection, index, range);
  const payoutIds = entries.map(({ payoutId }) => payoutId);
  const rows = await readFields(connection, payoutIds, [...FACTS, 'state', 'pending']);
  return {
    payouts: rows.flatMap((row, place) => {
      const facts = toPaymentFacts(row);
      // An interrupted change has no event yet: `pending` is the state before it.
      const stored = row[5] ?? row[4] ?? '';
      return facts === undefined
        ? []
        : [{ payoutId: payoutIds[place] ?? '', state: isPayoutState(stored) ? stored : undefined, facts }];
    }),
    next: nextPlace(entries, limit),
  };
}

type Row = readonly (string | null)[];

async function readFields(
  connection: LedgerConnection,
  payoutIds: readonly string[],
  fields: readonly string[],
): Promise<Row[]> {
  if (payoutIds.length === 0) return [];
  const { replies } = await pipelinedReadable(connection, (pipeline) => {
    for (const payoutId of payoutIds) pipeline.hmget(connection.keys.payout(payoutId), ...fields);
  });
  return replies.map((row) => (row ?? []) as Row);
}

export function toPaymentFacts([paymentId, symbol, amount, batch]: Row): PaymentFacts | undefined {
  if (paymentId == null || amount == null) return undefined;
  const of = batch == null ? {} : { batch };
  const sum = storedAmount.safeParse(amount).data ?? '0';
  return { paymentId: Number(paymentId), symbol: symbol ?? undefined, amount: sum, ...of };
}
