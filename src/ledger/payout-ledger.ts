import { ConflictError, NotFoundError } from '../base/errors.js';
import { isSameGatewayId } from '../base/fields.js';
import { formatAlternatives, formatDuration, formatTimeUtc, toIsoTime } from '../base/format.js';
import { type Confirmation, prepareWrite } from './confirm-write.js';
import { type StoredReceipt, toReceiptFields } from './control-record.js';
import { parseStoredReplicas } from './known-replicas.js';
import { type LedgerKeys, shortGatewayId } from './keys.js';
import { ask, type LedgerConnection, pipelined } from './ledger-connection.js';
import { readPayout } from './payout-queries.js';
import { MAX_COMMENTS, type NewComment } from './payout-comment.js';
import { differingFields, pairsToRecord, parseRecord, toRecordFields, toTxhashField } from './payout-record.js';
import { type Actor, type NewPayout, type Payout, toHeldField, toLine } from './payout.js';
import { parseRejection, type RejectionOf, type ReplicasSeen } from './sender-ledger.js';
import { type OutboxEntry, parseOutboxMember, type PayoutState, reachableFrom, type StateWithJob } from './states.js';

export type EnqueueResult =
  | { readonly kind: 'created'; readonly payoutId: string }
  | { readonly kind: 'exists'; readonly payout: Payout }
  /** It was final and retention removed it: only its id and this state remain. */
  | { readonly kind: 'removed'; readonly payoutId: string; readonly state: PayoutState }
  | {
      readonly kind: 'conflict';
      readonly payoutId: string;
      readonly state: PayoutState;
      readonly fields: readonly string[];
    };

/**
 * Each payout keeps Redis busy for some 30 µs, so a call takes 3 ms. Not fewer, because Redis waits for its disk once a
 * call.
 */
const PAYOUTS_PER_SCRIPT = 100;

/**
 * Payouts as the application and operators see and change them. Methods throw RedisUnavailableError. A change may then
 * have happened; repeating it is safe.
 */
export class PayoutLedger {
  readonly connection: LedgerConnection;
  readonly #confirmation: Confirmation;
  readonly #acceptance: Confirmation;

  /**
   * @param confirmation - how changes are known to be kept before they are acknowledged
   * @param acceptance - the same for payouts that are accepted, if replicas are known
   */
  constructor(connection: LedgerConnection, confirmation: Confirmation = 'reply', acceptance = confirmation) {
    this.connection = connection;
    this.#confirmation = confirmation;
    this.#acceptance = acceptance;
  }

  /**
   * Takes one round trip, and the known replicas' acknowledgement, which calls of one moment share. A payoutId that
   * exists with the same data is left as it is.
   * @returns the results in order
   */
  async enqueue(payouts: readonly NewPayout[]): Promise<EnqueueResult[]> {
    if (this.#acceptance === 'reply') return this.#accept(payouts);
    const write = await this.#acceptance.prepareAcceptance(this.connection);
    const results = await this.#accept(payouts);
    await write.confirm();
    return results;
  }

  async #accept(payouts: readonly NewPayout[]): Promise<EnqueueResult[]> {
    const at = this.connection.clock.wallNow();
    const chunks = chunk(payouts, PAYOUTS_PER_SCRIPT);
    const { run, keys } = this.connection;
    const replies = await Promise.all(
      chunks.map(async (part) =>
        run(
          'enqueue-payouts',
          {
            ...{ at, atText: toTimeText(at), latest: toTimeText(at + SIGNERS_AHEAD_MS) },
            payouts: JSON.stringify(part.map(toArgument)),
          },
          part.flatMap((payout) => keysOf(keys, payout)),
        ),
      ),
    );
    return replies.flatMap((reply, index) => parseEnqueueReply(reply, chunks[index] ?? []));
  }

  async get(payoutId: string): Promise<Payout | undefined> {
    return readPayout(this.connection, payoutId);
  }

  /** Whether each payoutId was accepted before, also if retention has removed the payout. */
  async knows(payoutIds: readonly string[]): Promise<boolean[]> {
    const { keys } = this.connection;
    const replies = await pipelined(this.connection, (pipeline) => {
      for (const payoutId of payoutIds)
        pipeline.exists(keys.payout(payoutId)).hexists(keys.removedBucket(payoutId), payoutId);
    });
    return payoutIds.map((_, index) => replies[2 * index] === 1 || replies[2 * index + 1] === 1);
  }

  /** @throws NotFoundError */
  async require(payoutId: string): Promise<Payout> {
    const payout = await this.get(payoutId);
    if (payout === undefined) throw new NotFoundError(`Payout ${payoutId} not found`);
    return payout;
  }

  async findByGatewayId(gatewayId: string): Promise<string | undefined> {
    const { redis, keys } = this.connection;
    const holder = await ask(redis.hget(keys.gatewayIdBucket(gatewayId), shortGatewayId(gatewayId)));
    if (holder === null) return undefined;
    // The bucket has a part of a digest; the record has the gatewayId.
    const found = await ask(redis.hget(keys.payout(holder), 'gatewayId'));
    return isSameGatewayId(found ?? undefined, gatewayId) ? holder : undefined;
  }

  /**
   * Moves a payout from one state to another. Repeated after a lost reply, it succeeds or its ConflictError names the
   * new state.
   * @throws NotFoundError if there is no such payout
   * @throws ConflictError if it is in another state, was sent again since, may still be on its way to the gateway, or
   * the gatewayId is another payout's; nothing is changed
   */
  async change({ from, to, by, reason, ...payout }: StateChange): Promise<void> {
    const changes = { from, to, by, reason, isOneAct: false, payouts: [payout] };
    const [error] = await this.changeMany(changes);
    if (error !== undefined) throw error;
  }

  /**
   * Moves payouts in one script. Each is checked like a single one; a refused one does not stop the others.
   * @returns for each payout, in order, undefined if it was moved, or the NotFoundError or ConflictError
   * @throws RedisUnavailableError if it may or may not have happened; repeating is safe
   * @throws Error if a payout is named twice; nothing is changed
   */
  async changeMany(changes: PayoutChanges): Promise<(Error | undefined)[]> {
    return this.confirmed(async () => changePayouts(this.connection, changes));
  }

  /**
   * Adds a comment. Repeated after a lost reply, it stands once.
   * @throws NotFoundError
   * @throws ConflictError if the payout has {@link MAX_COMMENTS}
   */
  async comment(payoutId: string, { by, text }: NewComment): Promise<void> {
    const { run, keys, clock } = this.connection;
    const args = { at: clock.wallNow(), by, text, most: MAX_COMMENTS };
    const reply = await this.confirmed(async () => run('comment-payout', args, [keys.payout(payoutId)]));
    const rejection = parseRejection('comment-payout', reply);
    if (rejection?.kind === 'not_found') throw new NotFoundError(`Payout ${payoutId} not found`);
    if (rejection !== undefined)
      throw new ConflictError(`Payout ${payoutId} has ${rejection.count} comments, which is the most`, ['comments']);
  }

  /** @returns false if the same had paused the account already; the first reason stays */
  async pause(by: string, reason: string): Promise<boolean> {
    const args = { at: this.connection.clock.wallNow(), by: toLine(by), reason: toLine(reason) };
    return (await this.confirmed(async () => this.connection.run('pause-account', args))) !== 0;
  }

  /**
   * Ends one pause. The account sends again once none remains.
   * @param act - the operator's signed act, as JSON: stored even if the ledger knows of no pause
   * @param of - whose pause it is. @defaultValue the only one, or else the operator's own
   * @returns false if the account was not paused
   * @throws ConflictError if several pauses stand, and none is the operator's or of that name
   * @throws ConflictError while a send journal objects to the ledger: only an adoption ends that
   */
  async resume(by: string, reason: string, act = '', of = ''): Promise<boolean> {
    const { run, clock } = this.connection;
    const args = { at: clock.wallNow(), by: toLine(by), reason: toLine(reason), act, of };
    const reply = await this.confirmed(async () => run('resume-account', args));
    const rejection = parseRejection('resume-account', reply);
    if (rejection?.kind === 'objected') {
      throw new ConflictError(
        `Send journal ${rejection.journalId} contradicts this ledger; this is an objection, not a pause: ${rejection.reason} Run \`payouts stats --account ${this.connection.platformId}\` for the command that ends it (\`payouts adopt-ledger --account ${this.connection.platformId}\`)`,
        ['objections'],
      );
    }
    if (rejection?.kind === 'other_pauses') {
      const { platformId } = this.connection;
      const commands = rejection.by.map(
        (name) => `\`payouts resume --account ${platformId} --of ${name} --reason WHY\``,
      );
      throw new ConflictError(
        `The account has these pauses: ${rejection.by.join(', ')}. End each that is over: ${commands.join(', ')}`,
        ['of'],
      );
    }
    return reply !== 0;
  }

  /**
   * Binds the ledger to another gateway, which makes its payments from then on.
   * @param act - the operator's signed act, as JSON
   * @param without - states that no payout may be in
   * @returns false if it was bound so before
   * @throws ConflictError if a payout is in such a state; nothing was changed
   */
  async bind(
    audience: string,
    { by, reason }: Actor,
    { act = '', without = [] }: { readonly act?: string | undefined; readonly without?: readonly PayoutState[] } = {},
  ): Promise<boolean> {
    const { run, clock } = this.connection;
    const why = toLine(`bound to "${audience}": ${reason}`);
    const args = { at: clock.wallNow(), by: toLine(by), reason: why, act, audience };
    const reply = await this.confirmed(async () => run('bind-ledger', args, [], without));
    if (reply !== -1) return reply === 1;
    throw new ConflictError(
      `Nothing was changed: payouts are ${without.join(', ')}, and only the API that sent them can follow them. Let the worker of that API follow them to their end, decide the unknown ones, and say it again`,
      ['state'],
    );
  }

  /** The gateway that the ledger is bound to; undefined before the first send. */
  async readAudience(): Promise<string | undefined> {
    const { redis, keys } = this.connection;
    return (await ask(redis.hget(keys.ledger, 'audience'))) ?? undefined;
  }

  /**
   * Records that no process sends for this account, so that the first sender need not wait for a possible other one.
   * @returns false if it was recorded before
   * @throws ConflictError if there are traces of a sender
   */
  async declareNew({ by, reason }: Actor): Promise<boolean> {
    const { run, clock, platformId } = this.connection;
    const args = { at: clock.wallNow(), by: toLine(by), reason: toLine(reason) };
    const reply = await this.confirmed(async () => run('declare-new', args));
    const trace = parseTrace(reply);
    if (trace === undefined) return reply === 1;
    throw new ConflictError(`Account ${platformId} is not new: ${trace}. A worker waits by itself`, ['sender']);
  }

  /** Why {@link declareNew} would be refused, such as a send; undefined for a new account. Records nothing. */
  async findSenderTrace(): Promise<string | undefined> {
    return parseTrace(await this.connection.run('declare-new', { at: '', by: '', reason: '' }));
  }

  /** How many replicas of Redis the ledger knows. */
  async readReplicas(): Promise<ReplicasSeen> {
    const { redis, keys } = this.connection;
    const [count, names] = await ask(redis.hmget(keys.ledger, 'replicas', 'replicaNames'));
    return parseStoredReplicas(count, names);
  }

  /** Records that fewer replicas of Redis can become its master: an operator's statement, which nothing checks here. */
  async lowerReplicas({ count, names }: ReplicasSeen, { by, reason }: Actor): Promise<void> {
    const { run, clock } = this.connection;
    const actor = { by: toLine(by), reason: toLine(`${count} remain: ${reason}`) };
    const args = { at: clock.wallNow(), ...actor, count, names: names.join(' ') };
    await this.confirmed(async () => run('lower-replicas', args));
  }

  /**
   * Makes a change and resolves once it is known to be kept. A rejection is confirmed too: the same change may have
   * been made before, unconfirmed.
   * @throws what `change` throws
   */
  async confirmed<Reply>(change: () => Promise<Reply>): Promise<Reply> {
    const write = await prepareWrite(this.#confirmation, this.connection);
    const reply = await change();
    await write.confirm();
    return reply;
  }

  /** Before a payout ends without the receipt that it should have: a crash then leaves a needless question at worst. */
  async oweReceipt(payoutId: string): Promise<void> {
    const { redis, keys, clock } = this.connection;
    await ask(redis.zadd(keys.unreceipted, clock.wallNow(), payoutId));
  }

  /** To the end of those that are owed. */
  async postponeReceipt(payoutId: string): Promise<void> {
    const { redis, keys, clock } = this.connection;
    await ask(redis.zadd(keys.unreceipted, 'XX', clock.wallNow(), payoutId));
  }

  async settleReceipt(payoutId: string): Promise<void> {
    const { redis, keys } = this.connection;
    await ask(redis.zrem(keys.unreceipted, payoutId));
  }

  /** @returns the payouts that were tried longest ago */
  async readOwedReceipts(limit: number): Promise<string[]> {
    const { redis, keys } = this.connection;
    return ask(redis.zrange(keys.unreceipted, '0', String(limit - 1)));
  }

  /** @returns false if the payout has changed since it was read, or has a receipt */
  async addReceipt(
    { payoutId, state, attempt, gatewayId = '', history }: Payout,
    receipt: StoredReceipt,
  ): Promise<boolean> {
    const { run, keys } = this.connection;
    const args = { state, attempt, gatewayId, entries: history.length };
    const fields = toReceiptFields(receipt);
    return (await this.confirmed(async () => run('add-receipt', args, [keys.payout(payoutId)], fields))) === 1;
  }

  /** @param changedBefore - wall clock, ms @param skip - entries at the beginning to leave out */
  async readOutbox(limit: number, changedBefore: number, skip = 0): Promise<OutboxEntry[]> {
    const { redis, keys } = this.connection;
    const members = await ask(redis.zrange(keys.outbox, '-inf', `(${changedBefore}`, 'BYSCORE', 'LIMIT', skip, limit));
    return members.map(parseOutboxMember);
  }

  async clearOutbox(state: StateWithJob, payoutIds: readonly string[]): Promise<void> {
    const { redis, keys } = this.connection;
    if (payoutIds.length === 0) return;
    await ask(redis.zrem(keys.outbox, ...payoutIds.map((payoutId) => `${state} ${payoutId}`)));
  }
}

function parseTrace(reply: unknown): string | undefined {
  return parseRejection('declare-new', reply)?.trace;
}

function toArgument(payout: NewPayout): (string | number)[] {
  const isVerified = payout.signed?.isVerified === true;
  return [payout.batch === undefined ? 0 : 1, isVerified ? 1 : 0, payout.notBefore ?? '', ...toRecordFields(payout)];
}

/** How far a signer's clock may be ahead: a worker tolerates the same. */
const SIGNERS_AHEAD_MS = 5 * 60_000;

/** As `iat` and `exp` are stored: texts of this form are in the order of time. */
function toTimeText(at: number): string {
  return new Date(at).toISOString();
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

/** A change of payouts by an operator or by the gateway's status. */
export interface PayoutChanges {
  readonly from: PayoutState;
  readonly to: PayoutState;
  /** The operator, if any. */
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  /** Recorded as one act of the operator for all payouts, not one for each. */
  readonly isOneAct: boolean;
  /** What a bulk command chose them by, such as `batch june`. */
  readonly source?: string | undefined;
  /** {@link PAYOUTS_PER_CHANGE} at most. */
  readonly payouts: readonly PayoutChange[];
}

export interface PayoutChange {
  readonly payoutId: string;
  /** The attempt that was decided about: a payout sent again since is not changed. */
  readonly attempt?: number | undefined;
  /** The payout's payment from now on; of an `in_progress` payout, the one whose status decides. */
  readonly gatewayId?: string;
  /** Its transaction, as the gateway told it with the status; without one, an earlier one is dropped. */
  readonly txhash?: string | undefined;
  readonly fee?: string;
  readonly message?: string;
  /** The operator's signed act, as JSON. */
  readonly act?: string | undefined;
  /** The worker's receipt of the final state; its time is the time of the change, so of all in one call. */
  readonly receipt?: StoredReceipt | undefined;
}

export type StateChange = Pick<PayoutChanges, 'from' | 'to' | 'by' | 'reason'> & PayoutChange;

/** Keeps Redis busy for some 2 ms. A caller with more pauses in between. */
export const PAYOUTS_PER_CHANGE = 50;

async function changePayouts(
  { run, keys, clock }: LedgerConnection,
  changes: PayoutChanges,
): Promise<(Error | undefined)[]> {
  const { from, to, by = '', reason = '', isOneAct, source = '', payouts } = changes;
  const receipt = payouts[0]?.receipt;
  const at = receipt === undefined ? clock.wallNow() : Date.parse(receipt.at);
  const inputs = payouts.map((payout) => toScriptInput(keys, payout, to, { by, reason }));
  const about = { by: toLine(by), reason: toLine(reason), oneAct: Number(isOneAct), source: toLine(source) };
  const args = { at, from, to, ...about };
  const touched = inputs.flatMap((input) => input.keys);
  const rest = inputs.flatMap((input) => input.args);
  const replies = (await run('change-payouts', args, touched, rest)) as unknown[];
  return payouts.map((payout, index) => {
    const rejection = parseRejection('change-payouts', replies[index]);
    return rejection === undefined ? undefined : toChangeError(rejection, { ...payout, from, to }, clock.wallNow());
  });
}

function toScriptInput(
  keys: LedgerKeys,
  change: PayoutChange,
  to: PayoutState,
  { by, reason }: Actor,
): { readonly keys: readonly string[]; readonly args: readonly (string | number)[] } {
  const { payoutId, attempt = '', gatewayId = '', txhash, fee, message, act = '', receipt } = change;
  const fields = Object.entries({
    fee,
    message: message === undefined ? undefined : toLine(message),
    txhash: gatewayId !== '' && to !== 'unknown' ? toTxhashField({ gatewayId, txhash }) : undefined,
    vouchedGatewayId: to === 'in_progress' && by !== '' && gatewayId !== '' ? gatewayId : undefined,
  }).flatMap(([field, value]) => (value === undefined ? [] : [field, value]));
  if (receipt !== undefined) fields.push(...toReceiptFields(receipt));
  if (to === 'held' && by !== '') fields.push(...holdFields(by, reason));
  return {
    keys: [keys.payout(payoutId), ...(gatewayId === '' ? [] : [keys.gatewayIdBucket(gatewayId)])],
    args: [attempt, gatewayId, act, fields.length, ...fields],
  };
}

/** The second stays while another check holds the payout, too. */
function holdFields(by: string, reason: string): string[] {
  const message = `${by} holds it: ${reason}. Only \`payouts release\` ends that`;
  const held = toHeldField({ kind: 'person', reason: 'by_hand', message, isTampering: false });
  return ['held', held, 'byHand', held];
}

/** @param now - wall clock, ms, for the text */
export function toChangeError(
  rejection: RejectionOf<'change-payouts'>,
  { payoutId, from, to, gatewayId = '' }: StateChange,
  now: number,
): Error {
  switch (rejection.kind) {
    case 'wrong_state':
      return wrongStateError(payoutId, rejection.state, from, to);
    case 'gateway_id_taken':
      return new ConflictError(`gatewayId ${gatewayId} already belongs to payout ${rejection.payoutId}`, ['gatewayId']);
    case 'sent_since':
      return new ConflictError(
        `Payout ${payoutId} was sent again meanwhile (attempt ${rejection.attempt}): look at it again, then decide`,
        ['attempt'],
      );
    case 'in_flight':
      return new ConflictError(
        `The request of payout ${payoutId} may still arrive at the gateway until ${formatTimeUtc(toIsoTime(now + rejection.forMs))}, in ${formatDuration(rejection.forMs)}: what the gateway says before that proves nothing. Ask it again after that, then decide`,
        ['state'],
      );
    case 'paid_late':
      return new ConflictError(
        `Payout ${payoutId} was paid as ${rejection.gatewayId}, which the gateway reported late: it is not sent again. Resolve it as that, write it off, or cancel it`,
        ['lateGatewayId'],
      );
    case 'not_found':
      return new NotFoundError(`Payout ${payoutId} not found`);
  }
}

export function wrongStateError(
  payoutId: string,
  found: PayoutState | undefined,
  from: PayoutState | readonly PayoutState[],
  to: PayoutState,
): ConflictError {
  const needed = formatAlternatives([from].flat());
  if (found === undefined) return new ConflictError(`Payout ${payoutId} is not ${needed}`, ['state']);
  const allowed = reachableFrom(found).join(', ') || 'none, it is final';
  return new ConflictError(
    `Cannot move payout ${payoutId} from ${found} to ${to}: that needs ${needed}. Allowed from ${found}: ${allowed}${describeOtherWay(found, from)}`,
    ['state'],
  );
}

/** Advice if the payout is held, or must be released and is not held. */
function describeOtherWay(found: PayoutState, from: PayoutState | readonly PayoutState[]): string {
  if (found === 'held')
    return '. It was not sent: `payouts release` queues it again once the cause of its hold is gone';
  if (from !== 'held') return '';
  if (found === 'rejected') return '. `payouts retry` queues it again';
  return found === 'unknown' ? '. `payouts resolve` decides what became of it' : '';
}
