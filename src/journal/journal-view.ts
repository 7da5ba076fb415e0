import type { SendAttempt } from '../ledger/sender-ledger.js';
import type { RateAnchor, SpendEvent } from '../ledger/control-record.js';
import { ControlView, type HeldLines } from './control-view.js';
import {
  identify,
  type JournaledLedger,
  type JournalEntry,
  type JournalLine,
  type JournalPeer,
  type OutcomeLine,
  type RejectionNote,
} from './journal-line.js';
import type { ControlJournal } from './control-journal.js';
import type { SendJournal } from './send-journal.js';

/** The newest sends are held whole, to compare journal and ledger. */
const HELD_SENDS = 200;

/** Limit of attempt numbers looked up in the keys. With signing, {@link SentAttempts} also has older ones. */
const MAX_ATTEMPTS = 100;

/**
 * State from a journal's lines. It holds the keys of sends in the last two files, and the newest sends whole. Older
 * sends are on disk, for an adoption to read.
 */
export class JournalView {
  /** Covers all files read, unlike the rest. */
  readonly control: ControlView;
  #journalId: string | undefined;
  #ledger: JournaledLedger | undefined;
  /** `payoutId attempt` of what was or may have been sent. */
  #keys: [former: Set<string>, present: Set<string>] = [new Set(), new Set()];
  readonly #entries = new Map<string, JournalEntry>();

  readonly #peers = new Map<string, JournalPeer>();

  constructor(held?: HeldLines) {
    this.control = new ControlView(held);
  }

  get journalId(): string | undefined {
    return this.#journalId;
  }

  get ledger(): JournaledLedger | undefined {
    return this.#ledger;
  }

  get peers(): readonly JournalPeer[] {
    return [...this.#peers.values()];
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.#isRecent(payoutId, attempt) || this.control.attempts.numbersOf(payoutId).includes(attempt);
  }

  unclearedAttempts(payoutId: string, below: number): readonly number[] {
    const { attempts } = this.control;
    const numbers = new Set(attempts.numbersOf(payoutId));
    for (let number = 1; number < MAX_ATTEMPTS; number += 1) {
      if (this.#isRecent(payoutId, number)) numbers.add(number);
    }
    return (
      [...numbers]
        // Not `<`: if the number is NaN, all are below.
        .filter((number) => !(number >= below) && !attempts.isCleared(payoutId, number))
        .sort((one, other) => one - other)
    );
  }

  wasAccepted(payoutId: string, attempt: number): boolean {
    return this.control.attempts.wasAccepted(payoutId, attempt);
  }

  knowsFromAnother({ payoutId, attempt, token }: SendAttempt): boolean {
    return [...this.#entries.values()].some(
      (entry) => entry.payoutId === payoutId && entry.attempt === attempt && entry.token !== token && wasSent(entry),
    );
  }

  has(attempt: SendAttempt): boolean {
    return this.#entries.has(identify(attempt));
  }

  lastSends(limit: number): readonly JournalEntry[] {
    return [...this.#entries.values()].slice(-limit);
  }

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
    // A sender stopped between its begin and this line writes it late. The send counter has moved on by then.
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

export function wasSent({ outcome }: JournalEntry): boolean {
  return outcome?.kind !== 'not_sent';
}

function toKey(payoutId: string, attempt: number): string {
  return `${payoutId} ${attempt}`;
}

type Viewed = Pick<
  SendJournal,
  'ledger' | 'acts' | 'peers' | 'knows' | 'knowsFromAnother' | 'lastSends' | 'bornAt' | 'knownReplicas' | 'hasEnded'
> &
  Pick<
    ControlJournal,
    | 'prunedUpTo'
    | 'pausedAt'
    | 'pausedReason'
    | 'unclearedAttempts'
    | 'wasAccepted'
    | 'hasAct'
    | 'seenAt'
    | 'rateAnchors'
    | 'rejectionsOf'
    | 'takeSpends'
  >;

/** The part of a send journal that answers from memory. */
export abstract class ViewedJournal implements Viewed {
  protected abstract get view(): JournalView;

  get ledger(): JournaledLedger | undefined {
    return this.view.ledger;
  }

  get acts(): number {
    return this.view.control.actCount;
  }

  hasEnded(payoutId: string): boolean {
    return this.view.control.hasEnded(payoutId);
  }

  get peers(): readonly JournalPeer[] {
    return this.view.peers;
  }

  get bornAt(): number {
    return this.view.control.bornAt;
  }

  get knownReplicas(): number {
    return this.view.control.knownReplicas;
  }

  get prunedUpTo(): number {
    return this.view.control.prunedUpTo;
  }

  get pausedAt(): number | undefined {
    return this.view.control.pause?.at;
  }

  get pausedReason(): string | undefined {
    return this.view.control.pause?.reason;
  }

  knows(payoutId: string, attempt: number): boolean {
    return this.view.knows(payoutId, attempt);
  }

  knowsFromAnother(attempt: SendAttempt): boolean {
    return this.view.knowsFromAnother(attempt);
  }

  wasAccepted(payoutId: string, attempt: number): boolean {
    return this.view.wasAccepted(payoutId, attempt);
  }

  unclearedAttempts(payoutId: string, below: number): readonly number[] {
    return this.view.unclearedAttempts(payoutId, below);
  }

  seenAt(walletAndTag: string): number | undefined {
    return this.view.control.seenAt(walletAndTag);
  }

  get rateAnchors(): ReadonlyMap<number, RateAnchor> {
    return this.view.control.rateAnchors;
  }

  rejectionsOf(payoutId: string): readonly RejectionNote[] {
    return this.view.control.rejectionsOf(payoutId);
  }

  takeSpends(): readonly SpendEvent[] {
    return this.view.control.takeSpends();
  }

  hasAct(act: string): boolean {
    return this.view.control.hasAct(act);
  }

  lastSends(limit: number): readonly JournalEntry[] {
    return this.view.lastSends(limit);
  }
}
