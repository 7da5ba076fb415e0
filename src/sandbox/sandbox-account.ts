import { ArrivalLog } from './arrival-log.js';
import { ENDPOINTS, type Endpoint } from './endpoint.js';
import type { FaultKind } from './fault-rule.js';
import { fromUnits, toUnits, worthInUnits } from './money.js';
import { PaymentBook, type PaymentGroup } from './payment-book.js';
import type { SignedForm } from './signed-form.js';

/** What the sandbox saw of one account; plain data, and what `GET /__sandbox/stats` answers. */
export interface SandboxStats {
  readonly platformId: number;
  readonly blocked: boolean;
  readonly blockedReason: string | null;
  /** Decimal string, in USD. */
  readonly balance: string;
  /** Calls read whole, whatever became of them. */
  readonly calls: Readonly<Record<Endpoint, number>>;
  /** Authenticated `/withdraw` calls that were not lost on their way. */
  readonly arrivals: number;
  /** When each arrived, in milliseconds on the sandbox's monotonic clock. */
  readonly arrivalsAtMs: readonly number[];
  readonly smallestGapMs: number | null;
  readonly meanGapMs: number | null;
  readonly payments: number;
  readonly paymentsPerAddress: Readonly<Record<string, number>>;
  readonly paymentsPerAddressAndAmount: readonly {
    readonly addressTo: string;
    readonly amount: string;
    readonly count: number;
  }[];
  /** Recipient and amount that were paid more than once. */
  readonly duplicatePayments: readonly PaymentGroup[];
  readonly faultsFired: Readonly<Partial<Record<FaultKind, number>>>;
}

export interface SandboxAccountOptions {
  readonly platformId: number;
  readonly secretKey: string;
  readonly balance: string;
  /** The smallest allowed distance of two withdraws, in milliseconds. */
  readonly minGapMs: number;
}

/** One merchant platform: its money, its payments, and whether it kept to the limit. */
export class SandboxAccount {
  readonly platformId: number;
  readonly arrivals = new ArrivalLog();
  readonly payments = new PaymentBook();
  /** Private, so that nothing that serialises an account can show it. */
  readonly #secretKey: string;
  readonly #minGapMs: number;
  readonly #calls = new Map<Endpoint, number>();
  readonly #faultsFired = new Map<FaultKind, number>();
  #balanceUnits: bigint;
  #blockedReason: string | null = null;

  constructor(options: SandboxAccountOptions) {
    this.platformId = options.platformId;
    this.#secretKey = options.secretKey;
    this.#minGapMs = options.minGapMs;
    this.#balanceUnits = toUnits(options.balance);
  }

  isSignerOf(form: SignedForm): boolean {
    return form.isSignedWith(this.#secretKey);
  }

  countCall(endpoint: Endpoint, faults: readonly FaultKind[]): void {
    this.#calls.set(endpoint, (this.#calls.get(endpoint) ?? 0) + 1);
    for (const kind of faults) this.#faultsFired.set(kind, (this.#faultsFired.get(kind) ?? 0) + 1);
  }

  /**
   * Stamps a withdraw, and blocks the account where it came too soon after the one before (API document, part 8).
   * @returns true when this call is the one that blocked it
   */
  arrive(atMs: number, payment: { addressTo: string | null; amount: string | null }): boolean {
    const { gapMs } = this.arrivals.record(atMs, payment);
    if (this.isBlocked || gapMs === null || gapMs >= this.#minGapMs) return false;
    this.#blockedReason = `two withdraws arrived ${gapMs} ms apart, allowed are ${this.#minGapMs} ms`;
    return true;
  }

  get isBlocked(): boolean {
    return this.#blockedReason !== null;
  }

  unblock(): void {
    this.#blockedReason = null;
  }

  /** The balance in USD, as a decimal string. */
  get balance(): string {
    return fromUnits(this.#balanceUnits);
  }

  /** Takes what an amount is worth from the balance; false, and nothing taken, where that is too little. */
  take(amount: string, usdRate: string): boolean {
    const worth = worthInUnits(amount, usdRate);
    if (worth > this.#balanceUnits) return false;
    this.#balanceUnits -= worth;
    return true;
  }

  stats(): SandboxStats {
    const { arrivals, payments } = this;
    return {
      platformId: this.platformId,
      blocked: this.isBlocked,
      blockedReason: this.#blockedReason,
      balance: this.balance,
      calls: Object.fromEntries(ENDPOINTS.map((name) => [name, this.#calls.get(name) ?? 0])) as Record<
        Endpoint,
        number
      >,
      arrivals: arrivals.all.length,
      arrivalsAtMs: arrivals.all.map(({ atMs }) => atMs),
      smallestGapMs: arrivals.smallestGapMs,
      meanGapMs: arrivals.meanGapMs,
      payments: payments.count,
      paymentsPerAddress: payments.countByAddress,
      paymentsPerAddressAndAmount: payments.groups.map(({ addressTo, amount, txhashes }) => ({
        addressTo,
        amount,
        count: txhashes.length,
      })),
      duplicatePayments: payments.groups
        .filter(({ txhashes }) => txhashes.length > 1)
        .map((group) => ({ ...group, txhashes: [...group.txhashes] })),
      faultsFired: Object.fromEntries(this.#faultsFired),
    };
  }
}
