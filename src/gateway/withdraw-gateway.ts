/** The gateway as the sender sees it: one prepared connection for one withdraw, and what came of it as a value. */

/** What a `/withdraw` asks for. Amounts are decimal strings. */
export interface WithdrawRequest {
  readonly paymentId: number;
  readonly amount: string;
  readonly addressTo: string;
  readonly symbol?: string;
}

/**
 * What is known after a `/withdraw`.
 *
 * - `accepted`: the gateway took it; the payment is on its way.
 * - `rejected`: the gateway answered that the call failed; nothing was paid.
 * - `not_sent`: not one byte of the request was written; sending it later is safe.
 * - `unknown`: it was written, perhaps only in part, and no trustworthy answer came. Sending it again might pay twice.
 */
export type WithdrawOutcome =
  | { readonly kind: 'accepted'; readonly txhash: string; readonly durationMs: number }
  | {
      readonly kind: 'rejected';
      readonly message: string;
      /** Of the answer. */
      readonly httpStatus?: number;
      readonly durationMs: number;
    }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | {
      readonly kind: 'unknown';
      readonly reason: string;
      /** Of the answer, where there was one. */
      readonly httpStatus?: number;
      readonly durationMs: number;
    };

/** A connection (TCP, and TLS where it applies) made ahead for exactly one withdraw. */
export interface WithdrawConnection {
  /** True while it is open and nothing has come on it. An answer that comes before the question is not ours. */
  readonly usable: boolean;
  /**
   * Signs and sends the request; the connection is used up by it. Never rejects.
   *
   * `mayWrite` is asked synchronously, directly before the first byte is handed to the socket, with no turn of the
   * event loop between. When it says no, or the connection is no longer usable, the outcome is `not_sent`.
   */
  withdraw(request: WithdrawRequest, options: { readonly mayWrite: () => boolean }): Promise<WithdrawOutcome>;
  /** Gives the connection back unused. Safe to call at any time. */
  close(): void;
}

export interface WithdrawGateway {
  /**
   * Makes a connection ready.
   * @throws GatewayUnavailableError when it cannot be made (DNS, refused, TLS, connect timeout, aborted by the signal)
   */
  openConnection(signal: AbortSignal): Promise<WithdrawConnection>;
}
