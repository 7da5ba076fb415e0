import type { Clock } from '../../../src/clock.js';
import { toLine, type HistoryEntry, type Payout } from '../../../src/ledger/payout.js';
import { TRANSITIONS, type PayoutState } from '../../../src/ledger/states.js';

/** A payout, and what the ledger alone knows of it. Replaced at every change, never altered, so that a snapshot is cheap. */
export interface Entry {
  readonly payout: Payout;
  /** Of the last attempt. */
  readonly epoch: number | undefined;
  /** Rises with every change of any payout: the order in which payouts came into their states. */
  readonly seq: number;
}

/** Who moves a payout, why, and what changes of it beside its state. */
export interface Move {
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  readonly epoch?: number;
  /** A `message` of undefined takes the old one away. */
  readonly set?: Partial<Pick<Payout, 'attempt' | 'round' | 'fee'>> & { readonly message?: string | undefined };
}

type Newborn = Omit<Payout, 'createdAt' | 'updatedAt' | 'history'>;

/** The payouts of a ledger in memory: what prelude.lua does to a record, its history and its indexes. */
export class PayoutBook {
  readonly #clock: Pick<Clock, 'wallNow'>;
  #entries = new Map<string, Entry>();
  #txhashes = new Map<string, string>();
  #seq = 0;

  constructor(clock: Pick<Clock, 'wallNow'>) {
    this.#clock = clock;
  }

  copy(): PayoutBook {
    const copy = new PayoutBook(this.#clock);
    copy.#entries = new Map(this.#entries);
    copy.#txhashes = new Map(this.#txhashes);
    copy.#seq = this.#seq;
    return copy;
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
    return this.#txhashes.get(txhash);
  }

  /** Puts in a payout that is not there yet. */
  add(payout: Newborn, { by, reason, epoch }: Move = {}): void {
    const at = this.#now();
    const history = [historyEntry({ at, to: payout.state, by, reason })];
    this.#put({ ...payout, createdAt: at, updatedAt: at, history }, epoch);
  }

  /** @throws Error when there is no such transition; nothing is changed */
  move(payoutId: string, to: PayoutState, { by, reason, epoch, set }: Move): void {
    const entry = this.#existing(payoutId);
    const { state: from, history } = entry.payout;
    if (!isTransition(from, to)) throw new Error(`no transition from ${from} to ${to}`);
    const at = this.#now();
    const { message, ...rest } = { ...entry.payout, ...set };
    const payout = { ...rest, ...(message === undefined ? {} : { message }), state: to, updatedAt: at };
    const entries = [...history, historyEntry({ at, from, to, by, reason })];
    this.#put({ ...payout, history: entries }, epoch ?? entry.epoch);
  }

  setTxhash(payoutId: string, txhash: string): void {
    this.#alter(payoutId, { txhash });
    this.#txhashes.set(txhash, payoutId);
  }

  /** Notes a later attempt of a payout that stays in its state. */
  setAttempt(payoutId: string, attempt: number, epoch: number): void {
    this.#alter(payoutId, { attempt }, epoch);
  }

  #alter(payoutId: string, change: Partial<Payout>, epoch?: number): void {
    const entry = this.#existing(payoutId);
    const payout = { ...entry.payout, ...change };
    this.#entries.set(payoutId, { ...entry, epoch: epoch ?? entry.epoch, payout });
  }

  #put(payout: Payout, epoch: number | undefined): void {
    this.#seq += 1;
    this.#entries.set(payout.payoutId, { payout, epoch, seq: this.#seq });
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
