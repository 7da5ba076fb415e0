import type { SignedApproval } from '../../ledger/control-record.js';
import { intentOf } from '../../control/intents/intent.js';
import { verifyIntent } from '../../control/intents/verify-intent.js';
import { NotVerifiedError } from '../../base/errors.js';
import type { Currency } from '../../ledger/reads/gateway-facts.js';
import type { Payout } from '../../ledger/payout.js';
import { type PolicyReport, readPolicyReport } from '../../ledger/reads/policy-report.js';
import { type ApprovalView, verifyApprovals } from '../../control/approvals/approvable-payout.js';
import { explainPayout, type Explanation, type WorkerReport } from '../../control/operator/explain-payout.js';
import { listRuleVerdicts, type RuleVerdict } from '../../control/policy/decide.js';
import type { Shown } from '../layout/pieces.js';
import type { PageContext } from '../page-context.js';

export interface PayoutControl {
  readonly signer: SignerView;
  /** If not now, the time of the check: the begin of its last send, ISO 8601, UTC. */
  readonly asOf: string | undefined;
  readonly approvals: readonly ShownApproval[];
  /** Undefined if no rule is checked any more, or no policy is known. */
  readonly rules: RulesView | undefined;
}

export interface ShownApproval {
  readonly approval: SignedApproval;
  readonly person: string | undefined;
  readonly message: string | undefined;
}

/** The rules' results, or why this dashboard does not know them. */
export type RulesView =
  | { readonly kind: 'no_file' }
  | { readonly kind: 'unusable'; readonly message: string }
  | {
      readonly kind: 'asked';
      readonly hash: string;
      /** The sending worker's policy, if it differs. */
      readonly otherHash: string | undefined;
      readonly decision: Explanation['decision'];
      readonly verdicts: readonly RuleVerdict[];
      readonly unverified: string | undefined;
      readonly unknown: readonly string[];
    };

export async function readPayoutControl(
  context: PageContext,
  payout: Payout,
  { currencies, wallNow }: Shown,
): Promise<PayoutControl> {
  const { connection } = context;
  const { approvals = [] } = payout;
  const isOpen = payout.state === 'queued' || payout.state === 'held';
  const asOf = isOpen ? undefined : payout.history.findLast(({ to }) => to === 'sending')?.at;
  const view = context.viewAt(asOf === undefined ? wallNow : Date.parse(asOf));
  const report = isOpen ? await readPolicyReport(connection) : undefined;
  const judged =
    view === undefined
      ? approvals.map((approval) => ({ approval, person: undefined, message: 'not verified: no keyring here' }))
      : verifyApprovals(payout, view);
  return {
    ...{ signer: checkSigner(payout, view), asOf },
    approvals: judged,
    rules: isOpen ? askRules(context, payout, report, currencies, wallNow) : undefined,
  };
}

function askRules(
  { files, connection: { platformId } }: PageContext,
  payout: Payout,
  report: PolicyReport | undefined,
  currencies: readonly Currency[],
  now: number,
): RulesView | undefined {
  const loaded = files.policyOf(platformId);
  if (loaded === undefined) {
    const isHeldByPolicy = payout.held?.kind === 'policy';
    return report === undefined && !isHeldByPolicy ? undefined : { kind: 'no_file' };
  }
  try {
    const { decision, unverified, unknown } = explainPayout(
      payout,
      loaded,
      files.keyringOf(platformId),
      now,
      toPublished(report, currencies),
    );
    const otherHash = report === undefined || report.hash === loaded.hash ? undefined : report.hash;
    const verdicts = listRuleVerdicts(loaded.policy, decision);
    return { kind: 'asked', hash: loaded.hash, otherHash, decision, verdicts, unverified, unknown };
  } catch (error) {
    if (error instanceof NotVerifiedError) return { kind: 'unusable', message: error.message };
    throw error;
  }
}

function toPublished(report: PolicyReport | undefined, currencies: readonly Currency[]): WorkerReport | undefined {
  if (report === undefined) return undefined;
  const rates = currencies.flatMap(({ paymentId, usdRate }) =>
    usdRate === undefined ? [] : [[paymentId, usdRate] as const],
  );
  return { at: report.at, windows: report.rules, rates };
}

export type SignerView =
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'unjudged'; readonly key: string }
  | { readonly kind: 'verified'; readonly key: string; readonly person: string }
  | { readonly kind: 'refused'; readonly key: string; readonly message: string };

/** @param view - undefined if the dashboard has no keyring */
export function checkSigner(payout: Payout, view: ApprovalView | undefined): SignerView {
  const { signed } = payout;
  if (signed === undefined) return { kind: 'unsigned' };
  const { key } = signed;
  if (view === undefined) return { kind: 'unjudged', key };
  const verdict = verifyIntent(intentOf(view.platformId, payout, signed), signed, view.keyring, view.now);
  if (verdict.kind === 'refused') return { kind: 'refused', key, message: verdict.message };
  return { kind: 'verified', key, person: verdict.signer.person };
}

export interface WhoSaid {
  readonly approvedBy: readonly string[];
  readonly rejectedBy: readonly string[];
  /** Why others do not count, by the key they name. */
  readonly refused: readonly { readonly by: string; readonly message: string }[];
  readonly unverified: readonly string[];
}

/** @param view - undefined if the dashboard has no keyring */
export function whoSaid(payout: Payout, view: ApprovalView | undefined): WhoSaid {
  const { approvals = [] } = payout;
  if (view === undefined) {
    return { approvedBy: [], rejectedBy: [], refused: [], unverified: approvals.map(({ by }) => by) };
  }
  const judged = verifyApprovals(payout, view);
  const personsWho = (decision: string): string[] =>
    judged.flatMap(({ approval, person }) => (person === undefined || approval.decision !== decision ? [] : [person]));
  return {
    approvedBy: [...new Set(personsWho('approve'))],
    rejectedBy: [...new Set(personsWho('reject'))],
    refused: judged.flatMap(({ approval: { by }, message }) => (message === undefined ? [] : [{ by, message }])),
    unverified: [],
  };
}
