import type { PaymentNames } from '../gateway/gateway.js';
import { finishSend } from './finish-send.js';
import { ask, type LedgerConnection } from './ledger-connection.js';
import { readAttempts } from './order-id.js';
import { LONGEST_WAIT_MS, nextLookUpAt, type OrderLookUp, waitBefore } from './order-look-up.js';
import { readIndex, readPayout, readReadable } from './payout-queries.js';
import { type Payout, toLine } from './payout.js';
import type { FinishResult, SendAttempt } from './sender-ledger.js';

/** A payout, as it was when it was asked for. */
type AskedPayout = Pick<Payout, 'payoutId' | 'attempt'>;

/** The ledger as the janitor needs it. Narrow, so that the simulation runs it too. Its methods throw RedisUnavailableError. */
export interface LookUpLedger {
  /** The gateway that the ledger is bound to; undefined before the first send. */
  readAudience(): Promise<string | undefined>;
  /**
   * Adds payouts that are `unknown` to those to ask for, in the order in which they became so.
   * @param after - a place in that order
   * @returns the place of the last one
   */
  lineUp(after: number): Promise<number>;
  /** The payouts to ask for now, those that wait longest first. */
  readDue(): Promise<readonly string[]>;
  /** @throws UnreadableRecordError */
  readPayout(payoutId: string): Promise<Payout | undefined>;
  /** Newest first. */
  readAttempts(payoutId: string): Promise<readonly SendAttempt[]>;
  /** The payout is not asked for any more. */
  drop(payoutId: string): Promise<void>;
  /** The payout is asked for as after a first question. */
  postpone(payoutId: string): Promise<void>;
  /**
   * Records an answer, unless the payout was sent again since.
   * @param isOver - it is not asked for any more
   * @param other - an alarm: in what a payment with its order id is another one
   */
  note(asked: AskedPayout, lookUp: OrderLookUp, isOver: boolean, other?: string): Promise<void>;
  /**
   * Records the payment of an attempt. A payout that is `unknown` is `in_progress` from then on, as is one that an operator
   * took for not sent and that waits; for one that was settled in another way, or is sent again, it is a late payment.
   * Nothing happens to the attempt that is being sent.
   */
  recordFound(attempt: SendAttempt, names: PaymentNames): Promise<FinishResult>;
}

const FOUND = 'the worker found its payment at the gateway, by its order id';
/** Read at once. */
const PAGE = 100;
/** At once due; each costs a question. */
const DUE_PAGE = 20;

export class OrderLookUps implements LookUpLedger {
  readonly #connection: LedgerConnection;

  constructor(connection: LedgerConnection) {
    this.#connection = connection;
  }

  async readAudience(): Promise<string | undefined> {
    const { redis, keys } = this.#connection;
    return (await ask(redis.hget(keys.ledger, 'audience'))) ?? undefined;
  }

  async lineUp(after: number): Promise<number> {
    const { redis, keys } = this.#connection;
    const entries = await readIndex(this.#connection, keys.stateIndex('unknown'), { after, limit: PAGE });
    const ids = entries.map(({ payoutId }) => payoutId);
    const payouts = ids.length === 0 ? [] : await readReadable(this.#connection, ids, () => undefined);
    for (const payout of payouts) {
      const { payoutId, attempt, updatedAt, lookUp } = payout;
      const isNew = lookUp?.attempt !== attempt;
      const at = isNew ? Date.parse(updatedAt) + waitBefore(0) : nextLookUpAt(lookUp);
      if (at === undefined || attempt === 0) continue;
      // An earlier attempt may be in the line, and wait for an hour.
      await ask(isNew ? redis.zadd(keys.lookUps, at, payoutId) : redis.zadd(keys.lookUps, 'NX', at, payoutId));
    }
    return entries.at(-1)?.place ?? after;
  }

  async readDue(): Promise<readonly string[]> {
    const { redis, keys, clock } = this.#connection;
    const now = clock.wallNow();
    const due = await ask(redis.zrange(keys.lookUps, '-inf', String(now), 'BYSCORE', 'LIMIT', 0, DUE_PAGE));
    if (due.length > 0) return due;
    // No wait is so long: the clock was set back.
    return ask(redis.zrange(keys.lookUps, `(${now + LONGEST_WAIT_MS}`, '+inf', 'BYSCORE', 'LIMIT', 0, DUE_PAGE));
  }

  async readPayout(payoutId: string): Promise<Payout | undefined> {
    return readPayout(this.#connection, payoutId);
  }

  async readAttempts(payoutId: string): Promise<readonly SendAttempt[]> {
    return readAttempts(this.#connection, payoutId);
  }

  async drop(payoutId: string): Promise<void> {
    const { redis, keys } = this.#connection;
    await ask(redis.zrem(keys.lookUps, payoutId));
  }

  async postpone(payoutId: string): Promise<void> {
    const { redis, keys, clock } = this.#connection;
    await ask(redis.zadd(keys.lookUps, clock.wallNow() + waitBefore(1), payoutId));
  }

  async note({ payoutId, attempt }: AskedPayout, lookUp: OrderLookUp, isOver: boolean, other = ''): Promise<void> {
    const { run, keys, clock } = this.#connection;
    const next = isOver ? undefined : nextLookUpAt(lookUp);
    const answer = { lookUp: JSON.stringify(lookUp), nextAt: next ?? '', other: toLine(other) };
    const args = { at: clock.wallNow(), attempt, ...answer };
    await run('note-look-up', args, [keys.payout(payoutId), keys.lookUps]);
  }

  async recordFound(attempt: SendAttempt, { gatewayId, txhash }: PaymentNames): Promise<FinishResult> {
    const result = { kind: 'accepted', gatewayId, ...(txhash !== undefined && { txhash }) } as const;
    // Only a response counts for the breaker, and only one that was awaited has a request on its way.
    const rule = { maxRejectionsInARow: 0, maxUnknownsInARow: 0 };
    return finishSend(this.#connection, { attempt, result, rule, inFlightMs: 0, found: FOUND });
  }
}
