import type { Actor } from './actor.js';
import { ConflictError, NotFoundError } from '../errors.js';
import { isSameTxhash, txhashSpellings } from '../fields.js';
import { prepareWrite, type Confirmation } from './confirm-write.js';
import { shortTxhash, type LedgerKeys } from './keys.js';
import { ask, pipelined, type LedgerConnection } from './ledger-connection.js';
import { parseOutboxMember, type OutboxEntry } from './outbox-member.js';
import { toLine, type NewPayout, type Payout } from './payout.js';
import { differingFields, pairsToRecord, parseRecord, toRecordFields } from './payout-record.js';
import { toReceiptFields } from './control-record.js';
import { readPayout } from './payout-queries.js';
import { parseRejection } from './script-rejection.js';
import { toChangeError, type StateChange } from './state-change.js';
import type { PayoutState, StateWithJob } from './states.js';

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

/**
 * Payouts per script call: each keeps Redis busy for some 30 µs, so all together for 3 ms. Not fewer, because
 * Redis waits for its disk once for each call.
 */
const PAYOUTS_PER_SCRIPT = 100;

/** Payouts as the application and operators see and change them. */
export class PayoutLedger {
  readonly connection: LedgerConnection;
  readonly #confirmation: Confirmation;

  /**
   * @param confirmation - how changes are known to be kept before they are acknowledged. Payouts are accepted on Redis's
   * reply in any case: an application that asks again with the same payoutId loses none.
   */
  constructor(connection: LedgerConnection, confirmation: Confirmation = 'reply') {
    this.connection = connection;
    this.#confirmation = confirmation;
  }

  /**
   * Accepts payouts, all of them in one round trip. One whose payoutId is there with the same data is left as it is.
   * @returns one result for each payout, in order
   * @throws RedisUnavailableError when Redis is unavailable; some payouts may have been accepted, and asking again is safe
   */
  async enqueue(payouts: readonly NewPayout[]): Promise<EnqueueResult[]> {
    const at = this.connection.clock.wallNow();
    const chunks = chunk(payouts, PAYOUTS_PER_SCRIPT);
    const { run, keys } = this.connection;
    const replies = await Promise.all(
      chunks.map(async (part) =>
        run(
          'enqueue-payouts',
          [at, ...part.flatMap(toArguments)],
          part.flatMap((payout) => keysOf(keys, payout)),
        ),
      ),
    );
    return replies.flatMap((reply, index) => parseEnqueueReply(reply, chunks[index] ?? []));
  }

  /** One payout with its history. */
  async get(payoutId: string): Promise<Payout | undefined> {
    return readPayout(this.connection, payoutId);
  }

  /** As {@link get}. @throws NotFoundError when there is no such payout */
  async require(payoutId: string): Promise<Payout> {
    const payout = await this.get(payoutId);
    if (payout === undefined) throw new NotFoundError(`Payout ${payoutId} not found`);
    return payout;
  }

  /** The id of the payout that has this transaction. */
  async findByTxhash(txhash: string): Promise<string | undefined> {
    const { redis, keys } = this.connection;
    const buckets = keys.txhashBuckets(txhash);
    const places = (await pipelined(this.connection, (pipeline) => {
      for (const [index, spelling] of txhashSpellings(txhash).entries())
        pipeline.hmget(buckets[index] ?? '', shortTxhash(spelling), spelling);
    })) as (string | null)[][];
    const holder = places.flat().find((payoutId) => payoutId !== null) ?? undefined;
    if (holder === undefined) return undefined;
    // The bucket has a part of a digest; the record has the txhash.
    const found = await ask(redis.hget(keys.payout(holder), 'txhash'));
    return isSameTxhash(found ?? undefined, txhash) ? holder : undefined;
  }

  /**
   * Moves a payout from one state to another.
   * @throws NotFoundError when there is no such payout
   * @throws ConflictError when it is in another state, was sent again since, may still be on its way to the gateway, or
   * when the txhash belongs to another payout; nothing is changed
   * @throws RedisUnavailableError when it may or may not have happened: asked again, it happens, or a ConflictError
   * names the state that it led to
   */
  async change(change: StateChange): Promise<void> {
    const { payoutId, from, to, attempt = '', by = '', reason = '', txhash = '', fee, message, act, receipt } = change;
    const extra = Object.entries({
      fee,
      act,
      message: message === undefined ? undefined : toLine(message),
      vouchedTxhash: to === 'in_progress' && txhash !== '' && by !== '' ? txhash : undefined,
    });
    const fields = extra.flatMap(([field, value]) => (value === undefined ? [] : [field, value]));
    if (receipt !== undefined) fields.push(...toReceiptFields(receipt));
    const at = receipt === undefined ? this.connection.clock.wallNow() : Date.parse(receipt.at);
    const args = [at, from, to, toLine(by), toLine(reason), txhash, attempt, ...fields];
    const { run, keys } = this.connection;
    const touched = [keys.payout(payoutId), ...(txhash === '' ? [] : keys.txhashBuckets(txhash))];
    const rejection = parseRejection(await this.confirmed(async () => run('change-state', args, touched)));
    if (rejection !== undefined) throw toChangeError(rejection, change);
  }

  /**
   * @returns false when the account was paused already; the first reason stays
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   */
  async pause(by: string, reason: string): Promise<boolean> {
    const args = [this.connection.clock.wallNow(), toLine(by), toLine(reason)];
    return (await this.confirmed(async () => this.connection.run('pause-account', args))) === 1;
  }

  /**
   * @param act - the operator's signed act, as JSON: kept also where the ledger knows of no pause
   * @returns false when the account was not paused
   * @throws ConflictError while a send journal objects to the ledger: only an adoption ends that
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   */
  async resume(by: string, reason: string, act = ''): Promise<boolean> {
    const { run, clock } = this.connection;
    const args = [clock.wallNow(), toLine(by), toLine(reason), act];
    const reply = await this.confirmed(async () => run('resume-account', args));
    const rejection = parseRejection(reply);
    if (rejection?.kind === 'objected') {
      throw new ConflictError(
        `Send journal ${rejection.journalId} contradicts this ledger; this is an objection, not a pause: ${rejection.reason} Run \`payouts stats --account ${this.connection.platformId}\` for the command that ends it (\`payouts adopt-ledger --account ${this.connection.platformId}\`)`,
        ['objections'],
      );
    }
    return reply === 1;
  }

  /**
   * Binds the ledger to another gateway: from then on its payments are of that one.
   * @param act - the operator's signed act, as JSON
   * @returns false when it was bound so before
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   */
  async bind(audience: string, { by, reason }: Actor, act = ''): Promise<boolean> {
    const { run, clock } = this.connection;
    const args = [clock.wallNow(), toLine(by), toLine(`bound to "${audience}": ${reason}`), act, audience];
    return (await this.confirmed(async () => run('bind-ledger', args))) === 1;
  }

  /** The gateway that the ledger is bound to; undefined before the first send. @throws RedisUnavailableError */
  async readAudience(): Promise<string | undefined> {
    const { redis, keys } = this.connection;
    return (await ask(redis.hget(keys.ledger, 'audience'))) ?? undefined;
  }

  /**
   * Notes that no process sends for this account, so that the first one need not wait for a sender that may still live.
   * @returns false when it was noted before
   * @throws ConflictError when there are traces of a sender
   * @throws RedisUnavailableError when it may or may not have happened; asking again is safe
   */
  async declareNew({ by, reason }: Actor): Promise<boolean> {
    const { run, clock, platformId } = this.connection;
    const reply = await this.confirmed(async () => run('declare-new', [clock.wallNow(), toLine(by), toLine(reason)]));
    const rejection = parseRejection(reply);
    if (rejection?.kind === 'not_new') {
      throw new ConflictError(`Account ${platformId} is not new: ${rejection.trace}. A worker waits by itself`, [
        'sender',
      ]);
    }
    return reply === 1;
  }

  /**
   * Makes a change, and returns once it is known to be kept. A rejection is confirmed too: it may tell of the same change,
   * asked for before and not confirmed.
   * @throws RedisUnavailableError when it may or may not have happened; what `change` throws
   */
  async confirmed<Reply>(change: () => Promise<Reply>): Promise<Reply> {
    const write = await prepareWrite(this.#confirmation, this.connection.keys.ledger);
    const reply = await change();
    await write.confirm();
    return reply;
  }

  /**
   * Payouts that came into a state that needs a BullMQ job and do not have it yet, the oldest first.
   * @param changedBefore - wall clock, ms
   * @param skip - entries at the beginning that are left out
   */
  async readOutbox(limit: number, changedBefore: number, skip = 0): Promise<OutboxEntry[]> {
    const { redis, keys } = this.connection;
    const members = await ask(redis.zrange(keys.outbox, '-inf', `(${changedBefore}`, 'BYSCORE', 'LIMIT', skip, limit));
    return members.map(parseOutboxMember);
  }

  /** Notes that these payouts have the job of the state. */
  async clearOutbox(state: StateWithJob, payoutIds: readonly string[]): Promise<void> {
    const { redis, keys } = this.connection;
    if (payoutIds.length === 0) return;
    await ask(redis.zrem(keys.outbox, ...payoutIds.map((payoutId) => `${state} ${payoutId}`)));
  }
}

function toArguments(payout: NewPayout): (string | number)[] {
  const fields = toRecordFields(payout);
  return [payout.batch === undefined ? 0 : 1, fields.length, ...fields];
}

function keysOf(keys: LedgerKeys, { payoutId, batch }: NewPayout): string[] {
  const ofPayout = [keys.payout(payoutId), keys.removedBucket(payoutId)];
  return batch === undefined ? ofPayout : [...ofPayout, keys.batch(batch)];
}

function parseEnqueueReply(reply: unknown, payouts: readonly NewPayout[]): EnqueueResult[] {
  return (reply as (1 | PayoutState | string[])[]).map((result, index) => {
    const given = payouts[index];
    if (given === undefined) throw new Error('enqueue-payouts returned more results than it was given payouts');
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

function chunk<Item>(items: readonly Item[], size: number): Item[][] {
  const chunks: Item[][] = [];
  for (let start = 0; start < items.length; start += size) chunks.push(items.slice(start, start + size));
  return chunks;
}
