import type { WithdrawGateway } from './withdraw-gateway.js';

/**
 * A payment gateway as the worker needs it. Another gateway replaces the rest of this folder, including its field rules
 * (payment-fields.ts).
 */
export interface Gateway extends WithdrawGateway, StatusGateway {
  readonly capabilities: GatewayCapabilities;
}

/** The gateway as status polling sees it. */
export interface StatusGateway {
  /**
   * Progress of a payment.
   * @param txhash - from the withdrawal's acceptance
   * @throws InvalidInputError if the txhash names no transaction
   * @throws GatewayRejectedError if the gateway does not know the transaction
   * @throws GatewayUnavailableError, GatewayInvalidResponseError
   */
  getStatus(txhash: string): Promise<PaymentStatus>;
}

/** Progress of a payment, with the details that the gateway returns. */
export interface PaymentStatus {
  /** `paid` and `failed` are final. */
  readonly kind: 'pending' | 'paid' | 'failed';
  readonly paymentId?: number;
  readonly addressTo?: string;
  /** Decimal strings, every digit kept. */
  readonly amount?: string;
  /** The amount was a JSON number: one of the same double is equal to it. */
  readonly isAmountNumber?: true;
  readonly fee?: string;
}

/** The limits of the gateway. */
export interface GatewayCapabilities {
  /** Minimum time between the arrivals of two withdrawals, in ms of the gateway's clock. */
  readonly minWithdrawGapMs: number;
}
