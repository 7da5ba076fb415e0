import { toUnits } from '../../decimal.js';
import type { SendFacts } from '../../ledger/payment-facts.js';
import type { StateEvent } from '../../ledger/state-events.js';
import type { PayoutState } from '../../ledger/states.js';
import type { Debit } from './send-sums.js';

/** The states in which a payout's amount may or may not have been taken from the balance. */
export const OPEN_STATES = ['sending', 'in_progress', 'unknown'] as const satisfies readonly PayoutState[];

export function isOpenState(state: PayoutState | undefined): boolean {
  return OPEN_STATES.some((open) => open === state);
}

/** The rates of now, by currency: in USD, units of decimal.ts. */
export type Rates = ReadonlyMap<number, bigint>;

/** Follows the events of the ledger: which sends are open, and which have ended. Without I/O. */
export class OpenSends {
  readonly #open = new Map<string, Debit>();
  #ended: Debit[] = [];
  #lostEnds = false;
  readonly #fees: Map<number, string>;
  #rates: Rates;

  /** @param fees - the largest of each currency so far */
  constructor(fees: ReadonlyMap<number, string>, rates: Rates) {
    this.#fees = new Map(fees);
    this.#rates = rates;
  }

  get open(): Iterable<Debit> {
    return this.#open.values();
  }

  get fees(): ReadonlyMap<number, string> {
    return this.#fees;
  }

  /** The highest rate of each currency that has open sends. */
  get highestRates(): Rates {
    const highest = new Map<number, bigint>();
    for (const { paymentId, rate } of this.#open.values()) {
      if (rate !== undefined && rate > (highest.get(paymentId) ?? -1n)) highest.set(paymentId, rate);
    }
    return highest;
  }

  /** From now on; a send that is open may be converted at any rate that it has seen. */
  noteRates(rates: Rates): void {
    this.#rates = rates;
    for (const [payoutId, send] of this.#open) {
      const rate = higher(send.rate, rates.get(send.paymentId));
      if (rate !== send.rate) this.#open.set(payoutId, { ...send, rate });
    }
  }

  /** A payout that is open when its index is read; its events may follow. */
  add(payoutId: string, facts: Omit<SendFacts, 'fee'>): void {
    this.#open.set(payoutId, { ...facts, fee: undefined, isPaid: false, rate: this.#rates.get(facts.paymentId) });
  }

  /** @param facts - of the payout, as they are now; undefined where it was removed */
  apply({ change }: StateEvent, facts: SendFacts | undefined): void {
    if (change === undefined) return;
    const { payoutId, from, to } = change;
    const before = this.#open.get(payoutId);
    if (isOpenState(to)) {
      if (facts === undefined) this.#lostEnds = true;
      else if (before === undefined) this.add(payoutId, facts);
      return;
    }
    this.#open.delete(payoutId);
    if (!isOpenState(from) || !mayHaveCost(to)) return;
    if (facts === undefined) this.#lostEnds = true;
    else this.#end(facts, to, before?.rate);
  }

  /** Those that ended since the last call; undefined where one of them is not known. */
  takeEnded(): readonly Debit[] | undefined {
    const ended = this.#lostEnds ? undefined : this.#ended;
    this.#ended = [];
    this.#lostEnds = false;
    return ended;
  }

  #end(facts: SendFacts, to: PayoutState, highestRate: bigint | undefined): void {
    const { paymentId, fee } = facts;
    const isPaid = to === 'completed';
    const rate = higher(highestRate, this.#rates.get(paymentId));
    this.#ended.push({ ...facts, isPaid, rate });
    if (isPaid && fee !== undefined && isHigherDecimal(fee, this.#fees.get(paymentId))) this.#fees.set(paymentId, fee);
  }
}

/** A failed payment may be refunded, or was never taken; one that was written off may have been paid. */
function mayHaveCost(to: PayoutState): boolean {
  return to === 'completed' || to === 'failed' || to === 'cancelled';
}

function higher(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}

function isHigherDecimal(decimal: string, than: string | undefined): boolean {
  return than === undefined || toUnits(decimal) > toUnits(than);
}
