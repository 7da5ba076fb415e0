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
    | { readonly kind: 'accepted'; readonly txhash: string }
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

/** A connection (TCP, and TLS if used) prepared for exactly one withdrawal. */
export interface WithdrawConnection {
  /** Open, and nothing received. A response before the request is not ours. */
  readonly usable: boolean;
  /**
   * Signs and sends the request, which uses the connection up. Never rejects.
   *
   * Calls `mayWrite` synchronously, directly before the first byte is handed to the socket, in the same turn of the
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
   * @throws GatewayUnavailableError if DNS, TCP, TLS or the time limit fails, or the signal aborts
   */
  openConnection(signal: AbortSignal): Promise<WithdrawConnection>;
  /**
   * Makes a call that moves no money, to learn whether the gateway responds. A refusal is a response.
   * @throws GatewayUnavailableError if it does not, or the signal aborts
   */
  probe(signal: AbortSignal): Promise<void>;
}
