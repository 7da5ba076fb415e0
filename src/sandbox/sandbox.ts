import type { Arrival } from './arrival-log.js';
import type { FaultRule } from './fault-rule.js';
import type { Payment } from './payment-book.js';
import type { SandboxStats } from './sandbox-account.js';

/**
 * Queries and controls of a sandbox, in the same process or over HTTP under `/__sandbox/`.
 * `platformId` may be left out if there is only one account.
 */
export interface SandboxControls {
  /** @throws InvalidInputError when there is no such account; so do all that take a `platformId` */
  stats(platformId?: number): SandboxStats;
  /** Every withdrawal that arrived, in order of arrival, with the gap before it. */
  arrivals(platformId?: number): readonly Arrival[];
  /** Every payment, in the order in which it was made. */
  payments(platformId?: number): readonly Payment[];
  /** The faults in force and how often each has fired. */
  faults(): readonly (FaultRule & { readonly fired: number })[];
  /** Replaces all faults. @throws InvalidInputError naming the rule that is broken */
  setFaults(faults: readonly FaultRule[]): void;
  /** @throws InvalidInputError naming the rule that is broken */
  addFaults(faults: readonly FaultRule[]): void;
  unblock(platformId?: number): void;
  /** Restores an account's initial state: full balance, no payments, no statistics, not blocked. */
  reset(platformId?: number): void;
  /** Holds every response back until `continue()`. Calls still arrive and are processed. */
  pause(): void;
  continue(): void;
}

/** A running sandbox. */
export interface Sandbox extends SandboxControls {
  /** The `GATEWAY_BASE_URL` for clients, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** The seed of this run, to repeat its latencies. */
  readonly seed: number;
  /** Closes every connection, also those that wait for a response. Safe to call twice. */
  close(): Promise<void>;
}
