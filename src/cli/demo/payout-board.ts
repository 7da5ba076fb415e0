import type { ValidPayout } from '../../ledger/payout.js';
import { type PayoutState, SETTLED_STATES } from '../../ledger/states.js';
import type { PayoutEvent } from '../../producer/events/payout-events.js';
import type { Arrival } from '../../sandbox/index.js';

/** One payout as shown while the demo runs. */
export interface BoardRow {
  readonly payoutId: string;
  readonly amount: string;
  readonly addressTo: string;
  readonly state: PayoutState;
  /** Milliseconds since the previous arrival at the sandbox; null for the first. */
  readonly gapMs: number | null;
}

/** One payout's change of state. */
export interface BoardChange {
  readonly from: PayoutState;
  readonly row: BoardRow;
}

/** The state of every payout, updated by the events of the ledger. */
export class PayoutBoard {
  readonly #rows: Map<string, BoardRow>;
  readonly #listArrivals: () => readonly Arrival[];
  #pausedReason: string | undefined;

  /** @param listArrivals - the requests that the sandbox has received so far */
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

  /** How many were sent, or possibly sent. */
  get sentCount(): number {
    return this.rows.filter(({ state }) => state !== 'queued' && state !== 'held' && state !== 'sending').length;
  }

  /** Whether all are final or wait for an operator. */
  get isSettled(): boolean {
    return this.rows.every(({ state }) => SETTLED_STATES.includes(state));
  }

  /** @returns the change of a payout of the demo; undefined for any other event */
  apply({ type, payoutId = '', from, to, reason }: PayoutEvent): BoardChange | undefined {
    if (type === 'paused') this.#pausedReason = reason ?? 'no reason given';
    if (type === 'resumed') this.#pausedReason = undefined;
    const before = this.#rows.get(payoutId);
    if (before === undefined || from === undefined || to === undefined) return undefined;
    const row = { ...before, state: to, gapMs: from === 'sending' ? this.#findGap(before) : before.gapMs };
    this.#rows.set(payoutId, row);
    return { from, row };
  }

  /** Payouts are sent one at a time, so the latest matching arrival is its own. */
  #findGap({ amount, addressTo }: BoardRow): number | null {
    const arrival = this.#listArrivals().findLast((seen) => seen.amount === amount && seen.addressTo === addressTo);
    return arrival?.gapMs ?? null;
  }
}
