import type { Arrival } from './arrival-log.js';
import type { FaultRule } from './fault-rule.js';
import type { Payment } from './payment-book.js';
import type { SandboxStats } from './sandbox-account.js';

/**
 * What can be asked of a sandbox and done to it, in the same process or over HTTP under `/__sandbox/`.
 * `platformId` may be left out where there is one account only.
 */
export interface SandboxControls {
  /** @throws InvalidInputError when there is no such account; so do all that take a `platformId` */
  stats(platformId?: number): SandboxStats;
  /** Every withdraw that arrived, in that order: who came too soon after whom. */
  arrivals(platformId?: number): readonly Arrival[];
  /** Every payment that was made, in that order. */
  payments(platformId?: number): readonly Payment[];
  /** The faults in force and how often each has fired. */
  faults(): readonly (FaultRule & { readonly fired: number })[];
  /** Puts these faults in the place of all others. @throws InvalidInputError naming the rule that is broken */
  setFaults(faults: readonly FaultRule[]): void;
  /** @throws InvalidInputError naming the rule that is broken */
  addFaults(faults: readonly FaultRule[]): void;
  unblock(platformId?: number): void;
  /** Makes an account as it was at the start: full balance, no payments, no statistics, not blocked. */
  reset(platformId?: number): void;
  /** Holds every answer back until `continue()`. Calls still arrive and are processed. */
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
  /** Ends every connection, also those that wait for an answer. Safe to call twice. */
  close(): Promise<void>;
}
