/** Sending: one prepared connection for one withdrawal, and its outcome as a value. */

/** What to pay to whom. Amounts are decimal strings. */
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
    | { readonly kind: 'accepted'; readonly txhash: string }
    | ({ readonly kind: 'rejected'; readonly message: string } & Responded)
    | ({ readonly kind: 'unknown'; readonly reason: string } & Responded)
  );

interface Timed {
  /** From the first byte written to the end of the exchange, in ms; absent in an outcome read from a journal. */
  readonly durationMs?: number;
}

interface Responded {
  /** Absent if no complete response came, and in an outcome read from a journal. */
  readonly httpStatus?: number;
}

/** What is known after a withdrawal. `not_sent`: not one byte of the request was written; sending it later is safe. */
export type WithdrawOutcome = { readonly kind: 'not_sent'; readonly reason: string } | (SentOutcome & Required<Timed>);

/** A connection (TCP, and TLS where it applies) prepared for exactly one withdrawal. */
export interface WithdrawConnection {
  /** True while it is open and nothing has been received. A response that comes before the request is not ours. */
  readonly usable: boolean;
  /**
   * Signs and sends the request, which uses the connection up. Never rejects.
   *
   * `mayWrite` is called synchronously, directly before the first byte is handed to the socket, in the same turn of the
   * event loop. If it returns false, or the connection is no longer usable, the outcome is `not_sent`.
   */
  withdraw(request: WithdrawRequest, options: { readonly mayWrite: () => boolean }): Promise<WithdrawOutcome>;
  /** Closes the connection if it is unused. Safe to call at any time. */
  close(): void;
}

/** The gateway as the sender sees it. */
export interface WithdrawGateway {
  /**
   * Prepares a connection.
   * @throws GatewayUnavailableError when it cannot be made (DNS, refused, TLS, connect timeout, aborted by the signal)
   */
  openConnection(signal: AbortSignal): Promise<WithdrawConnection>;
  /**
   * Asks for something that moves no money, to learn whether the gateway responds at all. A refusal is a response.
   * @throws GatewayUnavailableError when it does not, or the signal was aborted
   */
  probe(signal: AbortSignal): Promise<void>;
}
