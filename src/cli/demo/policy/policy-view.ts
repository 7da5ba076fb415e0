import type { Payout } from '../../../ledger/payout.js';
import type { Payment } from '../../../sandbox/index.js';

/** Everything by which the demo of a policy is judged. */
export interface PolicyView {
  readonly payments: readonly Payment[];
  /** As Redis has them at the end. */
  readonly payouts: ReadonlyMap<string, Payout>;
  /** How many persons had to approve the large payout at first, and after one had approved and the shop's own second key. */
  readonly asked: number | undefined;
  readonly afterOwnKey: number | undefined;
}
