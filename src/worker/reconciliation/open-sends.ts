import { toUnits } from '../../base/decimal.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { readIndexPage, readSendFacts, type PaymentFacts, type SendFacts } from '../../ledger/payment-facts.js';
import { readEventsAfter, type StateEvent } from '../../ledger/reads/state-events.js';
import type { PayoutState } from '../../ledger/states.js';
import type { Debit, Rates } from './send-sums.js';

/** States in which a payout's amount may be debited or not. */
const OPEN_STATES: readonly PayoutState[] = ['sending', 'in_progress', 'unknown'];

/** A failed payment may be refunded or never debited. A written-off one may have been paid. */
const COSTLY_ENDS: readonly PayoutState[] = ['completed', 'failed', 'written_off'];

/** The amounts of other payouts are not needed, and most events of a minute may be of payouts that only came in. */
const TOUCHING: readonly PayoutState[] = [...OPEN_STATES, ...COSTLY_ENDS];

const PAGE = 500;

interface EndedSend {
  readonly debit: Debit;
  /** When its end was seen, on the clock's scale. */
  readonly at: number;
  readonly after: string;
}

/** Follows the ledger's events: open sends, and those that ended lately. */
export class OpenSends {
  readonly #open = new Map<string, Debit>();
  #ended: EndedSend[] = [];
  #newest: string;
  readonly #fees: Map<number, string>;
  #rates: Rates;

  /**
   * @param position - the event to continue after
   * @param fees - the largest of each currency so far
   */
  constructor(position: string, fees: ReadonlyMap<number, string>, rates: Rates) {
    this.#newest = position;
    this.#fees = new Map(fees);
    this.#rates = rates;
  }

  /** The event to continue after, so that `recent` is found again. */
  get position(): string {
    return this.#ended[0]?.after ?? this.#newest;
  }

  get open(): readonly Debit[] {
    return [...this.#open.values()];
  }

  get recent(): readonly Debit[] {
    return this.#ended.map(({ debit }) => debit);
  }

  get fees(): ReadonlyMap<number, string> {
    return this.#fees;
  }

  get highestRates(): Rates {
    const highest = new Map<number, bigint>();
    for (const { paymentId, rate } of [...this.open, ...this.recent]) {
      const most = higher(rate, highest.get(paymentId));
      if (most !== undefined) highest.set(paymentId, most);
    }
    return highest;
  }

  /** An open send may be converted at any rate that it has seen. */
  noteRates(rates: Rates): void {
    this.#rates = rates;
    for (const [payoutId, send] of this.#open) {
      this.#open.set(payoutId, { ...send, rate: higher(send.rate, rates.get(send.paymentId)) });
    }
  }

  /** Adds all open sends of the indexes. */
  async addOpen(connection: LedgerConnection): Promise<void> {
    for (const state of OPEN_STATES) {
      for (let after: string | undefined = ''; after !== undefined;) {
        const page = await readIndexPage(connection, connection.keys.stateIndex(state), { after, limit: PAGE });
        for (const { payoutId, facts } of page.payouts) this.#add(payoutId, facts);
        after = page.next;
      }
    }
  }

  /** Applies the events up to the newest. @returns false if events or their payouts are missing */
  async follow(connection: LedgerConnection): Promise<boolean> {
    for (;;) {
      const events = await readEventsAfter(connection, this.#newest, PAGE);
      if (events === undefined) return false;
      const touching = events.filter(({ change }) => change !== undefined && TOUCHING.includes(change.to));
      const payoutIds = [...new Set(touching.flatMap(({ change }) => change?.payoutId ?? []))];
      const read = await readSendFacts(connection, payoutIds);
      const facts = new Map(payoutIds.map((payoutId, index) => [payoutId, read[index]]));
      const at = connection.clock.now();
      if (!events.every((event) => this.apply(event, facts.get(event.change?.payoutId ?? ''), at))) return false;
      if (events.length < PAGE) return true;
    }
  }

  /**
   * @param facts - the payout's current facts; undefined if it was removed
   * @param at - on the clock's scale
   * @returns false if needed facts are missing
   */
  apply({ eventId, change }: StateEvent, facts: SendFacts | undefined, at: number): boolean {
    const after = this.#newest;
    this.#newest = eventId;
    if (change === undefined) return true;
    const { payoutId, from, to } = change;
    const before = this.#open.get(payoutId);
    const isOpen = OPEN_STATES.includes(to);
    if (!isOpen) this.#open.delete(payoutId);
    const isEnd = from !== undefined && OPEN_STATES.includes(from) && COSTLY_ENDS.includes(to);
    if (!isOpen && !isEnd) return true;
    if (facts === undefined) return false;
    if (isOpen && before === undefined) this.#add(payoutId, facts);
    if (isEnd) {
      const rate = higher(before?.rate, this.#rates.get(facts.paymentId));
      this.#ended.push({ debit: { ...facts, rate }, at, after });
      if (to === 'completed') this.#noteFee(facts);
    }
    return true;
  }

  /** Takes sends whose end was seen at least `settleMs` ago. */
  takeSettled(settleMs: number, now: number): readonly Debit[] {
    const first = this.#ended.findIndex(({ at }) => at + settleMs > now);
    const settled = first === -1 ? this.#ended : this.#ended.slice(0, first);
    this.#ended = this.#ended.slice(settled.length);
    return settled.map(({ debit }) => debit);
  }

  #add(payoutId: string, facts: PaymentFacts): void {
    this.#open.set(payoutId, { ...facts, fee: undefined, rate: this.#rates.get(facts.paymentId) });
  }

  #noteFee({ paymentId, fee }: SendFacts): void {
    if (fee === undefined || toUnits(fee) <= toUnits(this.#fees.get(paymentId) ?? '-1')) return;
    this.#fees.set(paymentId, fee);
  }
}

export function higher(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}
