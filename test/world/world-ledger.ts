import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../src/base/clock.js';
import { ConflictError, NotFoundError, UnreadableRecordError } from '../../src/base/errors.js';
import { hashApproval } from '../../src/control/approvals/approval.js';
import { addApproval } from '../../src/control/operator/store-approval.js';
import * as adopting from '../../src/ledger/adopt-ledger.js';
import {
  approvalFieldName,
  type SignedApproval,
  toApprovalField,
  toSignatureFields,
} from '../../src/ledger/control-record.js';
import type { LedgerConnection } from '../../src/ledger/ledger-connection.js';
import { orderArguments, type ScriptName } from '../../src/ledger/ledger-scripts.js';
import { PayoutLedger, type StateChange } from '../../src/ledger/payout-ledger.js';
import { parseRecord } from '../../src/ledger/payout-record.js';
import { type Actor, type NewPayout, type Payout, toHeldField } from '../../src/ledger/payout.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import {
  type KnownJournal,
  type LeaseView,
  type Objection,
  parseRejection,
  type RejectingScript,
  type RejectionOf,
  type SendAttempt,
  type SenderView,
} from '../../src/ledger/sender-ledger.js';
import { parseLease, parseObjections } from '../../src/ledger/sender-view.js';
import { PAYOUT_STATES, type PayoutState, STATE_CODE } from '../../src/ledger/states.js';
import type { AdoptionLedger } from '../../src/operator/adoption.js';
import type { CompiledScript } from './lua-parser.js';
import { makeMemoryClient, MemoryRedis, type RedisSnapshot, type Reply } from './memory-redis.js';
import { compiledScript, runScript, WORLD_KEYS } from './script-runner.js';

export interface WorldLedgerOptions {
  readonly clock: Pick<Clock, 'wallNow'>;
  readonly nextLedgerId?: () => string;
}

const { ledger: LEDGER, sender: SENDER, journals: JOURNALS, objections: OBJECTIONS } = WORLD_KEYS;
const LEASE_FIELDS = ['owner', 'epoch', 'beat', 'released'];
const ACTOR = { by: 'ann', reason: 'looked it up' };

/** The product's own calls and scripts, on a Redis in memory. A script is one indivisible step. */
export class WorldLedger extends RedisSenderLedger implements AdoptionLedger {
  readonly redis: MemoryRedis;
  readonly connection: LedgerConnection;
  readonly payoutLedger: PayoutLedger;
  readonly #nextLedgerId: () => string;
  readonly #parsed = new Map<string, Readonly<{ version: number; payout: Payout }>>();
  #lastReply: Reply = null;
  #adoptions = 0;

  constructor({ clock, nextLedgerId = countLedgers() }: WorldLedgerOptions) {
    const redis = new MemoryRedis(() => clock.wallNow());
    const connection: LedgerConnection = {
      platformId: 1,
      redis: makeMemoryClient(redis),
      keys: WORLD_KEYS,
      clock: { ...NO_CLOCK, wallNow: () => clock.wallNow() },
      // eslint-disable-next-line @typescript-eslint/require-await -- another promise would cost three turns a call
      run: async (name, args, own = [], rest = []) => this.#run(name, own, [...orderArguments(name, args), ...rest]),
    };
    super(connection, 'reply');
    this.redis = redis;
    this.connection = connection;
    this.payoutLedger = new PayoutLedger(connection);
    this.#nextLedgerId = nextLedgerId;
  }

  #view: Readonly<{ looks: readonly number[]; view: SenderView }> | undefined;
  #run(name: ScriptName, own: readonly string[], args: readonly (string | number)[]): Reply {
    const given = name === 'read-sender' && this.ledgerId === undefined ? [this.#nextLedgerId()] : args;
    return (this.#lastReply = runScript(this.redis, this.scriptNamed(name), own, given));
  }

  protected scriptNamed(name: ScriptName): CompiledScript {
    return compiledScript(name);
  }

  override async readSender(): Promise<SenderView> {
    const looks = [LEDGER, SENDER, JOURNALS, OBJECTIONS].map((key) => this.redis.versionOf(key));
    if (this.ledgerId !== undefined && this.#view?.looks.every((look, index) => look === looks[index]) === true)
      return this.#view.view;
    const view = await super.readSender();
    this.#view = { looks, view };
    return view;
  }

  enqueue(payout: NewPayout) {
    this.payoutLedger.enqueue([payout]).catch((error: unknown) => {
      if (!(error instanceof UnreadableRecordError)) throw error;
    });
  }

  async change(change: StateChange): Promise<RejectionOf<'change-payouts'> | undefined> {
    return this.#rejectionOf(
      'change-payouts',
      this.payoutLedger.change(change),
      () => (this.#lastReply as readonly Reply[])[0],
    );
  }

  async addApproval(approval: SignedApproval): Promise<RejectionOf<'add-approval'> | undefined> {
    return this.#rejectionOf('add-approval', addApproval(this.payoutLedger, approval), () => this.#lastReply);
  }

  async #rejectionOf<Name extends RejectingScript>(script: Name, changed: Promise<void>, reply: () => unknown) {
    try {
      await changed;
      return undefined;
    } catch (error) {
      if (error instanceof ConflictError || error instanceof NotFoundError) return parseRejection(script, reply());
      throw error;
    }
  }

  async pause(reason: string) {
    return this.payoutLedger.pause(ACTOR.by, reason);
  }

  async resume(act?: string, of?: string): Promise<boolean | 'objected'> {
    try {
      return await this.payoutLedger.resume(ACTOR.by, ACTOR.reason, act, of);
    } catch (error) {
      if (error instanceof ConflictError) return 'objected';
      throw error;
    }
  }

  #hash(key: string) {
    return this.redis.read(key, 'hash');
  }

  get ledgerId() {
    return this.ofLedger('id');
  }

  get pausedReason() {
    return this.ofLedger('pausedReason');
  }

  get resumeAct() {
    return this.ofLedger('resumeAct');
  }

  get lease(): LeaseView | undefined {
    const sender = this.#hash(SENDER);
    if (sender === undefined) return undefined;
    const [owner = '', epoch, beat = '', released = ''] = LEASE_FIELDS.map((name) => sender.get(name));
    return epoch === undefined ? undefined : parseLease({ owner, epoch, beat, released });
  }

  get sendCount() {
    return Number(this.ofSender('sends') ?? 0);
  }

  get awaitingAnswer() {
    return this.ofSender('unanswered') ?? '';
  }

  get objections(): readonly Objection[] {
    return parseObjections(Object.fromEntries(this.#hash(OBJECTIONS) ?? []));
  }

  get objectionCount() {
    return this.#hash(OBJECTIONS)?.size ?? 0;
  }

  get isObjectedTo() {
    return this.objectionCount > 0;
  }

  hasJournal(journalId: string) {
    return this.#hash(JOURNALS)?.has(journalId) === true;
  }

  ofLedger(field: string) {
    return this.#hash(LEDGER)?.get(field);
  }

  ofSender(field: string) {
    return this.#hash(SENDER)?.get(field);
  }

  ofPayout(payoutId: string, field: string) {
    return this.#hash(this.connection.keys.payout(payoutId))?.get(field);
  }

  stateOf(payoutId: string): PayoutState | undefined {
    return this.ofPayout(payoutId, 'state') as PayoutState | undefined;
  }

  isComplete(payoutId: string) {
    return this.stateOf(payoutId) !== undefined && this.ofPayout(payoutId, 'adopted') === undefined;
  }

  knows({ payoutId, attempt, token }: SendAttempt) {
    const tokens = this.ofPayout(payoutId, 'tokens')?.split(' ');
    return tokens?.[attempt - 1]?.split('/').includes(token) === true;
  }

  payoutIds(): readonly string[] {
    return this.redis.keysOf(this.connection.keys.payout(''));
  }

  idsIn(state: PayoutState) {
    return this.payoutIds().filter((payoutId) => this.stateOf(payoutId) === state);
  }

  payouts(): Payout[] {
    return this.payoutIds().flatMap((payoutId) => this.payout(payoutId) ?? []);
  }

  payout(payoutId: string): Payout | undefined {
    const key = this.connection.keys.payout(payoutId);
    const version = this.redis.versionOf(key);
    if (version === 0) return undefined;
    const known = this.#parsed.get(payoutId);
    if (known?.version === version) return known.payout;
    const read = parseRecord(payoutId, Object.fromEntries(this.#hash(key) ?? []));
    const payout = known !== undefined && isDeepStrictEqual(known.payout, read) ? known.payout : read;
    this.#parsed.set(payoutId, { version, payout });
    return payout;
  }

  snapshot(): RedisSnapshot {
    return this.redis.snapshot();
  }

  restore(snapshot: RedisSnapshot) {
    this.redis.restore(snapshot);
  }

  at(snapshot: RedisSnapshot): WorldLedger {
    const copy = new WorldLedger({ clock: this.connection.clock, nextLedgerId: this.#nextLedgerId });
    copy.restore(snapshot);
    return copy;
  }

  flush() {
    this.redis.flush();
  }

  loseSender() {
    this.redis.remove(SENDER);
  }

  readonly adoptSends: AdoptionLedger['adoptSends'] = async (...args) => adopting.adoptSends(this.connection, ...args);
  readonly putBackEnded: AdoptionLedger['putBackEnded'] = async (...args) =>
    adopting.putBackEnded(this.connection, ...args);
  readonly countSendable = async () => adopting.countSendablePayouts(this.connection);
  readonly holdSendable = async (actor: Actor, inFlightMs: number) =>
    adopting.holdSendablePayouts(this.connection, actor, inFlightMs);
  readonly readBookmark = async () => adopting.readBookmark(this.connection);

  async adoptLedger(
    highest: Readonly<Omit<adopting.HighestKnown, 'acts'> & { acts?: number }>,
    journals: Readonly<{ read: readonly KnownJournal[]; givenUp: readonly string[] }>,
    actor = ACTOR,
    bookmarks: readonly string[] = [],
    act?: string,
    inFlightMs = 0,
  ): Promise<adopting.RaisedLedger> {
    const own = { token: `adoption-${(this.#adoptions += 1)}`, inFlightMs };
    return adopting.adoptLedger(this.connection, { acts: 0, ...highest }, own, journals, actor, bookmarks, act);
  }
}

export function countLedgers(prefix = ''): () => string {
  let count = 0;
  return () => `${prefix}ledger-${(count += 1)}`;
}

const NO_CLOCK: Clock = {
  now: () => 0,
  wallNow: () => 0,
  sleep: async () => Promise.reject(new Error('the ledger does not wait')),
};

type PayoutChange = { readonly [Field in keyof Payout]?: Payout[Field] | undefined };

export function alterPayout(ledger: WorldLedger, payoutId: string, change: PayoutChange) {
  const { redis, connection } = ledger;
  const { keys } = connection;
  const record = redis.write(keys.payout(payoutId), 'hash');
  const before = record.get('state');
  for (const [field, value] of toFields(change)) {
    if (value === undefined) record.delete(field);
    else record.set(field, value);
  }
  if (change.approvals !== undefined) {
    for (const field of [...record.keys()]) if (/^(approval|(un)?rejection):/.test(field)) record.delete(field);
    for (const approval of change.approvals) {
      const hash = hashApproval(ledger.connection.platformId, approval);
      record.set(approvalFieldName(approval, hash), toApprovalField(approval));
    }
  }
  const { state } = change;
  if (state === undefined || state === before) return;
  const place = placeOf(ledger, payoutId) ?? redis.call('HINCRBY', [keys.ledger, 'seq', '1']);
  leaveIndexes(ledger, payoutId);
  const { key, isStream } = keys.stateIndex(state);
  if (isStream) redis.call('XADD', [key, `${String(place)}-0`, 'payoutId', payoutId]);
  else redis.call('ZADD', [key, String(place), payoutId]);
}

export function putPayout(ledger: WorldLedger, payout: PayoutChange & Pick<Payout, 'payoutId' | 'state'>) {
  const { redis, connection } = ledger;
  redis.write(connection.keys.payout(payout.payoutId), 'hash').clear();
  leaveIndexes(ledger, payout.payoutId);
  const at = new Date(connection.clock.wallNow()).toISOString();
  alterPayout(ledger, payout.payoutId, { ...payout, history: [{ at, to: payout.state }] });
}

export function removePayout(ledger: WorldLedger, payoutId: string) {
  leaveIndexes(ledger, payoutId);
  ledger.redis.remove(ledger.connection.keys.payout(payoutId));
}

export function freeGatewayId({ redis, connection }: WorldLedger, gatewayId: string) {
  redis.remove(connection.keys.gatewayIdBucket(gatewayId));
}

export function setFields(
  { redis }: WorldLedger,
  key: string,
  fields: Readonly<Record<string, string | number | undefined>>,
) {
  for (const [field, value] of Object.entries(fields)) {
    if (value === undefined) redis.call('HDEL', [key, field]);
    else redis.call('HSET', [key, field, String(value)]);
  }
}

function placeOf({ redis, connection }: WorldLedger, payoutId: string) {
  for (const state of PAYOUT_STATES) {
    const { key, isStream } = connection.keys.stateIndex(state);
    const entries = isStream ? redis.read(key, 'stream')?.entries : undefined;
    const place = isStream
      ? entries?.find(({ fields }) => fields[1] === payoutId)?.id[0]
      : redis.read(key, 'zset')?.get(payoutId);
    if (place !== undefined) return place;
  }
  return undefined;
}

function leaveIndexes({ redis, connection }: WorldLedger, payoutId: string) {
  for (const { key, isStream } of PAYOUT_STATES.map((state) => connection.keys.stateIndex(state)))
    if (!isStream) redis.call('ZREM', [key, payoutId]);
}

const OTHERWISE: ReadonlySet<string> = new Set([
  ...['payoutId', 'createdAt', 'updatedAt', 'requeueCount', 'signed', 'held', 'history', 'approvals', 'metadata'],
]);

function* toFields(change: PayoutChange): Generator<[field: string, value: string | undefined]> {
  const { requeueCount, signed, held, history, metadata } = change;
  for (const [field, value] of Object.entries(change)) {
    if (OTHERWISE.has(field) || typeof value === 'object') continue;
    yield [field, value === undefined ? undefined : String(value)];
  }
  if (requeueCount !== undefined) yield ['round', String(requeueCount)];
  if (change.lateGatewayId !== undefined) yield ['lateAt', '0'];
  const pairs = [
    ...(metadata === undefined ? [] : ['metadata', JSON.stringify(metadata)]),
    ...(signed === undefined ? [] : toSignatureFields(signed)),
    ...(held === undefined ? [] : ['held', toHeldField({ isTampering: false, ...held })]),
  ];
  for (let index = 0; index < pairs.length; index += 2) yield [pairs[index] ?? '', pairs[index + 1]];
  if (history === undefined) return;
  yield ['n', String(history.length)];
  for (const [index, { at, to, by = '', reason = '' }] of history.entries()) {
    const entry = `${STATE_CODE[to]}${Date.parse(at).toString(36)}`;
    yield [`h${index}`, by === '' && reason === '' ? entry : `${entry}\t${by}\t${reason}`];
  }
}
