import { UNKNOWN_IN_FLIGHT_MS } from '../base/settings.js';
import type { SentOutcome } from '../gateway/gateway.js';
import { findForgottenSends } from './adopt-ledger.js';
import { type Confirmation, prepareWrite } from './confirm-write.js';
import { finishSend } from './finish-send.js';
import { ask, type LedgerConnection, pipelined, pipelinedReadable } from './ledger-connection.js';
import { readPayout, readReadable } from './payout-queries.js';
import { type Hold, type Payout, toHeldField, toLine } from './payout.js';
import { readSpends, toSpentField } from './read-spends.js';
import {
  type BeginResult,
  type BeginSend,
  type BreakerRule,
  type EndedPayout,
  type FinishResult,
  type ForgottenSend,
  type KnownJournal,
  type Lease,
  type LeaseRenewal,
  type Objection,
  parseRejection,
  type SendAttempt,
  type SenderLedger,
  type SenderView,
  type UnkeptPayouts,
} from './sender-ledger.js';
import { readSenderView, toHashValue } from './sender-view.js';
import type { SpendEvent } from './control-record.js';
import { KEPT_STATES } from './states.js';

/** How long a heartbeat's result is valid. */
const HEARTBEAT_HOLDS_MS = 5_000;

const SIGNED_BEFORE_LIMIT = 1_000;

/** Its connection must not send a command twice: `connectRedis(url, 'sender')`. */
export class RedisSenderLedger implements SenderLedger {
  readonly #connection: LedgerConnection;
  readonly #confirmation: Confirmation;
  #outbox: { readonly isEmpty: boolean; readonly at: number } | undefined;

  /** @param confirmation - how a begin is known to be kept, before its request is written */
  constructor(connection: LedgerConnection, confirmation: Confirmation) {
    this.#connection = connection;
    this.#confirmation = confirmation;
  }

  async readSender(): Promise<SenderView> {
    return readSenderView(this.#connection);
  }

  /** Whether the last heartbeat showed an empty outbox, which need not be read. False without a recent heartbeat. */
  get isOutboxEmpty(): boolean {
    if (this.#outbox === undefined) return false;
    const { isEmpty, at } = this.#outbox;
    return isEmpty && this.#connection.clock.now() - at < HEARTBEAT_HOLDS_MS;
  }

  async acquireLease(
    owner: string,
    seen: SenderView,
    journal: KnownJournal,
    forgetBefore: number,
  ): Promise<number | undefined> {
    const { lease } = seen;
    const epoch = await this.#connection.run('acquire-lease', {
      owner,
      journalId: journal.journalId,
      journal: toHashValue(journal),
      forgetBefore,
      seenOwner: lease?.owner ?? '',
      seenEpoch: lease?.epoch ?? '',
      seenBeat: lease?.heartbeat ?? '',
      seenReleased: lease === undefined ? '' : Number(lease.released),
      seenSends: seen.sendCount,
      seenLast: seen.last,
    });
    return Number(epoch) === 0 ? undefined : Number(epoch);
  }

  async renewLease({ owner, epoch }: Lease): Promise<LeaseRenewal | undefined> {
    const { run, clock } = this.#connection;
    const askedAt = clock.now();
    const reply = await run('renew-lease', { owner, epoch });
    if (!Array.isArray(reply)) return undefined;
    const [heartbeat, outboxed, objections, unanswered, inFlightMs] = reply as [number, number, number, string, string];
    const [ledgerId, sends, last, acts, keptActs, sending] = (reply as unknown[]).slice(5);
    this.#outbox = { isEmpty: outboxed === 0, at: askedAt };
    const arrivesForMs = unanswered === '' ? 0 : inFlightMs === '' ? UNKNOWN_IN_FLIGHT_MS : Number(inFlightMs);
    const line = { ledgerId: String(ledgerId), sendCount: Number(sends), last: String(last) };
    const glance = { ...line, acts: Number(acts), keptActs: Number(keptActs), sending: Number(sending) };
    return { heartbeat, isObjectedTo: objections > 0, arrivesForMs, glance };
  }

  async releaseLease({ owner, epoch }: Lease): Promise<void> {
    await this.#connection.run('release-lease', { owner, epoch });
  }

  async readPayout(payoutId: string): Promise<Payout | undefined> {
    return readPayout(this.#connection, payoutId);
  }

  async findForgottenSends<Send extends SendAttempt>(sends: readonly Send[]): Promise<readonly ForgottenSend<Send>[]> {
    return findForgottenSends(this.#connection, sends);
  }

  async beginSend(begin: BeginSend): Promise<BeginResult> {
    const { clock, run, keys } = this.#connection;
    const write = await prepareWrite(this.#confirmation, this.#connection);
    const { lease, heartbeat, ledgerId, sendCount, last, acts, payoutId, attempt, token } = begin;
    const { journal, inFlightMs, spend, decisions, audience } = begin;
    const args = {
      ...{ at: clock.wallNow(), ledgerId, owner: lease.owner, epoch: lease.epoch, beat: heartbeat },
      ...{ sends: sendCount, last, acts, payoutId, attempt, token, decisions, audience },
      ...{ journalId: journal.journalId, journal: toHashValue(journal), inFlightMs: Math.ceil(inFlightMs) },
      spend: spend === undefined ? '' : toSpentField(spend.spend),
      spentSince: spend === undefined ? 0 : Math.max(0, Math.floor(spend.since)),
    };
    const reply = await run('begin-send', args, [keys.payout(payoutId)]);
    const rejection = parseRejection('begin-send', reply);
    if (rejection !== undefined) return rejection;
    const [sends, counted, indexed] = reply as unknown[];
    // The journal could not be read again with an invalid number.
    if (![sends, counted].every(Number.isSafeInteger))
      throw new Error(`begin-send replied with ${String(reply)}, not the numbers of sends and acts`);
    await write.confirm();
    return { kind: 'begun', sendCount: Number(sends), acts: Number(counted), isIndexed: indexed === 1 };
  }

  async holdPayout(payoutId: string, attempt: number | undefined, hold: Hold): Promise<boolean> {
    const { clock, run, keys } = this.#connection;
    const args = { at: clock.wallNow(), attempt: attempt ?? '', held: toHeldField(hold) };
    return (await run('hold-payout', args, [keys.payout(payoutId)])) === 1;
  }

  async findSignedBefore(time: number): Promise<readonly string[]> {
    const { redis, keys, clock } = this.#connection;
    const last = String(SIGNED_BEFORE_LIMIT - 1);
    const queued = await ask(redis.zrange(keys.state('queued'), '0', last));
    const payoutIds = [...queued, ...(await ask(redis.zrange(keys.state('held'), '0', last)))];
    if (payoutIds.length === 0) return [];
    const records = await pipelined(this.#connection, (pipeline) => {
      for (const payoutId of payoutIds) pipeline.hmget(keys.payout(payoutId), 'iat', 'exp', 'held');
    });
    const now = clock.wallNow();
    return payoutIds.filter((_, index) => {
      const [iat, exp, held] = records[index] as (string | null)[];
      const waits = index < queued.length || held?.includes('"kind":"policy"') === true;
      return waits && Date.parse(iat ?? '') < time && Date.parse(exp ?? '') > now;
    });
  }

  async readSpends(): Promise<readonly SpendEvent[]> {
    return readSpends(this.#connection);
  }

  async revertSend({ payoutId, attempt, token }: SendAttempt, reason: string): Promise<void> {
    const { clock, run, keys } = this.#connection;
    await run('revert-send', { at: clock.wallNow(), attempt, token, reason: toLine(reason) }, [keys.payout(payoutId)]);
  }

  async finishSend(
    attempt: SendAttempt,
    result: SentOutcome,
    rule: BreakerRule,
    inFlightMs: number,
  ): Promise<FinishResult> {
    return finishSend(this.#connection, { attempt, result, rule, inFlightMs });
  }

  async readSending(): Promise<readonly SendAttempt[]> {
    const { redis, keys } = this.#connection;
    const payoutIds = await ask(redis.zrange(keys.state('sending'), '0', '-1'));
    if (payoutIds.length === 0) return [];
    const { replies: records } = await pipelinedReadable(this.#connection, (pipeline) => {
      for (const payoutId of payoutIds) pipeline.hmget(keys.payout(payoutId), 'attempt', 'tokens');
    });
    return payoutIds.map((payoutId, index) => {
      const [attempt, tokens] = (records[index] ?? []) as (string | null)[];
      const token = tokens?.split(' ').at(-1)?.split('/').at(-1) ?? '';
      return { payoutId, attempt: Number(attempt) || 0, token };
    });
  }

  async markSendsUnknown(
    { owner, epoch }: Lease,
    attempts: readonly SendAttempt[],
    reason: string,
    inFlightMs: number,
  ): Promise<readonly string[] | undefined> {
    const { clock, run, keys } = this.#connection;
    const reply = await run(
      'mark-sends-unknown',
      { at: clock.wallNow(), owner, epoch, reason: toLine(reason), inFlightMs: Math.ceil(inFlightMs) },
      attempts.map(({ payoutId }) => keys.payout(payoutId)),
      attempts.flatMap(({ attempt, token }) => [attempt, token]),
    );
    return parseRejection('mark-sends-unknown', reply) === undefined
      ? (reply as unknown[]).slice(1).map(String)
      : undefined;
  }

  async removeSendingEntries(
    { owner, epoch }: Lease,
    payoutIds: readonly string[],
    reason: string,
  ): Promise<readonly string[] | undefined> {
    const { clock, run, keys } = this.#connection;
    const reply = await run(
      'remove-entries',
      { at: clock.wallNow(), owner, epoch, reason: toLine(reason) },
      payoutIds.map((payoutId) => keys.payout(payoutId)),
    );
    return parseRejection('remove-entries', reply) === undefined
      ? (reply as unknown[]).slice(1).map(String)
      : undefined;
  }

  async readUnkept(limit: number): Promise<UnkeptPayouts> {
    const { redis, keys } = this.#connection;
    const entries = await ask(redis.zrange(keys.unkept, '0', String(limit - 1)));
    const payoutIds = new Set(entries.map((entry) => entry.slice(entry.indexOf(' ') + 1)));
    const payouts = await readReadable(this.#connection, [...payoutIds], () => undefined);
    // An act that a failover forgets was never acknowledged: a journal that knew it would stop the account.
    const write = await prepareWrite(this.#confirmation, this.#connection);
    await this.noteKept(0, []);
    await write.confirm();
    const decided = payouts.filter(({ approvals }) => approvals !== undefined);
    return { entries, ended: payouts.flatMap((payout) => toEnded(payout) ?? []), decided };
  }

  async noteKept(acts: number, entries: readonly string[]): Promise<void> {
    await this.#connection.run('keep-acts', { acts }, [], entries);
  }

  async object(objection: Objection): Promise<void> {
    const line = { ...objection, reason: toLine(objection.reason) };
    const { at, journalId } = objection;
    await this.#connection.run('object-to-ledger', { at, journalId, objection: toHashValue(line) });
  }
}

/** @returns undefined if it was not ended, or an adoption brought back a send of it */
function toEnded({ payoutId, state, history, ...payout }: Payout): EndedPayout | undefined {
  const kept = KEPT_STATES.find((each) => each === state);
  const { at = '', by = '', reason = '' } = history.at(-1) ?? {};
  if (kept === undefined) return undefined;
  const { paymentId, amount, addressTo, symbol } = payout;
  const request = { paymentId, amount, addressTo, ...(symbol !== undefined && { symbol }) };
  return { payoutId, state: kept, at: Date.parse(at), by, reason, request };
}
