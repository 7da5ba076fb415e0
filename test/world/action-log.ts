import type { PayoutState } from '../../src/ledger/states.js';
import type { WorldLedger } from './world-ledger.js';

/** The states that the model of a send has. */
export const MODELLED = ['queued', 'sending', 'in_progress', 'completed', 'unknown'] as const;
export type ModelledState = (typeof MODELLED)[number];

/**
 * A step of a send as the ports of a world see it. Numbers count from 0 in the order of their first sight: a worker for
 * each lease, a payout; attempts count from 1 in the order in which their begins were asked.
 */
export type Action =
  | Readonly<{ kind: 'leased' | 'released' | 'entered' | 'written' | 'noted'; worker: number }>
  | Readonly<{ kind: 'asked'; worker: number; payout: number }>
  | Readonly<{ kind: 'refused'; worker: number; attempt: number; payout: number }>
  | Readonly<{ kind: 'begun'; worker: number; attempt: number; payout: number; state: ModelledState }>
  | Readonly<{ kind: 'changed'; worker: number; payout: number; state: ModelledState }>
  | Readonly<{ kind: 'stated'; payout: number; state: ModelledState }>
  | Readonly<{ kind: 'arrived' | 'lost'; attempt: number }>
  | Readonly<{ kind: 'emptied' }>;

/** A payout's state, and the tokens of its attempts. */
type Seen = Readonly<{ state: PayoutState; tokens: string }>;

/** Writes down the actions of one run, until something happens that the model's traces leave out. It changes nothing. */
export class ActionLog {
  readonly actions: Action[] = [];
  /** Why it ended before the run. */
  ended: string | undefined;
  readonly #ledger: WorldLedger;
  readonly #owners: string[] = [];
  readonly #payouts: string[] = [];
  readonly #seen = new Map<string, Seen>();
  /** By worker, the attempt that it asked to begin last. */
  readonly #attempts = new Map<number, number>();
  #asked = 0;
  #isReleased = false;
  /** Of the newest lease: a process may take one again that it had lost, under the same name. */
  #epoch: number | undefined;

  constructor(ledger: WorldLedger) {
    this.#ledger = ledger;
  }

  end(reason: string) {
    this.ended ??= reason;
  }

  /** A begin leaves its process. @returns call it when Redis has carried it out */
  asked(process: string, payoutId: string): () => void {
    const worker = this.#workerOf(process);
    if (worker === undefined) return () => undefined;
    this.#asked += 1;
    this.#attempts.set(worker, this.#asked);
    const [attempt, payout] = [this.#asked, this.#numberOf(payoutId)];
    this.#add({ kind: 'asked', worker, payout });
    return () => {
      const seen = this.#read(payoutId);
      if (!isModelled(seen.state)) {
        this.end(`a begun payout is ${seen.state}`);
        return;
      }
      const isRefused = seen.tokens === (this.#seen.get(payoutId)?.tokens ?? '');
      this.#seen.set(payoutId, seen);
      if (isRefused) this.#add({ kind: 'refused', worker, attempt, payout });
      else this.#add({ kind: 'begun', worker, attempt, payout, state: seen.state });
    };
  }

  /** Redis has carried out a command of a process; before it, others may have changed payouts. */
  executed(process: string, name: string, about: string) {
    const { lease } = this.#ledger;
    if (name === 'acquireLease' && lease?.owner === about && lease.epoch !== this.#epoch) {
      this.#epoch = lease.epoch;
      this.#owners.push(about);
      this.#add({ kind: 'leased', worker: this.#owners.length - 1 });
    }
    const worker = this.#workerOf(process);
    if (worker === undefined) return;
    if (name === 'releaseLease' && lease?.released === true && !this.#isReleased)
      this.#add({ kind: 'released', worker });
    this.#isReleased = lease?.released === true;
    this.look(worker);
  }

  /** Compares what payouts were with what they are. @param worker - who changed them; undefined: not a sender */
  look(worker?: number) {
    if (this.#ledger.isObjectedTo) this.end('a worker objected');
    for (const payoutId of this.#ledger.payoutIds()) {
      const before = this.#seen.get(payoutId) ?? { state: 'queued', tokens: '' };
      const seen = this.#read(payoutId);
      this.#seen.set(payoutId, seen);
      const { state } = seen;
      if (state === before.state && seen.tokens === before.tokens) continue;
      if (!isModelled(state)) {
        this.end(`a payout is ${state}`);
        return;
      }
      const payout = this.#numberOf(payoutId);
      this.#add(worker === undefined ? { kind: 'stated', payout, state } : { kind: 'changed', worker, payout, state });
    }
  }

  /** The line of a send is in the journal, or that a send was accepted. */
  journaled(process: string, kind: 'entered' | 'noted') {
    const worker = this.#workerOf(process);
    if (worker !== undefined) this.#add({ kind, worker });
  }

  /** @returns the attempt whose first byte is written */
  written(process: string): number {
    const worker = this.#workerOf(process) ?? 0;
    this.#add({ kind: 'written', worker });
    return this.#attempts.get(worker) ?? 0;
  }

  reached(kind: 'arrived' | 'lost', attempt: number) {
    this.#add({ kind, attempt });
  }

  /** The only journal is gone. */
  emptied() {
    this.#add({ kind: 'emptied' });
  }

  #read(payoutId: string): Seen {
    return {
      state: this.#ledger.stateOf(payoutId) ?? 'queued',
      tokens: this.#ledger.ofPayout(payoutId, 'tokens') ?? '',
    };
  }

  #add(action: Action) {
    if (this.ended === undefined) this.actions.push(action);
  }

  /** The newest lease of a process. */
  #workerOf(process: string) {
    const worker = this.#owners.findLastIndex((owner) => owner.startsWith(`${process}.`));
    return worker === -1 ? undefined : worker;
  }

  #numberOf(payoutId: string) {
    if (!this.#payouts.includes(payoutId)) this.#payouts.push(payoutId);
    return this.#payouts.indexOf(payoutId);
  }
}

function isModelled(state: PayoutState): state is ModelledState {
  return (MODELLED as readonly PayoutState[]).includes(state);
}
