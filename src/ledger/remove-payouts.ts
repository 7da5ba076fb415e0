import { pipelined, type LedgerConnection } from './ledger-connection.js';
import { toPaymentFacts, type PaymentFacts } from './payment-facts.js';
import type { PayoutRecord } from './payout-record.js';
import { readIndex } from './payout-queries.js';
import type { PayoutState } from './states.js';

export interface OldPayout {
  readonly payoutId: string;
  /** In the stream of its state; undefined if that is a sorted set. */
  readonly streamId: string | undefined;
  readonly record: PayoutRecord;
}

interface RemovedPayout extends PaymentFacts {
  readonly payoutId: string;
}

/** Includes payouts whose record is already gone. */
export async function readOldest(
  connection: LedgerConnection,
  state: PayoutState,
  limit: number,
): Promise<OldPayout[]> {
  const { keys } = connection;
  const entries = await readIndex(connection, keys.stateIndex(state), { limit });
  if (entries.length === 0) return [];
  const records = (await pipelined(connection, (pipeline) => {
    for (const { payoutId } of entries) pipeline.hgetall(keys.payout(payoutId));
  })) as PayoutRecord[];
  return entries.map(({ payoutId, streamId }, index) => ({ payoutId, streamId, record: records[index] ?? {} }));
}

interface Removal {
  readonly state: PayoutState;
  /** Wall clock, ms. */
  readonly before: number;
  readonly old: readonly OldPayout[];
  /** Skips payouts whose record has changed since it was read. @defaultValue false */
  readonly onlyUnchanged?: boolean;
}

/** Comparing a record takes as long as removing it; a call keeps Redis busy for about 2 ms. */
const PAYOUTS_PER_SCRIPT = 50;

/** The id and the state of each payout remain. */
export async function removeRead(connection: LedgerConnection, removal: Removal): Promise<RemovedPayout[]> {
  const removed: RemovedPayout[] = [];
  for (let start = 0; start < removal.old.length; start += PAYOUTS_PER_SCRIPT) {
    const old = removal.old.slice(start, start + PAYOUTS_PER_SCRIPT);
    removed.push(...(await removeTogether(connection, { ...removal, old })));
  }
  return removed;
}

async function removeTogether(
  { run, keys }: LedgerConnection,
  { state, before, old, onlyUnchanged = false }: Removal,
): Promise<RemovedPayout[]> {
  const touched = old.flatMap(({ payoutId, record: { gatewayId, batch } }) => {
    const record = keys.payout(payoutId);
    return [
      record,
      keys.removedBucket(payoutId),
      batch === undefined ? record : keys.batch(batch),
      gatewayId === undefined ? record : keys.gatewayIdBucket(gatewayId),
    ];
  });
  const args = old.flatMap(({ streamId, record }) => [
    record['gatewayId'] ?? '',
    record['batch'] === undefined ? 0 : 1,
    streamId ?? '',
    onlyUnchanged ? JSON.stringify(record) : '',
  ]);
  const removed = (await run('remove-payouts', { state, before }, touched, args)) as number[];
  return removed.flatMap((place) => {
    const { payoutId = '', record = {} } = old[place - 1] ?? {};
    const { paymentId, symbol, amount, batch } = record as Partial<PayoutRecord>;
    const facts = toPaymentFacts([paymentId ?? null, symbol ?? null, amount ?? null, batch ?? null]);
    return facts === undefined ? [] : [{ payoutId, ...facts }];
  });
}
