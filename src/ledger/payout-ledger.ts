import { ConflictError, NotFoundError } from '../errors.js';
import { ask, type LedgerConnection } from './ledger-connection.js';
import { toLine, type Payout, type ValidPayout } from './payout.js';
import { differingFields, pairsToRecord, parseRecord, toRecordFields } from './payout-record.js';
import { readPayout } from './read-payouts.js';
import { readRefusal } from './refusal.js';
import { reachableFrom, type PayoutState } from './states.js';

/** What became of one payout that was given to the ledger. */
export type EnqueueResult =
  | { readonly kind: 'created'; readonly payoutId: string }
  | { readonly kind: 'exists'; readonly payout: Payout }
  /** It was final and retention removed it: only its id and this state are left. */
  | { readonly kind: 'removed'; readonly payoutId: string; readonly state: PayoutState }
  | {
      readonly kind: 'conflict';
      readonly payoutId: string;
      readonly state: PayoutState;
      readonly fields: readonly string[];
    };

/** A change that a person or the gateway's status answer makes. */
export interface StateChange {
  readonly payoutId: string;
  /** The state in which the payout must be. */
  readonly from: PayoutState;
  readonly to: PayoutState;
  /** Who, where it is a person. */
  readonly by?: string;
  readonly reason?: string;
  readonly txhash?: string;
  readonly fee?: string;
  readonly message?: string;
}

/** The states in which a payout waits for a BullMQ job. */
export type StateWithJob = Extract<PayoutState, 'queued' | 'in_progress'>;

export interface OutboxEntry {
  readonly state: StateWithJob;
  readonly payoutId: string;
}

/** So many payouts go into one script, which keeps Redis busy for a few milliseconds at most. */
const PAYOUTS_PER_SCRIPT = 250;

/** Payouts as the application and people see and change them. */
export class PayoutLedger {
  readonly connection: LedgerConnection;

  constructor(connection: LedgerConnection) {
    this.connection = connection;
  }

  /**
   * Accepts payouts, all of them in one round trip. One whose payoutId is there with the same data is left as it is.
   * @returns one result for each payout, in order
   * @throws RedisUnavailableError when Redis is away; some payouts may have been accepted, and asking again is safe
   */
  async enqueue(payouts: readonly ValidPayout[]): Promise<EnqueueResult[]> {
    const at = this.connection.clock.wallNow();
    const chunks = chunk(payouts, PAYOUTS_PER_SCRIPT);
    const replies = await Promise.all(
      chunks.map((part) => this.connection.run('enqueue-payouts', [at, ...part.flatMap(toArguments)])),
    );
    return replies.flatMap((reply, index) => readEnqueueReply(reply, chunks[index] ?? []));
  }

  /** One payout with its history. */
  async get(payoutId: string): Promise<Payout | undefined> {
    return readPayout(this.connection, payoutId);
  }

  /** The id of the payout that has this transaction. */
  async findByTxhash(txhash: string): Promise<string | undefined> {
    const payoutId = await this.connection.run('find-txhash', [txhash]);
    return typeof payoutId === 'string' ? payoutId : undefined;
  }

  /**
   * Moves a payout from one state to another.
   * @throws NotFoundError when there is no such payout
   * @throws ConflictError when it is in another state, or the txhash belongs to another payout; nothing is changed
   */
  async change(change: StateChange): Promise<void> {
    const { payoutId, from, to, by = '', reason = '', txhash = '', fee, message } = change;
    const extra = Object.entries({ fee, message: message === undefined ? undefined : toLine(message) });
    const fields = extra.flatMap(([field, value]) => (value === undefined ? [] : [field, value]));
    const at = this.connection.clock.wallNow();
    const args = [at, payoutId, from, to, toLine(by), toLine(reason), txhash, ...fields];
    const refusal = readRefusal(await this.connection.run('change-state', args));
    if (refusal === undefined) return;
    if (refusal.kind === 'wrong_state') throw wrongStateError(payoutId, refusal.state, from, to);
    if (refusal.kind === 'txhash_taken') {
      throw new ConflictError(`txhash ${txhash} already belongs to payout ${refusal.payoutId}`, ['txhash']);
    }
    throw new NotFoundError(`There is no payout ${payoutId}`);
  }

  /** @returns false when the account was paused already; the first reason stays */
  async pause(by: string, reason: string): Promise<boolean> {
    return (
      (await this.connection.run('pause-account', [this.connection.clock.wallNow(), toLine(by), toLine(reason)])) === 1
    );
  }

  /** @returns false when the account was not paused */
  async resume(by: string, reason: string): Promise<boolean> {
    return (
      (await this.connection.run('resume-account', [this.connection.clock.wallNow(), toLine(by), toLine(reason)])) === 1
    );
  }

  /** Payouts that came into a state that needs a BullMQ job and do not have it yet, the oldest first. @param changedBefore - wall clock, ms */
  async readOutbox(limit: number, changedBefore: number): Promise<OutboxEntry[]> {
    const { redis, keys } = this.connection;
    const members = await ask(redis.zrange(keys.outbox, '-inf', `(${changedBefore}`, 'BYSCORE', 'LIMIT', 0, limit));
    return members.map((member) => {
      const [state = '', payoutId = ''] = member.split(' ');
      return { state: state as StateWithJob, payoutId };
    });
  }

  /** Notes that these payouts have the job of the state. */
  async clearOutbox(state: StateWithJob, payoutIds: readonly string[]): Promise<void> {
    const { redis, keys } = this.connection;
    if (payoutIds.length === 0) return;
    await ask(redis.zrem(keys.outbox, ...payoutIds.map((payoutId) => `${state} ${payoutId}`)));
  }
}

function toArguments({ payoutId, ...rest }: ValidPayout): (string | number)[] {
  const fields = toRecordFields(rest);
  return [payoutId, rest.batch ?? '', fields.length, ...fields];
}

function readEnqueueReply(reply: unknown, payouts: readonly ValidPayout[]): EnqueueResult[] {
  return (reply as (1 | PayoutState | string[])[]).map((result, index) => {
    const given = payouts[index];
    if (given === undefined) throw new Error('enqueue-payouts answered for more payouts than it was given');
    const { payoutId } = given;
    if (result === 1) return { kind: 'created', payoutId };
    if (typeof result === 'string') return { kind: 'removed', payoutId, state: result };
    const record = pairsToRecord(result);
    const fields = differingFields(record, given);
    const payout = parseRecord(payoutId, record);
    return fields.length === 0
      ? { kind: 'exists', payout }
      : { kind: 'conflict', payoutId, state: payout.state, fields };
  });
}

/** The refusal of a change: the state that was found, and what would be allowed. */
export function wrongStateError(
  payoutId: string,
  found: PayoutState | undefined,
  from: PayoutState,
  to: PayoutState,
): ConflictError {
  if (found === undefined) return new ConflictError(`Payout ${payoutId} is not ${from}`, ['state']);
  const allowed = reachableFrom(found);
  const next = allowed.length === 0 ? 'which is final' : `from where it can go to ${allowed.join(', ')}`;
  return new ConflictError(
    `Payout ${payoutId} is ${found}, ${next}; only a payout that is ${from} can become ${to} this way`,
    ['state'],
  );
}

function chunk<Item>(items: readonly Item[], size: number): Item[][] {
  const chunks: Item[][] = [];
  for (let start = 0; start < items.length; start += size) chunks.push(items.slice(start, start + size));
  return chunks;
}
