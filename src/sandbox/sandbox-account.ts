import { fromUnits, toUnits, worthInUnits } from '../base/decimal.js';
import { InvalidInputError } from '../base/errors.js';
import { gatewayIdKey } from '../base/fields.js';
import { ENDPOINT_NAMES, type EndpointName } from './endpoint-name.js';
import type { FaultKind } from './fault-rule.js';
import type { SandboxSettings } from './sandbox-options.js';

/** One `/withdraw` or `/v2/withdraw` that reached the gateway, accepted or not. */
export interface Arrival {
  /** Milliseconds on the sandbox's monotonic clock, after the whole request was received. */
  readonly atMs: number;
  /** Milliseconds since the previous arrival; null for the first. */
  readonly gapMs: number | null;
  readonly addressTo: string | null;
  readonly amount: string | null;
}

class ArrivalLog {
  readonly #arrivals: Arrival[] = [];
  #smallestGapMs: number | null = null;

  record(atMs: number, payment: { addressTo: string | null; amount: string | null }): Arrival {
    const previous = this.#arrivals.at(-1);
    const gapMs = previous === undefined ? null : atMs - previous.atMs;
    const arrival = { atMs, gapMs, addressTo: payment.addressTo, amount: payment.amount };
    this.#arrivals.push(arrival);
    if (gapMs !== null) this.#smallestGapMs = Math.min(gapMs, this.#smallestGapMs ?? gapMs);
    return arrival;
  }

  get all(): readonly Arrival[] {
    return this.#arrivals;
  }

  get smallestGapMs(): number | null {
    return this.#smallestGapMs;
  }

  get meanGapMs(): number | null {
    const [first, last] = [this.#arrivals.at(0), this.#arrivals.at(-1)];
    if (first === undefined || last === undefined || this.#arrivals.length < 2) return null;
    return (last.atMs - first.atMs) / (this.#arrivals.length - 1);
  }
}

/** A payment that the sandbox made. */
export interface Payment {
  /** What the generation that was asked to pay calls it: `txhash` or `transactionId`. */
  readonly gatewayId: string;
  /** The first generation names the payment by it; the second tells it with the final status. */
  readonly txhash: string;
  /** The second generation names the payment by it. */
  readonly transactionId: string;
  /** The name that the merchant gave it, if the second generation was asked with one. */
  readonly orderId?: string;
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

/** What a call names a payment by. */
export type PaymentName =
  { readonly txhash: string } | { readonly transactionId: string } | { readonly orderId: string };

class PaymentBook {
  readonly #byTxhash = new Map<string, Payment>();
  readonly #byTransactionId = new Map<string, Payment>();
  readonly #byOrderId = new Map<string, Payment>();
  readonly #countByAddress = new Map<string, number>();
  readonly #groups = new Map<string, { addressTo: string; amount: string; txhashes: string[] }>();

  add(payment: Payment): void {
    const { txhash, addressTo, amount } = payment;
    this.#byTxhash.set(gatewayIdKey(txhash), payment);
    this.#byTransactionId.set(payment.transactionId, payment);
    const { orderId } = payment;
    if (orderId !== undefined && !this.#byOrderId.has(orderId)) this.#byOrderId.set(orderId, payment);
    this.#countByAddress.set(addressTo, (this.#countByAddress.get(addressTo) ?? 0) + 1);
    // An amount contains no space, so no two groups share a key.
    const key = `${amount} ${addressTo}`;
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, { addressTo, amount, txhashes: [txhash] });
    else group.txhashes.push(txhash);
  }

  /** By an order id that was used twice, the first payment. */
  find(name: PaymentName): Payment | undefined {
    if ('txhash' in name) return this.#byTxhash.get(gatewayIdKey(name.txhash));
    return 'transactionId' in name ? this.#byTransactionId.get(name.transactionId) : this.#byOrderId.get(name.orderId);
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

/** What the sandbox saw of one account: plain data, as from `GET /__sandbox/stats`. */
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
  /** Milliseconds on the sandbox's monotonic clock. */
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

type AccountSettings = SandboxSettings['accounts'][number];

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

  /** @param minGapMs - the shortest allowed time between two withdrawals */
  constructor({ platformId, secretKey, balance }: AccountSettings, minGapMs: number) {
    this.platformId = platformId;
    this.#secretKey = secretKey;
    this.#minGapMs = minGapMs;
    this.#balanceUnits = toUnits(balance);
  }

  isSignerOf(call: { isSignedWith(secretKey: string): boolean }): boolean {
    return call.isSignedWith(this.#secretKey);
  }

  /** Signs for the merchant, as the gateway does in a message of its own. */
  signWith(sign: (secretKey: string) => string): string {
    return sign(this.#secretKey);
  }

  countCall(endpoint: EndpointName, faults: readonly FaultKind[]): void {
    this.#calls.set(endpoint, (this.#calls.get(endpoint) ?? 0) + 1);
    for (const kind of faults) this.#faultsFired.set(kind, (this.#faultsFired.get(kind) ?? 0) + 1);
  }

  /**
   * Records a withdrawal's arrival, and blocks the account if it came too soon after the previous one.
   * @returns whether this call blocked it
   * @see docs/gateway-api-v1.md#limits
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

  /** In USD, as a decimal string. */
  get balance(): string {
    return fromUnits(this.#balanceUnits);
  }

  /** Deducts an amount's worth. @returns false, without a deduction, if the balance is too low */
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

export class AccountRegistry {
  readonly #settings: ReadonlyMap<number, AccountSettings>;
  readonly #minGapMs: number;
  readonly #accounts = new Map<number, SandboxAccount>();

  constructor({ accounts, minGapMs }: SandboxSettings) {
    this.#settings = new Map(accounts.map((account) => [account.platformId, account]));
    this.#minGapMs = minGapMs;
    for (const platformId of this.#settings.keys()) this.reset(platformId);
  }

  find(platformId: number | undefined): SandboxAccount | undefined {
    return platformId === undefined ? undefined : this.#accounts.get(platformId);
  }

  /**
   * The account with this id, or the only one.
   * @throws InvalidInputError if there is no such account, or several and no id
   */
  get(platformId?: number): SandboxAccount {
    const [only, ...others] = this.#accounts.values();
    const account = platformId === undefined && others.length === 0 ? only : this.find(platformId);
    if (account !== undefined) return account;
    const message = `must be one of ${[...this.#accounts.keys()].join(', ')}`;
    throw new InvalidInputError([{ field: 'platformId', message }]);
  }

  reset(platformId: number): void {
    const settings = this.#settings.get(platformId);
    if (settings !== undefined) this.#accounts.set(platformId, new SandboxAccount(settings, this.#minGapMs));
  }
}
