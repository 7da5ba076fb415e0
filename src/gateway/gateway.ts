import { errorCode, type ErrorCode, PayoutError } from '../base/errors.js';
import type { StopClass } from './stop-sign.js';
import type { Chain } from './wallet.js';

export { addressToField, paymentIdField, symbolField } from './payment-fields.js';
export { describeStop, isOfBalance, type StopClass, type StopSign, stopSignOf } from './stop-sign.js';

/**
 * The port to a payment gateway: what the rest of this package knows of it, with wallet.ts and, where one is opened,
 * open-gateway.ts. What a gateway does not tell is undefined, never made up.
 */
export interface Gateway extends WithdrawGateway, StatusGateway, FactsGateway, EventGateway {
  readonly capabilities: GatewayCapabilities;
  /**
   * The address for deposits of a currency, for one of the platform's own identifiers. Absent if the gateway has none.
   * @throws InvalidInputError if the request breaks a rule; else as {@link StatusGateway.getStatus}
   */
  getPaymentWallet?(request: { readonly paymentId: number; readonly orderId: string }): Promise<PaymentWallet>;
  /** Closes idle connections. Withdrawals under way continue. */
  close(): void;
}

/**
 * A gateway that a program or a module gives (docs/own-gateway.md). What it throws, or answers without a meaning, makes
 * a withdrawal `unknown` and a query an error.
 */
export interface OwnGateway extends Gateway {
  /**
   * What it is called: 1 to 64 of `A-Z a-z 0-9 . _ -`. An account's ledger is bound to it, and never sends through
   * another gateway.
   */
  readonly id: string;
}

/** The gateway as status polling sees it. */
export interface StatusGateway {
  /**
   * Progress of a payment.
   * @param gatewayId - from the withdrawal's acceptance
   * @throws InvalidInputError if it names no payment
   * @throws GatewayRejectedError if the gateway does not know the payment
   * @throws GatewayUnavailableError, GatewayInvalidResponseError
   */
  getStatus(gatewayId: string): Promise<PaymentStatus>;
  /**
   * The payment of an attempt, by the order id that its withdrawal was sent with. Absent if the gateway cannot look up so.
   * That it does not know the order id is no evidence that nothing was paid.
   * @throws as {@link getStatus}
   */
  findPayment?(orderId: string): Promise<FoundPayment>;
  /** @returns in what a status is not of this payment, or leaves it out; empty if it is the payment */
  comparePayment(status: PaymentStatus, payment: ComparedPayment): PaymentDifference[];
}

/** The gateway as its own messages (webhooks) are read. */
interface EventGateway {
  /**
   * Says which payment a message of the gateway is about. Nothing in it is believed: that payment is asked for sooner.
   * Absent if the gateway sends none.
   */
  readEvent?(message: EventMessage): EventReading;
}

/** A message as it was received. */
export interface EventMessage {
  /** With names in lowercase, as Node gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array;
}

/**
 * What is known of a message.
 *
 * - `payment`: the gateway signed it, and it names this payment.
 * - `unreadable`: the gateway signed it, and it names none.
 * - `forged`: the gateway did not sign these bytes.
 */
export type EventReading =
  | { readonly kind: 'payment'; readonly gatewayId: string }
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'forged' };

/** A payout, as far as a status is compared with it. */
export interface ComparedPayment extends Omit<WithdrawRequest, 'symbol'> {
  readonly symbol?: string | undefined;
}

/** A field in which a status and a payment differ. */
export interface PaymentDifference {
  readonly field: 'paymentId' | 'addressTo' | 'amount';
  /** Undefined if the gateway left it out, which contradicts nothing. */
  readonly actual: string | number | undefined;
  readonly expected: string | number;
}

/** @example amount is 7 at the gateway, 12.5 in the payout */
export function describeDifferences(differences: readonly PaymentDifference[]): string {
  return differences
    .map(
      ({ field, actual, expected }) => `${field} is ${actual ?? 'missing'} at the gateway, ${expected} in the payout`,
    )
    .join('; ');
}

/** The gateway's lists, for people and for rates. No send depends on them. Both throw as {@link StatusGateway.getStatus}. */
export interface FactsGateway {
  readCurrencies(): Promise<CurrencyList>;
  /** @param currencies - a code that only one of them has becomes its id */
  readBalances(currencies: readonly Currency[]): Promise<BalanceList>;
}

/** What a payment is called. */
export interface PaymentNames {
  /** At the gateway: by this it is asked for, and no two payouts share it. 1 to 256 printable characters. */
  readonly gatewayId: string;
  /** On the chain. Absent while the gateway does not tell it; several payments may share one transaction. */
  readonly txhash?: string;
}

/** What the gateway can pay. */
export interface CurrencyList {
  /** Those that were understood. */
  readonly currencies: readonly Currency[];
  /** Every item was understood: no other id is a currency. */
  readonly isWhole: boolean;
  /** The items as the gateway writes them. */
  readonly given: readonly Readonly<Record<string, unknown>>[];
}

/** A currency that the gateway lists. */
export interface Currency {
  readonly paymentId: number;
  /** Short, for operators, such as `USDT (TRC-20)`. */
  readonly name: string;
  /** A decimal string. */
  readonly usdRate: string | undefined;
  /** Its network in the gateway's words, such as `TRC-20`. */
  readonly network?: string | undefined;
  /** That network, if its addresses are known here. */
  readonly chain?: Chain | undefined;
  /** The contract of a token. */
  readonly contract?: string | undefined;
  /** The least and the most that one payout may be: decimal strings. */
  readonly minimum?: string | undefined;
  readonly maximum?: string | undefined;
  readonly decimals?: number | undefined;
  /** What the gateway takes for a payout, as it lists it: a decimal string. */
  readonly fee?: string | undefined;
}

/** What the account has at the gateway. */
export interface BalanceList {
  /** Undefined if their form was not understood. */
  readonly balances: readonly Balance[] | undefined;
  /** The balance as the gateway writes it. */
  readonly given: unknown;
}

/**
 * An account's holding of one currency, by id or by the account's symbol. Both are absent if the gateway names neither.
 */
export interface Balance {
  readonly paymentId: number | undefined;
  readonly symbol: string | undefined;
  /** A decimal string. */
  readonly amount: string;
}

/** The address for deposits. */
export interface PaymentWallet {
  readonly address: string;
  readonly destinationTag?: string;
}

/** Progress of a payment, with the details that the gateway returns. */
export interface PaymentStatus {
  /** `paid` and `failed` are final. */
  readonly kind: 'pending' | 'paid' | 'failed';
  /** As in {@link PaymentNames}; told in every status once it was told. */
  readonly txhash?: string;
  readonly paymentId?: number;
  readonly addressTo?: string;
  /** Decimal strings, every digit kept. */
  readonly amount?: string;
  /** The amount was a JSON number: one of the same double is equal to it. */
  readonly isAmountNumber?: true;
  readonly fee?: string;
}

/** A payment that was asked for by its order id. */
export interface FoundPayment extends PaymentStatus {
  /** By which it is polled; absent if the gateway does not tell it. */
  readonly gatewayId?: string;
}

/** The limits of the gateway. */
export interface GatewayCapabilities {
  /** Minimum time between the arrivals of two withdrawals, in ms of the gateway's clock. */
  readonly minWithdrawGapMs: number;
}

/** A payment. Amounts are decimal strings. */
export interface WithdrawRequest {
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string;
}

/**
 * What is known of a withdrawal that was written, perhaps only in part.
 *
 * - `accepted`: the gateway took it; the payment is on its way.
 * - `rejected`: the gateway responded that the call failed; nothing was paid.
 * - `unknown`: no trustworthy response came. Sending it again might pay twice.
 */
export type SentOutcome = Timed &
  (
    | ({ readonly kind: 'accepted' } & PaymentNames)
    | ({ readonly kind: 'rejected'; readonly message: string } & Responded)
    | ({ readonly kind: 'unknown'; readonly reason: string } & Responded)
  );

interface Timed {
  /** From the first byte written to the end of the exchange, in ms; absent in an outcome from a journal. */
  readonly durationMs?: number;
}

interface Responded {
  /** Absent without a complete response, and in an outcome from a journal. */
  readonly httpStatus?: number;
}

/** The outcome of a withdrawal. `not_sent`: not one byte was written; sending it later is safe. */
export type WithdrawOutcome = { readonly kind: 'not_sent'; readonly reason: string } | (SentOutcome & Required<Timed>);

/** What a withdrawal is sent with. */
export interface WithdrawOptions {
  readonly mayWrite: () => boolean;
  /**
   * A name of this attempt alone, by which the payment may be found: {@link StatusGateway.findPayment}. A gateway without
   * such names ignores it. 1 to 64 of `A-Z a-z 0-9 + / = - : . ,`.
   */
  readonly orderId?: string;
}

/** A connection (TCP, and TLS if used) prepared for exactly one withdrawal. */
export interface WithdrawConnection {
  /** Open, and nothing received. A response before the request is not ours. */
  readonly usable: boolean;
  /**
   * How long after the write this host may still send a byte of the request, in ms, if this process ends or stands
   * still. What this process has reset is not sent any more.
   */
  readonly resendsForMs: number;
  /**
   * Signs and sends the request, which uses the connection up. Never rejects.
   *
   * Calls `mayWrite` synchronously, directly before the first byte is handed to the socket, in the same turn of the
   * event loop. If it returns false, or the connection is no longer usable, the outcome is `not_sent`. Before an outcome
   * `unknown` the connection was reset.
   */
  withdraw(request: WithdrawRequest, options: WithdrawOptions): Promise<WithdrawOutcome>;
  /**
   * Ends a withdrawal under way as `unknown`, and drops what has not left this host.
   * @param reason - of the outcome
   */
  reset(reason: string): void;
  /** Closes the connection if it is unused. Safe to call at any time. */
  close(): void;
}

/** The gateway as the sender sees it. */
export interface WithdrawGateway {
  /**
   * Prepares a connection.
   * @throws GatewayUnavailableError if DNS, TCP, TLS or the time limit fails, or the signal aborts
   */
  openConnection(signal: AbortSignal): Promise<WithdrawConnection>;
  /**
   * Makes a call that moves no money, to learn whether the gateway responds. A refusal is a response.
   * @throws GatewayUnavailableError if it does not, or the signal aborts
   */
  probe(signal: AbortSignal): Promise<void>;
  /**
   * Decides whether a response to a withdrawal is about the account. In doubt it is: a pause costs an operator's check.
   * @param httpStatus - undefined if it is not known any more
   */
  classifyStop(message: string, httpStatus?: number): StopClass;
}

/**
 * Failures of gateway queries. None has the HTTP library's error as its cause, because that contains the signed
 * request.
 */

/** The gateway responded that the call failed. */
export class GatewayRejectedError extends PayoutError {
  readonly gatewayMessage: string;

  constructor(endpoint: string, gatewayMessage: string) {
    super('GATEWAY_REJECTED', `The gateway refused /${endpoint}: ${gatewayMessage}`);
    this.gatewayMessage = gatewayMessage;
  }
}

/** No complete response came: the gateway or something before it is unreachable, slow or failing. */
export class GatewayUnavailableError extends PayoutError {
  /** Of an error response; undefined if none came. */
  readonly httpStatus: number | undefined;

  constructor(message: string, httpStatus?: number) {
    super('GATEWAY_UNAVAILABLE', message);
    this.httpStatus = httpStatus;
  }
}

/** Why a query failed, for operators: a gateway that responds with HTTP 500 is not down. */
export function queryFailureCode(error: unknown): ErrorCode | undefined {
  const hasResponded = error instanceof GatewayUnavailableError && error.httpStatus !== undefined;
  return hasResponded ? 'GATEWAY_INVALID_RESPONSE' : errorCode(error);
}

/** The response is not one that the API describes. */
export class GatewayInvalidResponseError extends PayoutError {
  constructor(endpoint: string, problem: string) {
    super('GATEWAY_INVALID_RESPONSE', `The gateway's response to /${endpoint} is not as documented: ${problem}`);
  }
}

/** Describes a failure by its message or code only. An HTTP library's error contains the signed request. */
export function describeFailure(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  if (typeof message === 'string' && message !== '') return message;
  // Node's error for a host with several unreachable addresses has a code but no message.
  return typeof code === 'string' ? code : 'no reason was given';
}
