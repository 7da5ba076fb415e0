import type { SendAttempt } from '../ledger/sender-ledger.js';
import { ControlView, type HeldLines } from './control-view.js';
import {
  identify,
  type JournaledLedger,
  type OutcomeLine,
  type JournalEntry,
  type JournalLine,
  type JournalPeer,
} from './journal-line.js';

/** The newest sends are held whole: with them journal and ledger are compared. */
const HELD_SENDS = 200;

/** Attempt numbers that are looked up among the keys. Where payouts are signed, {@link SentAttempts} has the others too. */
const MAX_ATTEMPTS = 100;

/**
 * What a journal's lines come to. Of the sends of the last two files it holds the keys, of the newest sends all: what is
 * older is on disk, for an adoption to read.
 */
export class JournalView {
  /** Unlike the rest, of all files that were read. */
  readonly control: ControlView;
  #journalId: string | undefined;
  #ledger: JournaledLedger | undefined;
  /** `payoutId attempt` of what was sent, or may have been: the file before, and the present one. */
  #keys: [former: Set<string>, present: Set<string>] = [new Set(), new Set()];
  /** By payoutId, attempt and token, the newest last. */
  readonly #entries = new Map<string, JournalEntry>();

  readonly #peers = new Map<string, JournalPeer>();

  constructor(held?: HeldLines) {
    this.control = new ControlView(held);
  }

  /** Undefined before the header was read. */
  get journalId(): string | undefined {
    return this.#journalId;
  }

  /** Where the journal's ledger stood; undefined while the journal is bound to none. */
  get ledger(): JournaledLedger | undefined {
    return this.#ledger;
  }

  /** Other journals that have sends of the same account. */
  get peers(): readonly JournalPeer[] {
    return [...this.#peers.values()];
  }

  /** Whether the attempt of this number was sent, or may have been, by any sender. */
  knows(payoutId: string, attempt: number): boolean {
    return this.#isRecent(payoutId, attempt) || this.control.attempts.numbersOf(payoutId).includes(attempt);
  }

  /**
   * The numbers below `below` of the payout's attempts that were sent, or may have been, and that no act has cleared, in order:
   * those that `SentAttempts` has of all files, others of the last two.
   */
  unclearedAttempts(payoutId: string, below: number): readonly number[] {
    const { attempts } = this.control;
    const numbers = new Set(attempts.numbersOf(payoutId));
    for (let number = 1; number < MAX_ATTEMPTS; number += 1) {
      if (this.#isRecent(payoutId, number)) numbers.add(number);
    }
    return (
      [...numbers]
        // Not `<`: of a number that is none (NaN), all are below.
        .filter((number) => !(number >= below) && !attempts.isCleared(payoutId, number))
        .sort((one, other) => one - other)
    );
  }

  /** Whether the gateway accepted this attempt, of those that `SentAttempts` has. */
  wasAccepted(payoutId: string, attempt: number): boolean {
    return this.control.attempts.wasAccepted(payoutId, attempt);
  }

  /** Whether another sender journaled the attempt of the same number: it may have been sent. */
  knowsFromAnother({ payoutId, attempt, token }: SendAttempt): boolean {
    return [...this.#entries.values()].some(
      (entry) => entry.payoutId === payoutId && entry.attempt === attempt && entry.token !== token && wasSent(entry),
    );
  }

  /** Whether this very attempt is among the newest entries. */
  has(attempt: SendAttempt): boolean {
    return this.#entries.has(identify(attempt));
  }

  /** The newest entries, the last one at the end. */
  lastSends(limit: number): readonly JournalEntry[] {
    return [...this.#entries.values()].slice(-limit);
  }

  /** The lines that follow are of a new file. */
  startFile(): void {
    this.#keys = [this.#keys[1], new Set()];
  }

  note(line: JournalLine): void {
    this.control.note(line);
    if ('v' in line) this.#journalId = line.journalId;
    else if ('outcome' in line) this.#noteOutcome(line);
    else if ('payoutId' in line) this.#noteSend(line);
    else if ('peers' in line) for (const peer of line.peers) this.#peers.set(peer.journalId, peer);
    else if ('ledgerId' in line) this.#ledger = line;
  }

  #isRecent(payoutId: string, attempt: number): boolean {
    const key = toKey(payoutId, attempt);
    return this.#keys.some((keys) => keys.has(key));
  }

  #noteSend(send: JournalEntry): void {
    this.#keys[1].add(toKey(send.payoutId, send.attempt));
    this.#entries.set(identify(send), send);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= HELD_SENDS) break;
      this.#entries.delete(oldest);
    }
    if (this.#ledger === undefined) return;
    const { ledgerId, epoch, sends, token } = this.#ledger;
    // A sender that was stopped between its begin and this line writes it late: the line of sends has gone on.
    const line = send.sends > sends ? { sends: send.sends, token: send.token } : { sends, token };
    this.#ledger = { ledgerId, epoch: Math.max(epoch, send.epoch), ...line };
  }

  #noteOutcome({ outcome, ...attempt }: OutcomeLine): void {
    const entry = this.#entries.get(identify(attempt));
    if (entry === undefined) return;
    this.#entries.set(identify(attempt), { ...entry, outcome });
    if (outcome.kind !== 'not_sent' || this.knowsFromAnother(entry)) return;
    for (const keys of this.#keys) keys.delete(toKey(entry.payoutId, entry.attempt));
  }
}

/** Whether the request of a journaled send was written, or may have been. */
export function wasSent({ outcome }: JournalEntry): boolean {
  return outcome?.kind !== 'not_sent';
}

function toKey(payoutId: string, attempt: number): string {
  return `${payoutId} ${attempt}`;
}
