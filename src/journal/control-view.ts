import type { RateAnchor, SpendEvent } from '../ledger/control-record.js';
import {
  type ActsLine,
  type CompleteNote,
  identify,
  type JournalLine,
  type JournalMarks,
  type OutcomeLine,
  type PausedLine,
  type RatesLine,
  type RejectedLine,
  type RejectionNote,
  type ReplicasLine,
  type ReplicasNote,
  type SeenLine,
  type SendLine,
} from './journal-line.js';
import { SentAttempts } from './journal-retention.js';

/** The newest addresses, about 5 MB in each file. */
const MAX_SEEN = 100_000;
const SEEN_PER_LINE = 500;
/** About 10 MB. */
const MAX_ENDED = 100_000;

export interface HeldLines {
  readonly unsigned?: boolean | undefined;
  readonly spends?: boolean | undefined;
}

/** State of all kept files about signatures and operators' decisions. */
export class ControlView {
  readonly attempts: SentAttempts;
  #bornAt: number | undefined;
  #complete: CompleteNote | undefined;
  #prunedUpTo = 0;
  /** As {@link prunedUpTo}, for present but unread files. */
  #unreadUpTo = 0;
  #pause: PausedLine['paused'] | undefined;
  #replicas: ReplicasNote | undefined;
  readonly #acts = new Set<string>();
  /** Wall clock, ms, by `walletAndTagKey`. */
  readonly #seenAt = new Map<string, number>();
  readonly #rateAnchors = new Map<number, RateAnchor>();
  /** Those that stand, by payoutId. */
  readonly #rejections = new Map<string, readonly RejectionNote[]>();
  /** A stopped process may write late that a rejection was verified. */
  readonly #unrejected = new Set<string>();
  readonly #spends: SpendLog | undefined;
  #actCount = 0;
  /** The newest, since an adoption reads all of them from disk. */
  readonly #ended = new Set<string>();

  constructor({ unsigned = false, spends = false }: HeldLines = {}) {
    this.attempts = new SentAttempts(unsigned);
    this.#spends = spends ? new SpendLog() : undefined;
  }

  /** Empty unless spends are held. */
  takeSpends(): readonly SpendEvent[] {
    return this.#spends?.take() ?? [];
  }

  seenAt(walletAndTag: string): number | undefined {
    return this.#seenAt.get(walletAndTag);
  }

  /** See ControlJournal. */
  get bornAt(): number {
    return this.#complete === undefined ? (this.#bornAt ?? 0) : 0;
  }

  get prunedUpTo(): number {
    return Math.max(this.#prunedUpTo, this.#unreadUpTo);
  }

  get pause(): PausedLine['paused'] | undefined {
    return this.#pause;
  }

  /** See ControlJournal. */
  get knownReplicas(): number {
    return this.#replicas?.count ?? 0;
  }

  replicasLines(): ReplicasLine[] {
    return this.#replicas === undefined ? [] : [{ replicas: this.#replicas }];
  }

  /** @param expiresAt - latest expiry of the intents that the unread file names, ms */
  skip(expiresAt: number): void {
    this.#unreadUpTo = Math.max(expiresAt, this.#unreadUpTo);
  }

  /** For a new file, because the old one may be removed. */
  seenLines(): SeenLine[] {
    const all = [...this.#seenAt];
    const lines: SeenLine[] = [];
    for (let from = 0; from < all.length; from += SEEN_PER_LINE) {
      const part = all.slice(from, from + SEEN_PER_LINE);
      // The latest time is the safe one: it holds longer.
      const at = Math.max(...part.map(([, seenAt]) => seenAt));
      lines.push({ seen: { at, addresses: part.map(([address]) => address) } });
    }
    return lines;
  }

  get rateAnchors(): ReadonlyMap<number, RateAnchor> {
    return this.#rateAnchors;
  }

  ratesLines(): RatesLine[] {
    return [...this.#rateAnchors].map(([currency, { rate, at }]) => ({ rates: { at, usd: { [currency]: rate } } }));
  }

  rejectionsOf(payoutId: string): readonly RejectionNote[] {
    return this.#rejections.get(payoutId) ?? [];
  }

  rejectedLines(): RejectedLine[] {
    return [...this.#rejections.values()].flat().map((rejected) => ({ rejected }));
  }

  /** @param now - wall clock, ms: the birth of a journal that has none yet */
  marksAt(now: number): JournalMarks {
    return {
      bornAt: this.#bornAt ?? now,
      ...(this.#complete === undefined ? {} : { complete: this.#complete }),
      ...(this.#prunedUpTo === 0 ? {} : { prunedUpTo: this.#prunedUpTo }),
    };
  }

  /** How many acts of people the ledger counted. */
  get actCount(): number {
    return this.#actCount;
  }

  hasEnded(payoutId: string): boolean {
    return this.#ended.has(payoutId);
  }

  hasAct(act: string): boolean {
    return this.#acts.has(act);
  }

  note(line: JournalLine): void {
    if ('v' in line) this.#noteMarks(line);
    else if ('complete' in line) this.#complete = line.complete;
    else if ('paused' in line) this.#pause = line.paused;
    else if ('resumed' in line) {
      // A stopped process may write late that an act resumed the account. An act ends only one pause.
      if (!this.#acts.has(line.resumed.act)) this.#pause = undefined;
      this.#acts.add(line.resumed.act);
    } else if ('seen' in line) this.#noteSeen(line.seen);
    else if ('acts' in line) this.#noteActs(line);
    else if ('rejected' in line) this.#noteRejected(line);
    else if ('unrejected' in line) this.#noteUnrejected(line.unrejected);
    else if ('rates' in line) this.#noteRates(line);
    else if ('replicas' in line) this.#noteReplicas(line.replicas);
    else if ('outcome' in line) {
      this.attempts.noteOutcome(line);
      this.#spends?.noteOutcome(line);
    } else if ('payoutId' in line) {
      this.attempts.noteSend(line);
      this.#spends?.noteSend(line);
      if (line.signed?.act !== undefined) this.#acts.add(line.signed.act);
      this.#actCount = Math.max(line.knownActs ?? 0, this.#actCount);
    }
  }

  #noteActs({ acts: { count, ended } }: ActsLine): void {
    this.#actCount = Math.max(count, this.#actCount);
    for (const { payoutId } of ended) this.#ended.add(payoutId);
    for (const payoutId of this.#ended) {
      if (this.#ended.size <= MAX_ENDED) break;
      this.#ended.delete(payoutId);
    }
  }

  #noteSeen({ at, addresses }: SeenLine['seen']): void {
    for (const address of addresses) this.#seenAt.set(address, Math.min(at, this.#seenAt.get(address) ?? at));
    for (const address of this.#seenAt.keys()) {
      if (this.#seenAt.size <= MAX_SEEN) break;
      this.#seenAt.delete(address);
    }
  }

  /** Another process may have rotated the file meanwhile, so an older rate can follow a newer one. */
  #noteRates({ rates: { at, usd } }: RatesLine): void {
    for (const [currency, rate] of Object.entries(usd)) {
      if (at >= (this.#rateAnchors.get(Number(currency))?.at ?? 0))
        this.#rateAnchors.set(Number(currency), { rate, at });
    }
  }

  #noteReplicas(note: ReplicasNote): void {
    if (note.lowered !== undefined || note.count > this.knownReplicas) this.#replicas = note;
  }

  #noteRejected({ rejected }: RejectedLine): void {
    const { payoutId, rejection } = rejected;
    const ofPayout = this.rejectionsOf(payoutId);
    if (this.#unrejected.has(rejection) || ofPayout.some((note) => note.rejection === rejection)) return;
    this.#rejections.set(payoutId, [...ofPayout, rejected]);
  }

  #noteUnrejected({ payoutId, rejection }: Pick<RejectionNote, 'payoutId' | 'rejection'>): void {
    this.#unrejected.add(rejection);
    const standing = this.rejectionsOf(payoutId).filter((note) => note.rejection !== rejection);
    if (standing.length === 0) this.#rejections.delete(payoutId);
    else this.#rejections.set(payoutId, standing);
  }

  /** Processes that open an empty file together write a header each. The latest birth is the safe one. */
  #noteMarks({ bornAt, complete, prunedUpTo = 0 }: JournalMarks): void {
    this.#bornAt = Math.max(bornAt, this.#bornAt ?? bornAt);
    this.#complete ??= complete;
    this.#prunedUpTo = Math.max(prunedUpTo, this.#prunedUpTo);
    this.attempts.forget(this.#prunedUpTo);
  }
}

class SpendLog {
  #events: SpendEvent[] = [];

  noteSend(line: SendLine): void {
    const { payoutId, attempt, request, signed, judged, inFlightMs, at } = line;
    const { paymentId, amount, addressTo, symbol } = request;
    const usd = judged?.usd === undefined ? undefined : BigInt(judged.usd);
    const about = { payoutId, attempt, paymentId, amount, addressTo, symbol, signer: signed?.key, inFlightMs };
    const spend = { id: identify(line), ...about, usd, coins: judged?.coins };
    this.#events.push({ kind: 'begun', spend, at });
  }

  noteOutcome(line: OutcomeLine): void {
    const id = identify(line);
    const { outcome, at } = line;
    if (outcome.kind === 'accepted') this.#events.push({ kind: 'accepted', id, at });
    // `unknown` counts as a send without an answer.
    else if (outcome.kind !== 'unknown') this.#events.push({ kind: 'unpaid', id });
  }

  take(): readonly SpendEvent[] {
    const taken = this.#events;
    this.#events = [];
    return taken;
  }
}
