import type { LedgerConnection } from './ledger-connection.js';
import { toLine, type ValidPayout } from './payout.js';
import { toRecordFields } from './payout-record.js';
import type { SendAttempt } from './sender-ledger.js';
import { isPayoutState, type PayoutState } from './states.js';

/** A send that a witness outside the ledger remembers, with all that was sent. */
export interface WitnessedSend extends SendAttempt {
  readonly request: Pick<ValidPayout, 'paymentId' | 'amount' | 'addressTo' | 'symbol'>;
}

/** A witnessed send that the ledger does not know of. */
export interface ForgottenSend<Send extends SendAttempt> {
  readonly send: Send;
  /** In which the ledger has the payout; undefined when it has no such payout (any more). */
  readonly state: PayoutState | undefined;
}

/** Who adopts a ledger, and why. */
export interface Adopter {
  readonly by: string;
  readonly reason: string;
}

/** So many sends go over the wire together; each is a short script of its own. */
const STEP = 500;

/** The witnessed sends that the ledger does not know of, in the order given. Changes nothing. */
export async function findForgottenSends<Send extends SendAttempt>(
  connection: LedgerConnection,
  sends: readonly Send[],
): Promise<ForgottenSend<Send>[]> {
  const forgotten: ForgottenSend<Send>[] = [];
  for (const step of inSteps(sends)) {
    const args = step.flatMap(({ payoutId, attempt, epoch }) => [payoutId, attempt, epoch]);
    const reply = (await connection.run('find-forgotten-sends', args)) as (number | string)[];
    for (let index = 0; index < reply.length; index += 2) {
      const send = step[Number(reply[index]) - 1];
      const state = String(reply[index + 1]);
      if (send !== undefined) forgotten.push({ send, state: isPayoutState(state) ? state : undefined });
    }
  }
  return forgotten;
}

/**
 * Makes the ledger know of sends that it may have forgotten: their payouts become `unknown`, or come back as such.
 * Doing it twice changes nothing more.
 * @returns the payouts that became `unknown`
 * @throws RedisUnavailableError; some may have been changed then, and doing it again is safe
 */
export async function adoptSends(
  connection: LedgerConnection,
  sends: readonly WitnessedSend[],
  { by, reason }: Adopter,
): Promise<string[]> {
  const at = connection.clock.wallNow();
  const who = [toLine(by), toLine(reason)];
  const adopted: string[] = [];
  for (const step of inSteps(sends)) {
    const replies = await Promise.all(
      step.map(({ payoutId, attempt, epoch, request }) =>
        connection.run('adopt-send', [at, ...who, payoutId, attempt, epoch, ...toRecordFields(request)]),
      ),
    );
    adopted.push(...step.flatMap(({ payoutId }, index) => (replies[index] === 1 ? [payoutId] : [])));
  }
  return adopted;
}

/**
 * Raises the ledger above everything that the witness knows, so that the two agree again. To be done after
 * {@link adoptSends} alone: from here on a worker with this witness may send.
 * @param witness - the highest epoch, and the number of sends, that the witness knows
 * @returns both as they are in the ledger now
 */
export async function adoptLedger(
  connection: LedgerConnection,
  witness: { readonly epoch: number; readonly sends: number },
  { by, reason }: Adopter,
): Promise<{ epoch: number; sends: number }> {
  const at = connection.clock.wallNow();
  const reply = await connection.run('adopt-ledger', [at, toLine(by), toLine(reason), witness.epoch, witness.sends]);
  const [epoch, sends] = reply as [number, number];
  return { epoch, sends };
}

function* inSteps<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += STEP) yield items.slice(start, start + STEP);
}
