import fc from 'fast-check';
import type { Fate } from '../../world/gateway-link.js';

/** What an operator does with a payout, as soon as that is possible. */
export type Act =
  | { readonly kind: 'cancel' | 'retry'; readonly payoutId: string; readonly after: number }
  /** `not sent, unchecked`: without waiting and without a check of the gateway, so it may be false. */
  | {
      readonly kind: 'resolve';
      readonly payoutId: string;
      readonly after: number;
      readonly as: 'the truth' | 'written off' | 'not sent, unchecked';
    }
  | { readonly kind: 'pause' | 'resume'; readonly after: number };

/** Everything about an ordering that is not the order itself. */
export interface RacePlan {
  readonly payouts: number;
  readonly fates: readonly Fate[];
  /** What the gateway responds when it is asked about a transaction, one time after the other; then always `paid`. */
  readonly statuses: readonly ('pending' | 'paid' | 'failed')[];
  readonly acts: readonly Act[];
  /** After how many turns a second worker starts. */
  readonly secondWorkerAfter: number | undefined;
  /** The first worker is killed at this step of its own. */
  readonly killedAt: number | undefined;
  /** The replies of the ledger to workers, counted, that are lost. */
  readonly lostReplies: readonly number[];
}

const payoutId = fc.constantFrom('p1', 'p2', 'p3');
const after = fc.nat(25);

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constantFrom('cancel', 'retry'), payoutId, after }),
  fc.record({
    ...{ kind: fc.constant('resolve'), payoutId, after },
    as: fc.constantFrom('the truth', 'written off', 'not sent, unchecked'),
  }),
  fc.record({ kind: fc.constantFrom('pause', 'resume'), after }),
);

export const racePlans: fc.Arbitrary<RacePlan> = fc.record({
  payouts: fc.integer({ min: 1, max: 3 }),
  fates: fc.array(fc.constantFrom('paid', 'paid', 'rejected', 'unheard', 'unheard', 'never arrives'), { maxLength: 5 }),
  statuses: fc.array(fc.constantFrom('pending', 'paid', 'failed'), { maxLength: 3 }),
  acts: fc.array(act, { maxLength: 6 }),
  secondWorkerAfter: fc.option(fc.nat(40), { nil: undefined }),
  killedAt: fc.option(fc.nat(80), { nil: undefined, freq: 4 }),
  lostReplies: fc.uniqueArray(fc.nat(60), { maxLength: 2 }),
});
