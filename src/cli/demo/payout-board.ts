import type { ValidPayout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import type { PayoutEvent } from '../../producer/events/payout-events.js';
import { SETTLED_STATES } from '../../producer/wait-for-payout.js';
import type { Arrival } from '../../sandbox/index.js';

/** One payout as it is shown while the demo runs. */
export interface BoardRow {
  readonly payoutId: string;
  readonly amount: string;
  readonly addressTo: string;
  readonly state: PayoutState;
  /** Milliseconds from the arrival before to its own, as the sandbox saw them; null where there was none. */
  readonly gapMs: number | null;
}

/** One payout's step from a state to another. */
export interface BoardChange {
  readonly from: PayoutState;
  readonly row: BoardRow;
}

/** Where every payout stands, kept up to date by the events of the ledger. */
export class PayoutBoard {
  readonly #rows: Map<string, BoardRow>;
  readonly #listArrivals: () => readonly Arrival[];
  #pausedReason: string | undefined;

  /** @param listArrivals - what has arrived at the sandbox until now */
  constructor(payouts: readonly ValidPayout[], listArrivals: () => readonly Arrival[]) {
    this.#rows = new Map(
      payouts.map(({ payoutId, amount, addressTo }) => [
        payoutId,
        { payoutId, amount, addressTo, state: 'queued', gapMs: null },
      ]),
    );
    this.#listArrivals = listArrivals;
  }

  get rows(): readonly BoardRow[] {
    return [...this.#rows.values()];
  }

  get pausedReason(): string | undefined {
    return this.#pausedReason;
  }

  /** How many have been sent, or maybe sent. */
  get sentCount(): number {
    return this.rows.filter(({ state }) => state !== 'queued' && state !== 'sending').length;
  }

  /** Whether all are where they stay without an operator. */
  get isSettled(): boolean {
    return this.rows.every(({ state }) => SETTLED_STATES.includes(state));
  }

  /** @returns the step that a payout of the demo made, or undefined where the event is something else */
  apply({ type, payoutId = '', from, to, reason }: PayoutEvent): BoardChange | undefined {
    if (type === 'paused') this.#pausedReason = reason ?? 'no reason given';
    if (type === 'resumed') this.#pausedReason = undefined;
    const before = this.#rows.get(payoutId);
    if (before === undefined || from === undefined || to === undefined) return undefined;
    const row = { ...before, state: to, gapMs: from === 'sending' ? this.#findGap(before) : before.gapMs };
    this.#rows.set(payoutId, row);
    return { from, row };
  }

  /** Payouts go out one by one, so its arrival is the newest of its kind. */
  #findGap({ amount, addressTo }: BoardRow): number | null {
    const arrival = this.#listArrivals().findLast((seen) => seen.amount === amount && seen.addressTo === addressTo);
    return arrival?.gapMs ?? null;
  }
}
