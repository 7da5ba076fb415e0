import { createHash } from 'node:crypto';
import { ConflictError, NotFoundError } from '../base/errors.js';
import { type Actor, type Payout, toLine } from '../ledger/payout.js';
import { wrongStateError } from '../ledger/payout-ledger.js';
import { findPayouts, readEach } from '../ledger/payout-queries.js';
import { paymentKey } from '../ledger/same-payment.js';
import { parseRejection } from '../ledger/sender-ledger.js';
import type { LedgerAccess } from '../queues/open-ledger.js';

/** A cancellation is undone within this time. */
export const UNDO_WITHIN_MS = 3_600_000;

const SUFFIX = '.again';
const LONGEST_ID = 64;
const DIGEST = 16;

/** The one payoutId under which a cancelled payout may be paid after all, so that a repetition pays nothing twice. */
export function undoIdOf(payoutId: string): string {
  if (payoutId.length + SUFFIX.length <= LONGEST_ID) return payoutId + SUFFIX;
  const digest = createHash('sha256').update(payoutId).digest('hex').slice(0, DIGEST);
  return `${payoutId.slice(0, LONGEST_ID - SUFFIX.length - DIGEST - 1)}.${digest}${SUFFIX}`;
}

/** Whether it was cancelled, last of all, for this reason. @param reason - undefined for any */
export function isCancelledFor({ history }: Payout, reason: string | undefined): boolean {
  return reason === undefined || history.at(-1)?.reason === toLine(reason);
}

/**
 * Accepts the payments of cancelled payouts once more, each under the id of {@link undoIdOf}, and adds their jobs.
 * @param isOneAct - recorded as one act of the operator
 * @returns for each payout, in order, undefined if it was accepted, now or before, or the NotFoundError or ConflictError
 * @throws RedisUnavailableError if the outcome is unknown; asking again is safe
 */
export async function undoCancels(
  account: LedgerAccess,
  payoutIds: readonly string[],
  actor: Actor,
  isOneAct: boolean,
): Promise<(Error | undefined)[]> {
  const { ledger } = account;
  const { relay } = await account.openQueues();
  const { payouts } = await readEach(ledger.connection, payoutIds);
  const found = new Map(payouts.map((payout) => [payout.payoutId, payout]));
  const twins = await findTwins(account, payouts);
  const errors: (Error | undefined)[] = [];
  for (const payoutId of payoutIds) {
    const payout = found.get(payoutId);
    errors.push(payout === undefined ? notFound(payoutId) : await undoOne(account, payout, twins, actor, isOneAct));
  }
  const accepted = payoutIds.filter((_, index) => errors[index] === undefined).map(undoIdOf);
  await relay.tryDeliver('queued', accepted);
  return errors;
}

const notFound = (payoutId: string): NotFoundError => new NotFoundError(`Payout ${payoutId} not found`);

async function undoOne(
  { ledger }: LedgerAccess,
  payout: Payout,
  twins: readonly Payout[],
  { by, reason }: Actor,
  isOneAct: boolean,
): Promise<Error | undefined> {
  const { run, keys, clock } = ledger.connection;
  const { payoutId, batch = '', updatedAt } = payout;
  const again = undoIdOf(payoutId);
  const isTwin = (other: Payout): boolean =>
    other.createdAt > updatedAt && !other.payoutId.endsWith(SUFFIX) && paymentKey(other) === paymentKey(payout);
  const twin = twins.find(isTwin);
  if (twin !== undefined) return new ConflictError(`Payout ${payoutId} ${describeTwin(twin)}`, ['payoutId']);
  const now = clock.wallNow();
  const since = now - UNDO_WITHIN_MS;
  const args = { at: now, by: toLine(by), reason: toLine(reason), oneAct: Number(isOneAct), batch, since };
  const touched = [keys.payout(payoutId), keys.payout(again), keys.removedBucket(again)];
  const reply = await ledger.confirmed(async () =>
    run('undo-cancel', args, batch === '' ? touched : [...touched, keys.batch(batch)]),
  );
  const rejection = parseRejection('undo-cancel', reply);
  if (rejection === undefined) return undefined;
  if (rejection.kind === 'not_found') return notFound(payoutId);
  if (rejection.kind === 'wrong_state') return wrongStateError(payoutId, rejection.state, 'cancelled', 'queued');
  return new ConflictError(`Payout ${payoutId} ${WHY_NOT[rejection.why] ?? WHY_NOT.changed}`, ['state']);
}

const OTHERWISE = 'If it is still to be paid, enqueue it under a new payoutId';

const WHY_NOT: Readonly<Record<string, string>> & { readonly changed: string } = {
  taken: 'is not undone: the id that it would get has another payout, or had one',
  begun: `is not undone: an attempt of it was begun, so it may have been paid. Ask the gateway first. ${OTHERWISE}`,
  rejected: 'is not undone: a person rejected it',
  signed:
    'is not undone: its signature is for its own id. Have its application enqueue and sign it under a new payoutId',
  by_application: 'is not undone: its application cancelled it, and only that may enqueue it again',
  restored: `is not undone: an adoption restored its end, so this ledger does not know what came before. ${OTHERWISE}`,
  late: `is not undone: it was cancelled more than an hour ago. ${OTHERWISE}`,
  objected: 'is not undone: a send journal contradicts this ledger, and may know a send of it. End that first',
  unkept:
    'is not undone yet: no worker has the cancellation on its disk, which proves that it knows no send of the payout. Start a worker, or wait two seconds, then ask again',
  changed: 'is not undone: it changed meanwhile. Look at it again',
};

function describeTwin({ payoutId, state }: Payout): string {
  return `is not undone: since it was cancelled, ${payoutId} (${state}) was accepted with the same address, amount and reference, and may be the same payment. ${OTHERWISE}`;
}

const PAGE = 1_000;

/** Payouts accepted since the first of these was cancelled that may be paid. An hour has some 3,600. */
async function findTwins(
  { ledger: { connection } }: LedgerAccess,
  given: readonly Payout[],
): Promise<readonly Payout[]> {
  const wanted = new Set(given.map(paymentKey));
  const since = Math.max(
    connection.clock.wallNow() - UNDO_WITHIN_MS,
    Math.min(...given.map(({ updatedAt }) => Date.parse(updatedAt))),
  );
  const twins: Payout[] = [];
  let after: string | undefined;
  do {
    const page = await findPayouts(connection, { since }, PAGE, after);
    for (const payout of page.payouts) {
      if (payout.state !== 'cancelled' && payout.state !== 'failed' && wanted.has(paymentKey(payout)))
        twins.push(payout);
    }
    after = page.next;
  } while (after !== undefined);
  return twins;
}
