import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readPaymentFacts, type PaymentFacts } from '../../ledger/payment-facts.js';
import { FINAL_STATES } from '../../ledger/states.js';
import type { StateEvent } from '../../ledger/state-events.js';

/** A payout that is sent has several events within a minute, and one that is queued may wait for a day. */
const REMEMBERED = 5_000;

/** The amounts of the payouts of which events tell: those of recent events are read once. */
export class PaymentFactsCache {
  readonly #connection: LedgerConnection;
  readonly #known = new Map<string, PaymentFacts>();

  constructor(connection: LedgerConnection) {
    this.#connection = connection;
  }

  /** @returns the facts of each payout that is in the ledger @throws RedisUnavailableError */
  async read(events: readonly StateEvent[]): Promise<ReadonlyMap<string, PaymentFacts>> {
    const payoutIds = [...new Set(events.flatMap(({ change }) => (change === undefined ? [] : [change.payoutId])))];
    const missing = payoutIds.filter((payoutId) => !this.#known.has(payoutId));
    const read = await readPaymentFacts(this.#connection, missing);
    missing.forEach((payoutId, index) => {
      const facts = read[index];
      if (facts !== undefined) this.#known.set(payoutId, facts);
    });
    const found = new Map(payoutIds.flatMap((payoutId) => this.#entry(payoutId)));
    this.#forget(events);
    return found;
  }

  #entry(payoutId: string): [string, PaymentFacts][] {
    const facts = this.#known.get(payoutId);
    return facts === undefined ? [] : [[payoutId, facts]];
  }

  #forget(events: readonly StateEvent[]): void {
    for (const { change } of events) {
      if (change !== undefined && FINAL_STATES.includes(change.to)) this.#known.delete(change.payoutId);
    }
    for (const payoutId of this.#known.keys()) {
      if (this.#known.size <= REMEMBERED) return;
      this.#known.delete(payoutId);
    }
  }
}
