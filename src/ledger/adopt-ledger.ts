import { type Actor, toLine, type ValidPayout } from './payout.js';
import type { SentOutcome } from '../gateway/gateway.js';
import { ConflictError } from '../base/errors.js';
import { ask, type LedgerConnection } from './ledger-connection.js';
import { toHashValue } from './sender-view.js';
import { listPayoutIds } from './payout-queries.js';
import { toRecordFields, toTxhashField } from './payout-record.js';
import {
  type EndedPayout,
  type ForgottenSend,
  type KnownJournal,
  parseRejection,
  type SendAttempt,
} from './sender-ledger.js';
import { isPayoutState, UNSENT_STATES, type PayoutState } from './states.js';

/** A journaled send, with its data and its outcome, if known. */
export interface SendToAdopt extends SendAttempt {
  readonly request: Pick<ValidPayout, 'paymentId' | 'amount' | 'addressTo' | 'symbol'>;
  readonly outcome?: Exclude<SentOutcome, { kind: 'unknown' }> | undefined;
  /** See {@link BeginSend.inFlightMs}. */
  readonly inFlightMs: number;
}

/** A payout whose forgotten send an adoption added to the ledger. */
export interface AdoptedPayout {
  readonly payoutId: string;
  readonly state: PayoutState;
}

/** The highest numbers that journals know. */
export interface HighestKnown {
  readonly epoch: number;
  readonly sendCount: number;
  readonly acts: number;
}

export interface RaisedLedger {
  readonly epoch: number;
  readonly sendCount: number;
  /** The adoption's token, which stands for the sends from here on. */
  readonly token: string;
  /** Objections of journals that were neither read nor given up: while there are any, nothing is sent. */
  readonly objections: number;
}

/** Sends per round trip; a script takes Redis up to 2 ms. */
const STEP = 100;

/** The unknown ones, in order. Changes nothing. */
export async function findForgottenSends<Send extends SendAttempt>(
  connection: LedgerConnection,
  sends: readonly Send[],
): Promise<ForgottenSend<Send>[]> {
  const { keys } = connection;
  const forgotten: ForgottenSend<Send>[] = [];
  for (const step of inSteps(sends)) {
    const args = step.flatMap(({ attempt, token }) => [attempt, token]);
    const records = step.flatMap(({ payoutId }) => [keys.payout(payoutId), keys.removedBucket(payoutId)]);
    const reply = (await connection.run('find-forgotten-sends', {}, records, args)) as (number | string)[];
    for (let index = 0; index < reply.length; index += 2) {
      const send = step[Number(reply[index]) - 1];
      const state = String(reply[index + 1]);
      if (send !== undefined) forgotten.push({ send, state: isPayoutState(state) ? state : undefined });
    }
  }
  return forgotten;
}

/**
 * Makes the ledger know sends that it may have forgotten. A payout gets its journaled outcome, or becomes `unknown`
 * without one. Repeating changes nothing more.
 * @returns the changed payouts
 * @throws RedisUnavailableError if some may have been changed; repeating is safe
 */
export async function adoptSends(
  connection: LedgerConnection,
  sends: readonly SendToAdopt[],
  actor: Actor,
): Promise<AdoptedPayout[]> {
  const adopted: AdoptedPayout[] = [];
  for (const step of inSteps(sends)) {
    const replies = await Promise.all(step.map(async (send) => adoptSend(connection, send, actor)));
    step.forEach(({ payoutId }, index) => {
      const state = String(replies[index]);
      if (isPayoutState(state)) adopted.push({ payoutId, state });
    });
  }
  return adopted;
}

async function adoptSend(
  { run, keys, clock }: LedgerConnection,
  { payoutId, attempt, token, request, outcome, inFlightMs }: SendToAdopt,
  { by, reason }: Actor,
): Promise<unknown> {
  const gatewayId = outcome?.kind === 'accepted' ? outcome.gatewayId : '';
  const detail = outcome?.kind === 'rejected' ? toLine(outcome.message) : gatewayId;
  const args = {
    ...{ at: clock.wallNow(), by: toLine(by), reason: toLine(reason), inFlightMs: Math.ceil(inFlightMs) },
    ...{ attempt, token, outcome: outcome?.kind ?? '', detail },
    txhash: outcome?.kind === 'accepted' ? toTxhashField(outcome) : '',
  };
  const bucket = gatewayId === '' ? [] : [keys.gatewayIdBucket(gatewayId)];
  const touched = [keys.payout(payoutId), keys.removedBucket(payoutId), ...bucket];
  return run('adopt-send', args, touched, toRecordFields(request));
}

/**
 * Ends payouts again that were cancelled or written off, and that the ledger may have forgotten as such. Call it after
 * {@link adoptSends}: what may have been paid stays open. Repeating changes nothing more.
 * @returns the changed payouts
 * @throws RedisUnavailableError if some may have been changed; repeating is safe
 */
export async function putBackEnded(
  { run, keys, clock }: LedgerConnection,
  ended: readonly EndedPayout[],
  { by, reason }: Actor,
): Promise<AdoptedPayout[]> {
  const putBack: AdoptedPayout[] = [];
  for (const step of inSteps(ended)) {
    const replies = await Promise.all(
      step.map(async ({ payoutId, state, request, ...first }) => {
        const why = toLine(
          `${state.replace('_', ' ')} before${first.by === '' ? '' : ` by ${first.by}`}: ${first.reason}; ${reason}`,
        );
        const args = { at: clock.wallNow(), by: toLine(by), reason: why, to: state };
        const touched = [keys.payout(payoutId), keys.removedBucket(payoutId)];
        return run('put-back-ended', args, touched, toRecordFields(request));
      }),
    );
    step.forEach(({ payoutId }, index) => {
      const state = String(replies[index]);
      if (isPayoutState(state)) putBack.push({ payoutId, state });
    });
  }
  return putBack;
}

/**
 * Turns every payout that may be sent again into `unknown`: each may be a send that no journal has any more.
 * @param inFlightMs - how long its request may still be on its way
 * @returns how many were changed
 * @throws RedisUnavailableError; repeating is safe
 */
export async function holdSendablePayouts(
  connection: LedgerConnection,
  actor: Actor,
  inFlightMs: number,
): Promise<number> {
  let held = 0;
  for (const state of UNSENT_STATES) held += await holdPayouts(connection, state, actor, inFlightMs);
  return held;
}

async function holdPayouts(
  connection: LedgerConnection,
  state: PayoutState,
  { by, reason }: Actor,
  inFlightMs: number,
): Promise<number> {
  const { run, keys, clock } = connection;
  let [held, heldBefore] = [0, 0];
  let cursor: string | undefined;
  for (;;) {
    // By page, because an index may keep payouts whose records someone deleted.
    const { payoutIds, next } = await listPayoutIds(connection, { state, limit: STEP, ...(cursor && { cursor }) });
    const actor = { by: toLine(by), reason: toLine(reason) };
    const args = { at: clock.wallNow(), ...actor, inFlightMs: Math.ceil(inFlightMs) };
    const records = payoutIds.map((payoutId) => keys.payout(payoutId));
    if (records.length > 0) held += Number(await run('mark-unsent-unknown', args, records));
    cursor = next;
    if (next !== undefined) continue;
    // A payout that entered meanwhile may be behind the cursor.
    if (held === heldBefore) return held;
    heldBefore = held;
  }
}

export async function countSendablePayouts({ redis, keys }: LedgerConnection): Promise<number> {
  const counts = await Promise.all(UNSENT_STATES.map(async (state) => ask(redis.zcard(keys.state(state)))));
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * Raises the ledger above everything that the journals know. Ends the objections of journals that were read or given
 * up. Call it after {@link adoptSends}: from here on a worker may send.
 * @param highest - the highest epoch, and numbers of sends and acts, that the journals know
 * @param token - for the sends that begin here; unique
 * @param inFlightMs - how long a request may still be on its way, for the next sender
 * @param journals - those read, with their last entries, and the ids of those given up
 * @param bookmarks - of {@link readBookmark}: what this ledger must still have
 * @param act - the operator's signed act, as JSON
 * @throws ConflictError if Redis came back older since a bookmark: the findings are about another state
 */
export async function adoptLedger(
  { run, clock }: LedgerConnection,
  highest: HighestKnown,
  { token, inFlightMs }: { readonly token: string; readonly inFlightMs: number },
  journals: { readonly read: readonly KnownJournal[]; readonly givenUp: readonly string[] },
  { by, reason }: Actor,
  bookmarks: readonly string[] = [],
  act = '',
): Promise<RaisedLedger> {
  const { read, givenUp } = journals;
  const entries = read.flatMap((journal) => [journal.journalId, toHashValue(journal)]);
  const args = {
    ...{ at: clock.wallNow(), by: toLine(by), reason: toLine(reason), act },
    ...{ epoch: highest.epoch, sends: highest.sendCount, acts: highest.acts, token },
    ...{ inFlightMs: Math.ceil(inFlightMs), bookmarks: bookmarks.join(' '), journals: read.length },
  };
  const reply = await run('adopt-ledger', args, [], [...entries, ...givenUp]);
  if (parseRejection('adopt-ledger', reply) !== undefined) throw cameBackOlder();
  const [epoch, sendCount, objections] = reply as [number, number, number];
  return { epoch, sendCount, token, objections };
}

function cameBackOlder(): ConflictError {
  return new ConflictError(
    'Redis came back older while its ledger was adopted: it was not adopted. Wait until Redis is stable, have the application enqueue again what it has open, then run the same command',
    ['ledger'],
  );
}

/** The ledger's last event, which a ledger that came back older has lost. @returns its id, or '' without one */
export async function readBookmark({ redis, keys }: LedgerConnection): Promise<string> {
  const [last] = await ask(redis.xrevrange(keys.events, '+', '-', 'COUNT', 1));
  return last?.[0] ?? '';
}

function* inSteps<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += STEP) yield items.slice(start, start + STEP);
}
