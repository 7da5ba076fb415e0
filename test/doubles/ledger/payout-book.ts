import type { Clock } from '../../../src/base/clock.js';
import { isSameTxhash, txhashKey } from '../../../src/base/fields.js';
import { toLine, type HistoryEntry, type Payout } from '../../../src/ledger/payout.js';
import { type PayoutState, TRANSITIONS } from '../../../src/ledger/states.js';

/** A payout, and what the ledger alone knows of it. Replaced at every change, never altered, so that a snapshot is cheap. */
export interface Entry {
  readonly payout: Payout;
  /** Under which the attempts began, by their numbers; several of one number where two timelines made it. */
  readonly tokens: readonly (readonly string[])[];
  /** Until then a request may be on its way, wall clock, ms. */
  readonly doubtUntil: number;
  /** Up to this attempt several overlap, of different senders: a rejection of one says nothing of the others. */
  readonly overlap: number;
  /** The outcome that was told last. */
  readonly told: string;
  /** Rises with every change of any payout: the order in which payouts came into their states. */
  readonly seq: number;
}

/** Who moves a payout, why, and what changes of it beside its state. */
export interface Move {
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  /** The attempt that the change is about, where the book does not know it. */
  readonly attempt?: { readonly attempt: number; readonly token: string };
  readonly doubtUntil?: number;
  /** A `message` of undefined removes the old one. */
  readonly set?: Partial<Pick<Payout, 'requeueCount' | 'fee' | 'held' | 'act'>> & {
    readonly message?: string | undefined;
  };
}

type Newborn = Omit<Payout, 'createdAt' | 'updatedAt' | 'history'>;

/** The changes of a ledger, the last one first. */
interface Change {
  readonly id: string;
  readonly before: Change | undefined;
}

/** No two changes of any ledger have the same id, also where one of them was forgotten. */
let changes = 0;

/** The payouts of a ledger in memory: what the scripts of lua/prelude do to a record, its history and its indexes. */
export class PayoutBook {
  readonly #clock: Pick<Clock, 'wallNow'>;
  #entries = new Map<string, Entry>();
  #txhashes = new Map<string, string>();
  #seq = 0;
  #lastChange: Change | undefined;

  constructor(clock: Pick<Clock, 'wallNow'>) {
    this.#clock = clock;
  }

  /** Wall clock, ms. */
  now(): number {
    return this.#clock.wallNow();
  }

  copy(): PayoutBook {
    const copy = new PayoutBook(this.#clock);
    copy.#entries = new Map(this.#entries);
    copy.#txhashes = new Map(this.#txhashes);
    copy.#seq = this.#seq;
    copy.#lastChange = this.#lastChange;
    return copy;
  }

  /** Nothing of it is left. */
  remove(payoutId: string): void {
    this.#entries.delete(payoutId);
  }

  /** The id of the last change; '' before the first one. */
  get bookmark(): string {
    return this.#lastChange?.id ?? '';
  }

  /** Whether a change of this id was made, and is not forgotten. */
  hasBookmark(id: string): boolean {
    for (let change = this.#lastChange; change !== undefined; change = change.before) {
      if (change.id === id) return true;
    }
    return id === '';
  }

  get(payoutId: string): Entry | undefined {
    return this.#entries.get(payoutId);
  }

  /** In the order in which they were accepted. */
  all(): Payout[] {
    return [...this.#entries.values()].map(({ payout }) => payout);
  }

  /** In the order in which they came into the state. */
  idsIn(state: PayoutState): string[] {
    const entries = [...this.#entries.values()].filter(({ payout }) => payout.state === state);
    return entries.sort((one, other) => one.seq - other.seq).map(({ payout }) => payout.payoutId);
  }

  holderOf(txhash: string): string | undefined {
    return this.#txhashes.get(txhashKey(txhash));
  }

  /** Puts in a payout that is not there yet. */
  add(payout: Newborn, { by, reason, attempt, doubtUntil = 0 }: Move = {}): void {
    const at = this.#now();
    const history = [historyEntry({ at, to: payout.state, by, reason })];
    const tokens = attempt === undefined ? [] : withToken([], attempt);
    this.#put({ ...payout, createdAt: at, updatedAt: at, history }, { tokens, doubtUntil, overlap: 0, told: '' });
  }

  /** @throws Error when there is no such transition; nothing is changed */
  move(payoutId: string, to: PayoutState, { by, reason, attempt, doubtUntil, set }: Move): void {
    const entry = this.#existing(payoutId);
    const { state: from, history } = entry.payout;
    if (!isTransition(from, to)) throw new Error(`no transition from ${from} to ${to}`);
    const at = this.#now();
    // Why it was held belongs to the state that it leaves.
    const { message, held, ...rest } = { ...entry.payout, held: undefined, ...set };
    const number = Math.max(entry.payout.attempt, attempt?.attempt ?? 0);
    const payout = {
      ...rest,
      ...(message === undefined ? {} : { message }),
      ...(held === undefined ? {} : { held }),
      attempt: number,
      state: to,
      updatedAt: at,
    };
    const entries = [...history, historyEntry({ at, from, to, by, reason })];
    this.#put(
      { ...payout, history: entries },
      {
        ...entry,
        tokens: attempt === undefined ? entry.tokens : withToken(entry.tokens, attempt),
        doubtUntil: doubtUntil ?? entry.doubtUntil,
      },
    );
  }

  setTxhash(payoutId: string, txhash: string): void {
    this.alter(payoutId, { txhash });
    this.#txhashes.set(txhashKey(txhash), payoutId);
  }

  /** Another payout may have it from now on. */
  freeTxhash(txhash: string): void {
    this.#txhashes.delete(txhashKey(txhash));
  }

  noteLatePayment(payoutId: string, txhash: string): void {
    if (!isSameTxhash(this.get(payoutId)?.payout.lateTxhash, txhash)) this.alter(payoutId, { lateTxhash: txhash });
  }

  /** Notes an attempt of a payout that stays in its state. */
  noteAttempt(payoutId: string, attempt: { readonly attempt: number; readonly token: string }): void {
    const { tokens, payout } = this.#existing(payoutId);
    this.alter(payoutId, { attempt: Math.max(payout.attempt, attempt.attempt) }, withToken(tokens, attempt));
  }

  /** Changes what is not a change of state. */
  alter(payoutId: string, change: Partial<Payout>, tokens?: Entry['tokens']): void {
    const entry = this.#existing(payoutId);
    const payout = { ...entry.payout, ...change };
    this.#entries.set(payoutId, { ...entry, tokens: tokens ?? entry.tokens, payout });
  }

  /** Changes what the ledger alone knows of a payout. */
  note(payoutId: string, change: Partial<Pick<Entry, 'doubtUntil' | 'overlap' | 'told'>>): void {
    this.#entries.set(payoutId, { ...this.#existing(payoutId), ...change });
  }

  #put(payout: Payout, rest: Omit<Entry, 'payout' | 'seq'>): void {
    this.#seq += 1;
    this.#lastChange = { id: String((changes += 1)), before: this.#lastChange };
    this.#entries.set(payout.payoutId, { ...rest, payout, seq: this.#seq });
  }

  #existing(payoutId: string): Entry {
    const entry = this.#entries.get(payoutId);
    if (entry === undefined) throw new Error(`no payout ${payoutId}`);
    return entry;
  }

  #now(): string {
    return new Date(this.#clock.wallNow()).toISOString();
  }
}

/** Whether the entry has seen this very attempt begin. */
export function knows(entry: Entry | undefined, attempt: number, token: string): boolean {
  return entry?.tokens[attempt]?.includes(token) === true;
}

function withToken(
  tokens: Entry['tokens'],
  { attempt, token }: { readonly attempt: number; readonly token: string },
): Entry['tokens'] {
  const all = [...tokens];
  for (let number = all.length; number <= attempt; number += 1) all[number] = [];
  all[attempt] = [...(all[attempt] ?? []), token];
  return all;
}

export function isTransition(from: PayoutState, to: PayoutState): boolean {
  return TRANSITIONS.some((transition) => transition.from === from && transition.to === to);
}

interface HistorySource {
  readonly at: string;
  readonly from?: PayoutState;
  readonly to: PayoutState;
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
}

function historyEntry({ at, from, to, by = '', reason = '' }: HistorySource): HistoryEntry {
  return {
    at,
    ...(from === undefined ? {} : { from }),
    to,
    ...(by === '' ? {} : { by: toLine(by) }),
    ...(reason === '' ? {} : { reason: toLine(reason) }),
  };
}

/** Whether this very attempt is the last one of its payout. */
export function isNewest(entry: Entry | undefined, attempt: number, token: string): boolean {
  return entry?.payout.attempt === attempt && knows(entry, attempt, token);
}
