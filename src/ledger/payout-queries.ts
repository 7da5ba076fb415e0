import { ask, pipelined, type LedgerConnection } from './ledger-connection.js';
import { type Payout, UnreadableRecordError } from './payout.js';
import { parseRecord, type PayoutRecord } from './payout-record.js';
import { nextPlace, readIndex } from './state-index.js';
import type { PayoutState } from './states.js';
import { replyCode } from '../redis.js';

/** Which payouts to list, and from where. */
export interface ListOptions {
  /** List by state, in the order in which the payouts entered it … */
  readonly state?: PayoutState;
  /** … or by batch, in the order of acceptance. One of the two. */
  readonly batch?: string;
  /** The most payouts of a page. @defaultValue 100 */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly cursor?: string;
  /** Begin at the other end. @defaultValue false */
  readonly newestFirst?: boolean;
}

/** One page of a list of payouts. */
export interface PayoutPage {
  readonly payouts: readonly Payout[];
  /** The `cursor` of the next page; undefined at the end. */
  readonly next: string | undefined;
}

const DEFAULT_LIMIT = 100;

/**
 * Lists payouts by page. Every index entry has its own number, so no payout is skipped or repeated while others move.
 * @throws UnreadableRecordError
 */
export async function listPayouts(connection: LedgerConnection, options: ListOptions): Promise<PayoutPage> {
  const { payoutIds, next } = await listPayoutIds(connection, options);
  return { payouts: await readPayouts(connection, payoutIds), next };
}

/** As {@link listPayouts}, but the ids only. */
export async function listPayoutIds(
  connection: LedgerConnection,
  { state, batch, limit = DEFAULT_LIMIT, cursor, newestFirst = false }: ListOptions,
): Promise<{ payoutIds: string[]; next: string | undefined }> {
  const { keys } = connection;
  const index = batch === undefined ? keys.stateIndex(state ?? 'queued') : keys.batchIndex(batch);
  const entries = await readIndex(connection, index, { after: cursor, limit, newestFirst });
  return { payoutIds: entries.map(({ payoutId }) => payoutId), next: nextPlace(entries, limit) };
}

/** @throws UnreadableRecordError */
export async function readPayout(connection: LedgerConnection, payoutId: string): Promise<Payout | undefined> {
  const [payout] = await readPayouts(connection, [payoutId]);
  return payout;
}

/**
 * Reads payouts in one round trip, in the order asked for; missing ones are left out.
 * @throws UnreadableRecordError
 */
export async function readPayouts(connection: LedgerConnection, payoutIds: readonly string[]): Promise<Payout[]> {
  return readReadable(connection, payoutIds, (error) => {
    throw error;
  });
}

/** As {@link readPayouts}, but skips unreadable records. */
export async function readReadable(
  connection: LedgerConnection,
  payoutIds: readonly string[],
  onUnreadable: (error: UnreadableRecordError, payoutId: string) => void,
): Promise<Payout[]> {
  const replies = await readRecords(connection, payoutIds);
  return payoutIds.flatMap((payoutId, index) => {
    const record = replies[index] ?? {};
    try {
      if (record instanceof Error) throw new UnreadableRecordError(payoutId, record);
      return record['state'] === undefined ? [] : [parseRecord(payoutId, record)];
    } catch (error) {
      if (!(error instanceof UnreadableRecordError)) throw error;
      onUnreadable(error, payoutId);
      return [];
    }
  });
}

/** @returns for each id its record, or Redis's error if its key holds something else */
async function readRecords(
  connection: LedgerConnection,
  payoutIds: readonly string[],
): Promise<(PayoutRecord | Error)[]> {
  const { redis, keys } = connection;
  try {
    const replies = await pipelined(connection, (pipeline) => {
      for (const payoutId of payoutIds) pipeline.hgetall(keys.payout(payoutId));
    });
    return replies as PayoutRecord[];
  } catch (error) {
    if (!isWrongType(error)) throw error;
  }
  // One key holds something else: read each separately, to get the others.
  return Promise.all(
    payoutIds.map(async (payoutId) =>
      ask<PayoutRecord | Error>(redis.hgetall(keys.payout(payoutId))).catch((error: unknown) => {
        if (isWrongType(error)) return error;
        throw error;
      }),
    ),
  );
}

function isWrongType(error: unknown): error is Error {
  return replyCode(error) === 'WRONGTYPE';
}
