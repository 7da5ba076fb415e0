import { ArrivalLog } from './arrival-log.js';
import { ENDPOINT_NAMES, type EndpointName } from './endpoint.js';
import type { FaultKind } from './fault-rule.js';
import { fromUnits, toUnits, worthInUnits } from '../decimal.js';
import { PaymentBook, type PaymentGroup } from './payment-book.js';
import type { SignedForm } from './signed-form.js';

/** What the sandbox saw of one account; plain data, as `GET /__sandbox/stats` returns it. */
export interface SandboxStats {
  readonly platformId: number;
  readonly blocked: boolean;
  readonly blockedReason: string | null;
  /** Decimal string, in USD. */
  readonly balance: string;
  /** Calls received completely, whatever their outcome. */
  readonly calls: Readonly<Record<EndpointName, number>>;
  /** Authenticated `/withdraw` calls that arrived. */
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
  /** Recipients and amounts that were paid more than once. */
  readonly duplicatePayments: readonly PaymentGroup[];
  readonly faultsFired: Readonly<Partial<Record<FaultKind, number>>>;
}

export interface SandboxAccountOptions {
  readonly platformId: number;
  readonly secretKey: string;
  readonly balance: string;
  /** The shortest allowed time between two withdrawals, in milliseconds. */
  readonly minGapMs: number;
}

/** One merchant platform: its balance, its payments, and whether it kept to the limit. */
export class SandboxAccount {
  readonly platformId: number;
  readonly arrivals = new ArrivalLog();
  readonly payments = new PaymentBook();
  /** Private, so that no serialised account shows it. */
  readonly #secretKey: string;
  readonly #minGapMs: number;
  readonly #calls = new Map<EndpointName, number>();
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

  countCall(endpoint: EndpointName, faults: readonly FaultKind[]): void {
    this.#calls.set(endpoint, (this.#calls.get(endpoint) ?? 0) + 1);
    for (const kind of faults) this.#faultsFired.set(kind, (this.#faultsFired.get(kind) ?? 0) + 1);
  }

  /**
   * Records the arrival of a withdrawal, and blocks the account if it came too soon after the previous one.
   * @returns true when this call is the one that blocked it
   * @see docs/gateway-api.md#limits
   */
  arrive(atMs: number, payment: { addressTo: string | null; amount: string | null }): boolean {
    const { gapMs } = this.arrivals.record(atMs, payment);
    if (this.isBlocked || gapMs === null || gapMs >= this.#minGapMs) return false;
    this.#blockedReason = `two withdrawals arrived ${gapMs} ms apart, the minimum is ${this.#minGapMs} ms`;
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

  /** Deducts what an amount is worth; false, and nothing deducted, if the balance is too low. */
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
      calls: Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, this.#calls.get(name) ?? 0])) as Record<
        EndpointName,
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
