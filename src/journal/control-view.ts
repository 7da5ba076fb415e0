import type { RateAnchor, SpendEvent } from '../ledger/spend-event.js';
import { parseWallet, walletAndTagKey } from '../gateway/wallet.js';
import type {
  CompleteNote,
  JournalLine,
  JournalMarks,
  PausedLine,
  RatesLine,
  RejectedLine,
  RejectionNote,
  SeenLine,
  SendLine,
  SignedIntent,
} from './journal-line.js';
import { SentAttempts } from './sent-attempts.js';
import { SpendLog } from './spend-log.js';

/** Addresses that are remembered, the newest: about 5 MB in each file. */
const MAX_SEEN = 100_000;
/** About 20 kB. */
const SEEN_PER_LINE = 500;

/** What takes room, and is held only where somebody asks for it. */
export interface HeldLines {
  /** See {@link SentAttempts}. */
  readonly unsigned?: boolean | undefined;
  /** What was spent: a policy counts it. */
  readonly spends?: boolean | undefined;
}

/** What a journal's lines say about signatures and what an operator decided, of all files that are kept. */
export class ControlView {
  readonly attempts: SentAttempts;
  #bornAt: number | undefined;
  #complete: CompleteNote | undefined;
  #prunedUpTo = 0;
  /** As {@link prunedUpTo}, of files that are there and were not read. */
  #unreadUpTo = 0;
  #pause: PausedLine['paused'] | undefined;
  readonly #acts = new Set<string>();
  /** When each address was seen first, wall clock, ms; by `walletAndTagKey`. */
  readonly #seenAt = new Map<string, number>();
  /** What earlier versions noted of addresses that may have lost a tag: a send tells which. */
  readonly #cutAddresses = new Set<string>();
  readonly #rateAnchors = new Map<number, RateAnchor>();
  /** By payout: of each intent the one that holds the longest. */
  readonly #rejections = new Map<string, readonly RejectionNote[]>();
  readonly #spends: SpendLog | undefined;

  constructor({ unsigned = false, spends = false }: HeldLines = {}) {
    this.attempts = new SentAttempts(unsigned);
    this.#spends = spends ? new SpendLog() : undefined;
  }

  /** What was spent, since this was asked last; nothing where it is not held. */
  takeSpends(): readonly SpendEvent[] {
    return this.#spends?.take() ?? [];
  }

  /** When a payout to an address was seen first, wall clock, ms. */
  seenAt(walletAndTag: string): number | undefined {
    return this.#seenAt.get(walletAndTag);
  }

  /** Wall clock, ms: what was sent before may be unknown to this journal; 0 where nothing is. */
  get bornAt(): number {
    return this.#complete === undefined ? (this.#bornAt ?? 0) : 0;
  }

  /** Until when the intents of sends may be valid (ms) that are in no file any more, or in one that was not read; 0 for none. */
  get prunedUpTo(): number {
    return Math.max(this.#prunedUpTo, this.#unreadUpTo);
  }

  /** The pause that no act has ended. */
  get pause(): PausedLine['paused'] | undefined {
    return this.#pause;
  }

  /** A file was too old to be read. @param expiresAt - until when an intent that it names may be valid, ms */
  skip(expiresAt: number): void {
    this.#unreadUpTo = Math.max(expiresAt, this.#unreadUpTo);
  }

  /** The addresses that were seen, as lines for a new file: the old one may be gone one day. */
  seenLines(): SeenLine[] {
    const all = [...this.#seenAt];
    const lines: SeenLine[] = [];
    for (let from = 0; from < all.length; from += SEEN_PER_LINE) {
      const part = all.slice(from, from + SEEN_PER_LINE);
      // A later time holds longer, and they were seen one after the other.
      const at = Math.max(...part.map(([, seenAt]) => seenAt));
      lines.push({ seen: { at, addresses: part.map(([address]) => address), exact: true } });
    }
    return lines;
  }

  /** By currency, the rates that later ones are held against. */
  get rateAnchors(): ReadonlyMap<number, RateAnchor> {
    return this.#rateAnchors;
  }

  /** These rates, as lines for a new file. */
  ratesLines(): RatesLine[] {
    return [...this.#rateAnchors].map(([currency, { rate, at }]) => ({ rates: { at, usd: { [currency]: rate } } }));
  }

  /** See SendJournal. */
  rejectionOf({ payoutId, intent, issuedAt }: SignedIntent): RejectionNote | undefined {
    const ofPayout = this.#rejections.get(payoutId) ?? [];
    const saysNo = ofPayout.filter((note) => note.intent === intent || issuedAt < note.issuedAt);
    return saysNo.sort((a, b) => b.expiresAt - a.expiresAt)[0];
  }

  /** The rejections that still count, as lines for a new file. @param now - wall clock, ms */
  rejectedLines(now: number): RejectedLine[] {
    const holding = [...this.#rejections.values()].flat().filter(({ expiresAt }) => expiresAt > now);
    return holding.map((rejected) => ({ rejected }));
  }

  /** For the next header. @param now - wall clock, ms: the birth of a journal that has none yet */
  marksAt(now: number): JournalMarks {
    return {
      bornAt: this.#bornAt ?? now,
      ...(this.#complete === undefined ? {} : { complete: this.#complete }),
      ...(this.#prunedUpTo === 0 ? {} : { prunedUpTo: this.#prunedUpTo }),
    };
  }

  /** Whether an act was used. @param act - its hash */
  hasAct(act: string): boolean {
    return this.#acts.has(act);
  }

  note(line: JournalLine): void {
    if ('v' in line) {
      if (line.v === 3) this.#noteMarks(line);
    } else if ('complete' in line) this.#complete = line.complete;
    else if ('paused' in line) this.#pause = line.paused;
    else if ('resumed' in line) {
      // A process that was stopped may note late an act that has ended an earlier pause: an act ends one.
      if (!this.#acts.has(line.resumed.act)) this.#pause = undefined;
      this.#acts.add(line.resumed.act);
    } else if ('seen' in line) this.#noteSeen(line.seen);
    else if ('rejected' in line) this.#noteRejected(line);
    else if ('rates' in line) this.#noteRates(line);
    else if ('outcome' in line) {
      this.attempts.noteOutcome(line);
      this.#spends?.noteOutcome(line);
    } else if ('payoutId' in line) {
      this.attempts.noteSend(line);
      this.#spends?.noteSend(line);
      if (line.signed?.act !== undefined) this.#acts.add(line.signed.act);
      this.#noteFormerly(line);
    }
  }

  #noteSeen({ at, addresses, exact }: SeenLine['seen']): void {
    for (const address of addresses) {
      const { family, key } = exact === true ? { family: 'exact', key: address } : parseWallet(address);
      // These have no tag that could have been cut off.
      const isWhole = family !== undefined && family !== 'ton' && family !== 'xrp';
      if (isWhole) this.#seenAt.set(key, Math.min(at, this.#seenAt.get(key) ?? at));
      else if (this.#cutAddresses.size < MAX_SEEN) this.#cutAddresses.add(address);
    }
    for (const address of this.#seenAt.keys()) {
      if (this.#seenAt.size <= MAX_SEEN) break;
      this.#seenAt.delete(address);
    }
  }

  /** A send has the whole address of which an earlier version noted a part. */
  #noteFormerly({ at, request: { addressTo } }: SendLine): void {
    if (this.#cutAddresses.size === 0 || !this.#cutAddresses.has(addressTo.split(':', 1)[0] ?? '')) return;
    this.#noteSeen({ at, addresses: [walletAndTagKey(addressTo)], exact: true });
  }

  /** A file that another process set aside meanwhile may name an older one again. */
  #noteRates({ rates: { at, usd } }: RatesLine): void {
    for (const [currency, rate] of Object.entries(usd)) {
      if (at >= (this.#rateAnchors.get(Number(currency))?.at ?? 0))
        this.#rateAnchors.set(Number(currency), { rate, at });
    }
  }

  #noteRejected({ rejected }: RejectedLine): void {
    const { payoutId, intent, expiresAt } = rejected;
    const ofPayout = this.#rejections.get(payoutId) ?? [];
    if (ofPayout.some((note) => note.intent === intent && note.expiresAt >= expiresAt)) return;
    this.#rejections.set(payoutId, [...ofPayout.filter((note) => note.intent !== intent), rejected]);
  }

  /** Processes that upgrade a journal at once write a header each: the latest birth holds back the most. */
  #noteMarks({ bornAt, complete, prunedUpTo = 0 }: JournalMarks): void {
    this.#bornAt = Math.max(bornAt, this.#bornAt ?? bornAt);
    this.#complete ??= complete;
    this.#prunedUpTo = Math.max(prunedUpTo, this.#prunedUpTo);
    this.attempts.forget(this.#prunedUpTo);
  }
}
