import type { SendAttempt } from '../ledger/sender-ledger.js';
import { identify, type OutcomeLine, type SendLine } from './journal-line.js';

const DAY_MS = 24 * 60 * 60 * 1000;

/** For so long after a send its intent may be valid: for seven days, by the clock of a signer that is five minutes ahead. */
export const INTENT_VALID_AT_MOST_MS = 7 * DAY_MS + 5 * 60 * 1000;

/**
 * The attempts of a payout: mostly one, which then takes no object of its own. One that the gateway accepted is negative.
 */
type Numbers = number | readonly number[];

/**
 * The attempts of all files that are kept, by payout: the signed ones, and where payouts have to be signed also those that a
 * process without keys sent, whose intents may be valid still. An attempt stays until it was proved not to be sent, until an
 * operator's act states that it paid nothing, or until its intent is long expired: an expired intent is never sent.
 *
 * At most 86,400 sends a day are held for as long as intents last: about 100 bytes each.
 */
export class SentAttempts {
  /** By the day on which the intents expire, then by payoutId. */
  readonly #days = new Map<number, Map<string, Numbers>>();
  /** Attempts whose outcome may still turn out as not sent, with the day that they are filed under. */
  readonly #undecided = new Map<string, number>();
  /** The attempts that an act cleared, by payoutId. */
  readonly #cleared = new Map<string, Set<number>>();
  readonly #holdsUnsigned: boolean;

  /** @param holdsUnsigned - without keys nothing asks for unsigned attempts of old files, and they take no room */
  constructor(holdsUnsigned = false) {
    this.#holdsUnsigned = holdsUnsigned;
  }

  noteSend({ payoutId, attempt, token, at, signed }: SendLine): void {
    if (signed === undefined && !this.#holdsUnsigned) return;
    for (const number of signed?.clears ?? []) this.#clear(payoutId, number);
    this.#cleared.get(payoutId)?.delete(attempt);
    const key = identify({ payoutId, attempt, token });
    if (this.#undecided.has(key)) return;
    const day = Math.floor((signed?.expiresAt ?? at + INTENT_VALID_AT_MOST_MS) / DAY_MS);
    const attempts = this.#days.get(day) ?? new Map<string, Numbers>();
    this.#days.set(day, attempts);
    const before = attempts.get(payoutId);
    attempts.set(payoutId, before === undefined ? attempt : [...toList(before), attempt]);
    this.#undecided.set(key, day);
  }

  noteOutcome({ outcome, ...attempt }: OutcomeLine): void {
    const day = this.#undecided.get(identify(attempt));
    if (day === undefined || outcome.kind === 'unknown') return;
    this.#undecided.delete(identify(attempt));
    if (outcome.kind === 'not_sent') this.#replaceOne(day, attempt, []);
    if (outcome.kind === 'accepted') this.#replaceOne(day, attempt, [-attempt.attempt]);
  }

  /** The numbers of the attempts that were sent, or may have been, also those that an act cleared. */
  numbersOf(payoutId: string): readonly number[] {
    return this.#of(payoutId).map(Math.abs);
  }

  /** Whether the gateway accepted this attempt. */
  wasAccepted(payoutId: string, attempt: number): boolean {
    return this.#of(payoutId).includes(-attempt);
  }

  #of(payoutId: string): readonly number[] {
    return [...this.#days.values()].flatMap((attempts) => toList(attempts.get(payoutId) ?? []));
  }

  /** Whether an act stated that this attempt paid nothing. */
  isCleared(payoutId: string, attempt: number): boolean {
    return this.#cleared.get(payoutId)?.has(attempt) ?? false;
  }

  /** Forgets the attempts whose intents expired until then (ms): their files are gone, and their intents are refused. */
  forget(expiredUpTo: number): void {
    for (const day of this.#days.keys()) if ((day + 1) * DAY_MS <= expiredUpTo) this.#days.delete(day);
    for (const [key, day] of this.#undecided) if (!this.#days.has(day)) this.#undecided.delete(key);
  }

  #clear(payoutId: string, attempt: number): void {
    const cleared = this.#cleared.get(payoutId) ?? new Set();
    this.#cleared.set(payoutId, cleared.add(attempt));
  }

  /** Another sender may have journaled the same number: that one stays. */
  #replaceOne(day: number, { payoutId, attempt }: SendAttempt, by: readonly number[]): void {
    const attempts = this.#days.get(day);
    const numbers = [...toList(attempts?.get(payoutId) ?? [])];
    const index = numbers.indexOf(attempt);
    if (index !== -1) numbers.splice(index, 1, ...by);
    if (numbers.length === 0) attempts?.delete(payoutId);
    else attempts?.set(payoutId, numbers);
  }
}

function toList(numbers: Numbers): readonly number[] {
  return typeof numbers === 'number' ? [numbers] : numbers;
}
