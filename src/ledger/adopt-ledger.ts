import type { Actor } from './actor.js';
import type { SentOutcome } from '../gateway/withdraw-gateway.js';
import { ConflictError } from '../errors.js';
import { ask, type LedgerConnection } from './ledger-connection.js';
import { toHashValue } from './objections.js';
import { toLine, type ValidPayout } from './payout.js';
import { listPayoutIds } from './payout-queries.js';
import { toRecordFields } from './payout-record.js';
import { parseRejection } from './script-rejection.js';
import type { ForgottenSend, KnownJournal, SendAttempt } from './sender-ledger.js';
import { isPayoutState, UNSENT_STATES, type PayoutState } from './states.js';

/** A send that a journal has, with all that was sent, and what came of it where that is known. */
export interface SendToAdopt extends SendAttempt {
  readonly request: Pick<ValidPayout, 'paymentId' | 'amount' | 'addressTo' | 'symbol'>;
  readonly outcome?: Exclude<SentOutcome, { kind: 'unknown' }> | undefined;
}

/** A payout that an adoption changed, and the state into which it came. */
export interface AdoptedPayout {
  readonly payoutId: string;
  readonly state: PayoutState;
}

/** An actor's reason for payouts that become `unknown`. */
export interface Doubt extends Actor {
  /** For how long their requests may still be on their way, in ms. */
  readonly doubtMs: number;
}

/** The ledger above everything that the journals have. */
export interface RaisedLedger {
  readonly epoch: number;
  readonly sendCount: number;
  /** The token of the adoption, which stands for the line of sends from here on. */
  readonly token: string;
  /** Objections of journals that were neither read nor given up: nothing is sent while there are any. */
  readonly objections: number;
}

/** Sends per round trip; each is a short script of its own, or a part of one that takes Redis 2 ms. */
const STEP = 100;

/** The sends, of those given, that the ledger does not know of, in the order given. Changes nothing. */
export async function findForgottenSends<Send extends SendAttempt>(
  connection: LedgerConnection,
  sends: readonly Send[],
): Promise<ForgottenSend<Send>[]> {
  const { keys } = connection;
  const forgotten: ForgottenSend<Send>[] = [];
  for (const step of inSteps(sends)) {
    const args = step.flatMap(({ attempt, token }) => [attempt, token]);
    const records = step.flatMap(({ payoutId }) => [keys.payout(payoutId), keys.removedBucket(payoutId)]);
    const reply = (await connection.run('find-forgotten-sends', args, records)) as (number | string)[];
    for (let index = 0; index < reply.length; index += 2) {
      const send = step[Number(reply[index]) - 1];
      const state = String(reply[index + 1]);
      if (send !== undefined) forgotten.push({ send, state: isPayoutState(state) ? state : undefined });
    }
  }
  return forgotten;
}

/**
 * Makes the ledger know of sends that it may have forgotten. A payout comes back as what its journaled outcome says,
 * and without one as `unknown`. Doing it twice changes nothing more.
 * @returns the payouts that were changed
 * @throws RedisUnavailableError some may have been changed then, and doing it again is safe
 */
export async function adoptSends(
  connection: LedgerConnection,
  sends: readonly SendToAdopt[],
  doubt: Doubt,
): Promise<AdoptedPayout[]> {
  const adopted: AdoptedPayout[] = [];
  for (const step of inSteps(sends)) {
    const replies = await Promise.all(step.map(async (send) => adoptSend(connection, send, doubt)));
    step.forEach(({ payoutId }, index) => {
      const state = String(replies[index]);
      if (isPayoutState(state)) adopted.push({ payoutId, state });
    });
  }
  return adopted;
}

async function adoptSend(
  { run, keys, clock }: LedgerConnection,
  { payoutId, attempt, token, request, outcome }: SendToAdopt,
  { by, reason, doubtMs }: Doubt,
): Promise<unknown> {
  const txhash = outcome?.kind === 'accepted' ? outcome.txhash : '';
  const detail = outcome?.kind === 'rejected' ? toLine(outcome.message) : txhash;
  return run(
    'adopt-send',
    [
      clock.wallNow(),
      toLine(by),
      toLine(reason),
      Math.ceil(doubtMs),
      attempt,
      token,
      outcome?.kind ?? '',
      detail,
      ...toRecordFields(request),
    ],
    [keys.payout(payoutId), keys.removedBucket(payoutId), ...(txhash === '' ? [] : keys.txhashBuckets(txhash))],
  );
}

/**
 * Turns every payout that may be sent again into `unknown`: each may be one of the sends that no journal has any more.
 * @returns how many were changed
 * @throws RedisUnavailableError doing it again is safe
 */
export async function holdSendablePayouts(connection: LedgerConnection, doubt: Doubt): Promise<number> {
  let held = 0;
  for (const state of UNSENT_STATES) held += await holdPayouts(connection, state, doubt);
  return held;
}

async function holdPayouts(
  connection: LedgerConnection,
  state: PayoutState,
  { by, reason, doubtMs }: Doubt,
): Promise<number> {
  const { run, keys, clock } = connection;
  let [held, heldBefore] = [0, 0];
  let cursor: string | undefined;
  for (;;) {
    // Page by page: an index may name payouts whose records somebody deleted, and these stay in it.
    const { payoutIds, next } = await listPayoutIds(connection, { state, limit: STEP, ...(cursor && { cursor }) });
    const args = [clock.wallNow(), toLine(by), toLine(reason), Math.ceil(doubtMs)];
    const records = payoutIds.map((payoutId) => keys.payout(payoutId));
    if (records.length > 0) held += Number(await run('hold-payouts', args, records));
    cursor = next;
    if (next !== undefined) continue;
    // One that came into the index meanwhile may have a place that was passed.
    if (held === heldBefore) return held;
    heldBefore = held;
  }
}

/** How many payouts {@link holdSendablePayouts} would change. */
export async function countSendablePayouts({ redis, keys }: LedgerConnection): Promise<number> {
  const counts = await Promise.all(UNSENT_STATES.map(async (state) => ask(redis.zcard(keys.state(state)))));
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * Raises the ledger above everything that the journals know, and ends the objections of the journals that were read or
 * are given up. To be done after {@link adoptSends} alone: from here on a worker may send.
 * @param highest - the highest epoch, and the highest number of a send, that the journals know
 * @param token - for the line of sends that begins here; unique
 * @param journals - those that were read, with their last entries, and the ids of those given up
 * @param bookmarks - of {@link readBookmark}: what this ledger must still have
 * @param act - the operator's signed act, as JSON
 * @throws ConflictError when Redis came back older since a bookmark: what was found out is about another state
 */
export async function adoptLedger(
  { run, clock }: LedgerConnection,
  highest: { readonly epoch: number; readonly sendCount: number },
  token: string,
  journals: { readonly read: readonly KnownJournal[]; readonly givenUp: readonly string[] },
  { by, reason }: Actor,
  bookmarks: readonly string[] = [],
  act = '',
): Promise<RaisedLedger> {
  const { read, givenUp } = journals;
  const entries = read.flatMap((journal) => [journal.journalId, toHashValue(journal)]);
  const reply = await run('adopt-ledger', [
    clock.wallNow(),
    toLine(by),
    toLine(reason),
    act,
    highest.epoch,
    highest.sendCount,
    token,
    bookmarks.join(' '),
    read.length,
    ...entries,
    ...givenUp,
  ]);
  if (parseRejection(reply)?.kind === 'came_back_older') throw cameBackOlder();
  const [epoch, sendCount, objections] = reply as [number, number, number];
  return { epoch, sendCount, token, objections };
}

/** Why an adoption ends without having let anything be sent. */
export function cameBackOlder(): ConflictError {
  return new ConflictError(
    'Redis came back older while its ledger was adopted: it was not adopted. Wait until Redis is stable, have the application enqueue again what it has open, then run the same command',
    ['ledger'],
  );
}

/**
 * The last event of the ledger. One that came back older has lost it.
 * @returns its id; '' where there is none
 * @throws RedisUnavailableError
 */
export async function readBookmark({ redis, keys }: LedgerConnection): Promise<string> {
  const [last] = await ask(redis.xrevrange(keys.events, '+', '-', 'COUNT', 1));
  return last?.[0] ?? '';
}

function* inSteps<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += STEP) yield items.slice(start, start + STEP);
}
