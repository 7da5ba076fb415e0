import fc from 'fast-check';

/** What the gateway does with a withdraw that arrives. */
export type Verdict = 'paid' | 'rejected' | 'paid, response lost' | 'paid, response unclear' | 'never arrives';

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
  readonly verdicts: readonly Verdict[];
  /** What the gateway responds when it is asked about a transaction, time after time; then always 1. */
  readonly approvals: readonly (0 | 1 | 2)[];
  readonly acts: readonly Act[];
  /** After how many turns a second worker takes the lease over. */
  readonly secondWorkerAfter: number | undefined;
  /** The first worker is killed at this command to the ledger. */
  readonly killedAt: number | undefined;
  /** The commands to the ledger, counted, whose replies are lost. */
  readonly lostReplies: readonly number[];
}

const payoutId = fc.constantFrom('p1', 'p2', 'p3');
const after = fc.nat(25);

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constantFrom('cancel' as const, 'retry' as const), payoutId, after }),
  fc.record({
    kind: fc.constant('resolve' as const),
    payoutId,
    after,
    as: fc.constantFrom('the truth' as const, 'written off' as const, 'not sent, unchecked' as const),
  }),
  fc.record({ kind: fc.constantFrom('pause' as const, 'resume' as const), after }),
);

export const racePlans: fc.Arbitrary<RacePlan> = fc.record({
  payouts: fc.integer({ min: 1, max: 3 }),
  verdicts: fc.array(
    fc.constantFrom<Verdict>(
      'paid',
      'paid',
      'rejected',
      'paid, response lost',
      'paid, response unclear',
      'never arrives',
    ),
    { maxLength: 5 },
  ),
  approvals: fc.array(fc.constantFrom<0 | 1 | 2>(0, 1, 2), { maxLength: 3 }),
  acts: fc.array(act, { maxLength: 6 }),
  secondWorkerAfter: fc.option(fc.nat(40), { nil: undefined }),
  killedAt: fc.option(fc.nat(40), { nil: undefined, freq: 4 }),
  lostReplies: fc.uniqueArray(fc.nat(60), { maxLength: 2 }),
});
