import { fromUnits, toUnits } from '../decimal.js';
import { parseHeldField } from './hold.js';
import { pipelined, type LedgerConnection } from './ledger-connection.js';
import { listPayoutIds } from './payout-queries.js';
import { isPayoutState, PAYOUT_STATES, URGENT_STATES, type PayoutState } from './states.js';
import type { CurrencySum } from './statistics.js';

/** A batch's progress, in payouts and money, and its problems. */
export interface BatchSummary {
  readonly total: number;
  /** False if the batch is larger than the count's limit. */
  readonly isWhole: boolean;
  readonly sums: Readonly<Record<PayoutState, readonly CurrencySum[]>>;
  /** Messages of payouts that need an operator or failed; the most frequent first. */
  readonly messages: readonly BatchMessage[];
}

export interface BatchMessage {
  readonly state: PayoutState;
  readonly message: string;
  readonly count: number;
}

/** A batch has no counters of its own: each payout is read, which takes too long for more. */
const MOST_COUNTED = 100_000;
const PAGE_SIZE = 1_000;
const LISTED_MESSAGES = 20;

/** The sums are exact. @returns a total of 0 for an empty batch */
export async function readBatchSummary(connection: LedgerConnection, batch: string): Promise<BatchSummary> {
  const sums = new Map<string, { count: number; units: bigint }>();
  const messages = new Map<string, number>();
  let total = 0;
  let cursor: string | undefined;
  do {
    const page = await listPayoutIds(connection, {
      batch,
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const [state = null, paymentId, symbol, amount, said = null, held = null] of await readFields(
      connection,
      page.payoutIds,
    )) {
      if (state === null || !isPayoutState(state)) continue;
      const key = [state, paymentId, symbol ?? ''].join('\t');
      const sum = sums.get(key) ?? { count: 0, units: 0n };
      sums.set(key, { count: sum.count + 1, units: sum.units + toUnits(amount ?? '0') });
      total += 1;
      const message = state === 'held' && held !== null ? parseHeldField(held).message : said;
      if (message === null || !URGENT_STATES.includes(state)) continue;
      const entry = `${state}\t${message}`;
      messages.set(entry, (messages.get(entry) ?? 0) + 1);
    }
    cursor = page.next;
  } while (cursor !== undefined && total < MOST_COUNTED);
  return { total, isWhole: cursor === undefined, sums: toSums(sums), messages: toMessages(messages) };
}

type Fields = readonly (string | null)[];

async function readFields(connection: LedgerConnection, payoutIds: readonly string[]): Promise<Fields[]> {
  const replies = await pipelined(connection, (pipeline) => {
    for (const payoutId of payoutIds) {
      pipeline.hmget(connection.keys.payout(payoutId), 'state', 'paymentId', 'symbol', 'amount', 'message', 'held');
    }
  });
  return replies as Fields[];
}

function toSums(sums: ReadonlyMap<string, { count: number; units: bigint }>): BatchSummary['sums'] {
  const all = [...sums].map(([key, { count, units }]) => {
    const [state = '', paymentId, symbol = ''] = key.split('\t');
    return {
      state,
      paymentId: Number(paymentId),
      symbol: symbol === '' ? undefined : symbol,
      count,
      amount: fromUnits(units),
    };
  });
  const ofState = (wanted: PayoutState): CurrencySum[] =>
    all.flatMap(({ state, ...sum }) => (state === wanted ? [sum] : [])).sort((one, other) => other.count - one.count);
  return Object.fromEntries(PAYOUT_STATES.map((state) => [state, ofState(state)])) as unknown as BatchSummary['sums'];
}

function toMessages(messages: ReadonlyMap<string, number>): BatchMessage[] {
  return [...messages]
    .sort(([, one], [, other]) => other - one)
    .slice(0, LISTED_MESSAGES)
    .map(([key, count]) => {
      const [state = '', message = ''] = key.split('\t');
      return { state: state as PayoutState, message, count };
    });
}
