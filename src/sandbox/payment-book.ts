import { txhashKey } from '../fields.js';

/** A payment that the sandbox made. */
export interface Payment {
  readonly txhash: string;
  readonly paymentId: number;
  readonly addressTo: string;
  /** Decimal string without trailing zeros. */
  readonly amount: string;
  readonly fee: string;
  /** Milliseconds on the sandbox's monotonic clock. */
  readonly acceptedAtMs: number;
  /** Its `approve` once it is settled: 1 completed, 2 error. */
  readonly settlesAs: 1 | 2;
}

/** Payments with the same recipient and amount: more than one is suspicious. */
export interface PaymentGroup {
  readonly addressTo: string;
  readonly amount: string;
  readonly txhashes: readonly string[];
}

/** Every payment of one account, in the order in which it was made. */
export class PaymentBook {
  readonly #byTxhash = new Map<string, Payment>();
  readonly #countByAddress = new Map<string, number>();
  readonly #groups = new Map<string, { addressTo: string; amount: string; txhashes: string[] }>();

  add(payment: Payment): void {
    const { txhash, addressTo, amount } = payment;
    this.#byTxhash.set(txhashKey(txhash), payment);
    this.#countByAddress.set(addressTo, (this.#countByAddress.get(addressTo) ?? 0) + 1);
    // An amount contains no space, so no two groups share a key.
    const key = `${amount} ${addressTo}`;
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, { addressTo, amount, txhashes: [txhash] });
    else group.txhashes.push(txhash);
  }

  find(txhash: string): Payment | undefined {
    return this.#byTxhash.get(txhashKey(txhash));
  }

  get all(): readonly Payment[] {
    return [...this.#byTxhash.values()];
  }

  get count(): number {
    return this.#byTxhash.size;
  }

  get countByAddress(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#countByAddress);
  }

  get groups(): readonly PaymentGroup[] {
    return [...this.#groups.values()];
  }
}
