import type { IncomingHttpHeaders } from 'node:http';
import type { EndpointName } from './endpoint-name.js';
import type { PaymentName, SandboxAccount } from './sandbox-account.js';
import type { SandboxResponse } from './response.js';

/** One generation of the gateway's API. Accounts, pace, blocks and faults are the same for both. */
export interface Dialect {
  readonly paths: Readonly<Record<EndpointName, string>>;
  /** The only content type of a request. */
  readonly contentType: string;
  /** @returns undefined if the body is not well-formed */
  parse(endpoint: EndpointName, body: Buffer, headers: IncomingHttpHeaders): SandboxCall | undefined;
  /** What the API answers to a body that is not. */
  readonly malformed: string;
  readonly unknownPlatform: string;
  /** The answer to a call that failed. */
  failed(endpoint: EndpointName, message: string): SandboxResponse;
}

/** A parsed request. */
export interface SandboxCall {
  readonly platformId: number | undefined;
  readonly addressTo: string | undefined;
  readonly amount: string | undefined;
  /** The payment that the call asks about. */
  readonly payment: PaymentName | undefined;
  /** Whether the signature is of the bytes as they came. */
  isSignedWith(secretKey: string): boolean;
  /** @returns the message of a failure, or the fields of a success */
  handle(context: CallContext): string | Readonly<Record<string, unknown>>;
}

/** The account that has signed a call, and what processing needs. */
export interface CallContext {
  readonly account: SandboxAccount;
  readonly nowMs: number;
  readonly settlement: Settlement;
}

export interface Settlement {
  /** Milliseconds from the withdrawal until `approve` leaves 0. */
  readonly settleAfterMs: number;
  /** Whether a payment to this recipient fails. Called once per payment. */
  fails(addressTo: string): boolean;
}
