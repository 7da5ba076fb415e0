import { countApprovals, type ApprovalCount } from '../../control/count-approvals.js';
import type { Keyring } from '../../control/keyring.js';
import { decide, type Decision } from '../../control/policy/decide.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import { DEFAULT_USD, type Policy } from '../../control/policy/policy.js';
import { UsdRates } from '../../control/policy/usd-rates.js';
import { intentOf } from '../../control/signed-payout.js';
import { verifyIntent, type IntentVerdict } from '../../control/verify-intent.js';
import { NotVerifiedError } from '../../errors.js';
import { amountField } from '../../fields.js';
import type { Payout } from '../../ledger/payout.js';

/** What a host that sends nothing can say of a payout: what the policy decides, and what it did not know. */
export interface Explanation {
  readonly decision: Decision;
  readonly approvals: ApprovalCount;
  /** Why its signature does not count; undefined where it does, or nothing has to be signed. */
  readonly unverified: string | undefined;
  /** What only the worker knows, and how it counted here: sentences. */
  readonly unknown: readonly string[];
}

const NO_APPROVALS: ApprovalCount = { approvedBy: new Set(), rejectedBy: undefined, counted: [], refused: [] };
const EMPTY_WINDOW = { sum: () => 0n, freeAt: (_most: bigint, now: number) => now, ahead: 0n };
const UNKNOWN_RATE = 'only the worker knows rates that are not pinned';

/**
 * Asks the rules of a policy what they say of a payout.
 * @param now - wall clock, ms
 * @throws NotVerifiedError when somebody altered its amount to what is none
 */
export function explainPayout(
  payout: Payout,
  { policy, isListed }: LoadedPolicy,
  keyring: Keyring | undefined,
  now: number,
): Explanation {
  const verified =
    keyring &&
    verifyIntent(intentOf(policy.platformId, payout, payout.signed ?? UNSIGNED), payout.signed, keyring, now);
  const approvals = keyring && verified ? count(payout, policy, verified, keyring, now) : NO_APPROVALS;
  const { paymentId, amount, addressTo, signed } = payout;
  if (!amountField.safeParse(amount).success) {
    throw new NotVerifiedError(
      `A field of payout ${payout.payoutId} was altered: amount (got ${JSON.stringify(amount)})`,
    );
  }
  const known = new UsdRates(policy.usd ?? DEFAULT_USD).worthOf(paymentId, amount, now);
  const worth = known.kind === 'known' ? known : { kind: 'unknown' as const, reason: UNKNOWN_RATE };
  const decision = decide(
    policy,
    { paymentId, amount, addressTo, signer: signed?.key },
    {
      ...{ now, wallNow: now, worth, isListed, window: () => EMPTY_WINDOW, addressSeenAt: undefined },
      ...{ approvedBy: approvals.approvedBy, rejectedBy: approvals.rejectedBy },
    },
  );
  const unverified = verified?.kind === 'refused' ? verified.message : undefined;
  return { decision, approvals, unverified, unknown: [...findUnknown(policy, decision, worth.kind === 'known')] };
}

/** Never looked at: without a signature that is what the verdict says. */
const UNSIGNED = { issuedAt: '', expiresAt: '' };

function count(
  { payoutId, approvals = [], signed }: Payout,
  { platformId, approvalsExpireAfterMs: lifetimeMs }: Policy,
  verified: IntentVerdict,
  keyring: Keyring,
  now: number,
): ApprovalCount {
  if (verified.kind === 'refused') return NO_APPROVALS;
  const { intentHash: intent, signer } = verified;
  const about = { platformId, payoutId, intent, signedBy: signer.person, requestedBy: signed?.requestedBy };
  return countApprovals(about, approvals, { keyring, lifetimeMs, now });
}

function* findUnknown({ rules }: Policy, { all }: Decision, isWorthKnown: boolean): Generator<string> {
  const asked = rules.filter(({ name }) => all.some(({ rule }) => rule === name));
  if (asked.some(({ cap }) => cap?.withinMs !== undefined)) {
    yield 'what was spent: every window counts as empty here';
  }
  if (asked.some(({ over }) => over.kind === 'cool_down')) {
    yield 'when its address was first seen: it counts as seen now';
  }
  if (!isWorthKnown && asked.some(({ cap, when }) => cap?.unit === 'usd' || when.usdAbove !== undefined)) {
    yield 'what it is worth in dollars: rules in dollars let it wait here';
  }
}
