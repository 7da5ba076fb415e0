import type { WithdrawGateway } from './withdraw-gateway.js';

/**
 * A payment gateway as the worker needs it. An implementation for another gateway replaces the rest of this folder, its
 * field rules (payment-fields.ts) included.
 */
export interface Gateway extends WithdrawGateway, StatusGateway {
  readonly capabilities: GatewayCapabilities;
}

/** The gateway as status polling sees it. */
export interface StatusGateway {
  /**
   * How far a payment is.
   * @param txhash - as the withdrawal's acceptance named it
   * @throws InvalidInputError when the txhash names no transaction
   * @throws GatewayRejectedError when the gateway does not know the transaction
   * @throws GatewayUnavailableError when no complete response came
   * @throws GatewayInvalidResponseError when the response is not as documented
   */
  getStatus(txhash: string): Promise<PaymentStatus>;
}

/** How far a payment is, with the payment's details as far as the gateway returns them. */
export interface PaymentStatus {
  /** `paid` and `failed` are final. */
  readonly kind: 'pending' | 'paid' | 'failed';
  readonly paymentId?: number;
  readonly addressTo?: string;
  /** Decimal strings, every digit kept. */
  readonly amount?: string;
  /** The gateway wrote the amount as a JSON number: one of the same double is equal to it. */
  readonly isAmountNumber?: true;
  readonly fee?: string;
}

/** What the gateway allows. */
export interface GatewayCapabilities {
  /** The shortest time between the arrivals of two withdrawals, in ms of the gateway's clock. */
  readonly minWithdrawGapMs: number;
}
