import { toUnits } from '../../base/decimal.js';
import { NotVerifiedError } from '../../base/errors.js';
import { amountField } from '../../base/fields.js';
import { formatTimeUtc, toIsoTime } from '../../base/format.js';
import type { Payout } from '../../ledger/payout.js';
import type { RuleUsage } from '../../ledger/reads/policy-report.js';
import { identify } from '../approvals/approvable-payout.js';
import { type ApprovalCount, countApprovals, NO_APPROVALS } from '../approvals/approval.js';
import { countRejections } from '../approvals/rejection.js';
import type { BoundKeyring } from '../keys/keyring.js';
import { findStranger } from '../keys/person.js';
import { decide, type Decision } from '../policy/decide.js';
import type { LoadedPolicy } from '../policy/policy-file.js';
import { DEFAULT_USD, type Policy } from '../policy/policy.js';
import { type Cap, isInDollars, type WindowView } from '../policy/rule.js';
import { UsdRates } from '../policy/usd-rates.js';
import { worthInMicros } from '../policy/values.js';

/** The policy's decision, as far as a host that sends nothing can know it. */
export interface Explanation {
  readonly decision: Decision;
  readonly approvals: ApprovalCount;
  /** Whose rejection holds it, before every rule. */
  readonly rejectedBy: readonly string[];
  readonly unverified: string | undefined;
  /** What only the worker knows, and how it counted here: sentences. */
  readonly unknown: readonly string[];
}

/** Published in Redis: anyone with write access can alter it. Times are wall clock, ms. */
export interface WorkerReport {
  readonly at: number;
  readonly windows: readonly RuleUsage[];
  readonly rates: readonly (readonly [paymentId: number, rate: string])[];
}

const EMPTY_WINDOW: WindowView = { sum: () => 0n, freeAt: (_most, now) => now, ahead: 0n };
const UNKNOWN_RATE = 'only the worker knows rates that are not pinned';

/**
 * @param now - wall clock, ms
 * @throws NotVerifiedError if the amount was altered and is invalid
 */
export function explainPayout(
  payout: Payout,
  { policy, isListed }: LoadedPolicy,
  keyring: BoundKeyring | undefined,
  now: number,
  report?: WorkerReport,
): Explanation {
  const { paymentId, amount, addressTo, signed } = payout;
  const found = keyring && identify(payout, { platformId: policy.platformId, keyring, now });
  const approvals =
    keyring === undefined || typeof found !== 'object'
      ? NO_APPROVALS
      : countApprovals(found.about, payout.approvals ?? [], {
          keyring,
          lifetimeMs: policy.approvalsExpireAfterMs,
          now,
        });
  if (!amountField.safeParse(amount).success) {
    throw new NotVerifiedError(
      `A field of payout ${payout.payoutId} was altered: amount (got ${JSON.stringify(amount)})`,
    );
  }
  const rates = new UsdRates(policy.usd ?? DEFAULT_USD);
  const reportedRates = report?.rates.filter(([, rate]) => parseReported('amount', rate) !== undefined) ?? [];
  // Every rate counts: only the worker knows its journal's anchors.
  const anchors = new Map(reportedRates.map(([currency, rate]) => [currency, { rate, at: now }]));
  rates.update(reportedRates, anchors, { now, wallNow: now });
  const value = rates.valueOf(payout, now);
  const worth = value.worth.kind === 'known' ? value.worth : { kind: 'unknown' as const, reason: UNKNOWN_RATE };
  const decision = decide(
    policy,
    { paymentId, amount: value.coins, addressTo, signer: signed?.key },
    {
      ...{ now, wallNow: now, worth, isListed, window: toWindows(report), addressSeenAt: undefined },
      approvedBy: approvals.approvedBy,
      stranger: keyring && findStranger(signed?.requestedBy, keyring.keys),
    },
  );
  const unverified = typeof found === 'string' ? found : undefined;
  return {
    decision,
    approvals,
    rejectedBy: findRejecters(payout, policy, keyring),
    unverified,
    unknown: [...findUnknown(policy, decision, worth.kind === 'known', report)],
  };
}

function findRejecters(
  { payoutId, approvals = [] }: Payout,
  { platformId }: Policy,
  keyring: BoundKeyring | undefined,
): readonly string[] {
  if (keyring === undefined) return [];
  const { standing } = countRejections({ platformId, payoutId, approvals }, keyring);
  return [...new Set(standing.map(({ person, by }) => person ?? by))];
}

function toWindows(report: WorkerReport | undefined): (rule: string, bucket: string) => WindowView {
  return (rule, bucket) => {
    const usage = report?.windows.find((each) => each.rule === rule);
    const spent = usage?.buckets.find((each) => each.bucket === bucket)?.spent;
    const sum = usage && spent !== undefined ? parseReported(usage.unit, spent) : undefined;
    // The worker does not publish when there is room again.
    return sum === undefined ? EMPTY_WINDOW : { sum: () => sum, freeAt: () => undefined, ahead: 0n };
  };
}

function* findUnknown(
  { rules }: Policy,
  { all }: Decision,
  isWorthKnown: boolean,
  report: WorkerReport | undefined,
): Generator<string> {
  const asked = rules.filter(({ name }) => all.some(({ rule }) => rule === name));
  if (asked.some(({ cap }) => cap?.withinMs !== undefined)) {
    yield report === undefined
      ? 'what was spent: every window counts as empty here'
      : `what was spent since the worker published it at ${formatTimeUtc(toIsoTime(report.at))}, and who waits before it`;
  }
  if (asked.some(({ over }) => over.kind === 'cool_down')) {
    yield 'when its address was first seen: it counts as seen now';
  }
  if (!isWorthKnown && asked.some(isInDollars)) {
    yield 'what it is worth in dollars: rules in dollars let it wait here';
  }
}

/** Sums from Redis are untrusted. */
const DECIMAL = /^\d{1,40}(\.\d{1,18})?$/;

/** @returns the sum in the unit of its cap; undefined if it is invalid */
function parseReported(unit: Cap['unit'], text: string): bigint | undefined {
  if (!DECIMAL.test(text)) return undefined;
  if (unit === 'usd') return worthInMicros(text, '1');
  if (unit === 'amount') return toUnits(text);
  return text.includes('.') ? undefined : BigInt(text);
}
