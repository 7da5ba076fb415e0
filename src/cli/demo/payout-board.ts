import type { ValidPayout } from '../../ledger/payout.js';
import { type PayoutState, SETTLED_STATES } from '../../ledger/states.js';
import type { PayoutEvent } from '../../producer/events/payout-events.js';
import type { Arrival } from '../../sandbox/index.js';

export interface BoardRow {
  readonly payoutId: string;
  readonly amount: string;
  readonly addressTo: string;
  readonly state: PayoutState;
  /** Time since the previous arrival at the sandbox; null for the first. */
  readonly gapMs: number | null;
}

export interface BoardChange {
  readonly from: PayoutState;
  readonly row: BoardRow;
}

export class PayoutBoard {
  readonly #rows: Map<string, BoardRow>;
  readonly #listArrivals: () => readonly Arrival[];
  #pausedReason: string | undefined;

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

  /** Payouts sent, or possibly sent. */
  get sentCount(): number {
    return this.rows.filter(({ state }) => state !== 'queued' && state !== 'held' && state !== 'sending').length;
  }

  /** All are final or wait for an operator. */
  get isSettled(): boolean {
    return this.rows.every(({ state }) => SETTLED_STATES.includes(state));
  }

  /** Undefined for an event of no payout of the demo. */
  apply({ type, payoutId = '', from, to, reason }: PayoutEvent): BoardChange | undefined {
    if (type === 'paused') this.#pausedReason = reason ?? 'no reason given';
    if (type === 'resumed') this.#pausedReason = undefined;
    const before = this.#rows.get(payoutId);
    if (before === undefined || from === undefined || to === undefined) return undefined;
    const row = { ...before, state: to, gapMs: from === 'sending' ? this.#findGap(before) : before.gapMs };
    this.#rows.set(payoutId, row);
    return { from, row };
  }

  /** Payouts are sent one at a time, so the latest matching arrival is the right one. */
  #findGap({ amount, addressTo }: BoardRow): number | null {
    const arrival = this.#listArrivals().findLast((seen) => seen.amount === amount && seen.addressTo === addressTo);
    return arrival?.gapMs ?? null;
  }
}
