import { formatMicros } from '../../control/policy/usd.js';
import type { ApprovalView } from '../../control/approvals/approvable-payout.js';
import type { BegunSend } from '../../ledger/read-sends.js';
import type { Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import { judgeSigner, type SignerView } from '../control/judge-signer.js';
import { whoSaid, type WhoSaid } from '../control/who-said.js';

/** One send, as Redis tells of it. */
export interface AuditRow {
  readonly payoutId: string;
  /** When it began, ISO 8601, UTC. */
  readonly at: string;
  /** Undefined where retention removed the payout, or its record cannot be read. */
  readonly sent: SentPayout | undefined;
}

export interface SentPayout {
  readonly payout: Payout;
  readonly signer: SignerView;
  readonly said: WhoSaid;
  /** What it was worth when it began, where a policy counted: dollars. */
  readonly usd: string | undefined;
  /** What came of this attempt; undefined where it was taken back, and nothing was sent. */
  readonly outcome: PayoutState | undefined;
  /** Only of the last attempt: the record has one place for it. */
  readonly txhash: string | undefined;
}

interface AuditFacts {
  readonly payouts: ReadonlyMap<string, Payout>;
  /** Millionths of a dollar, by `payoutId at`. */
  readonly usd: ReadonlyMap<string, bigint>;
  /** Undefined without a keyring. */
  readonly view: Omit<ApprovalView, 'now'> | undefined;
}

/** Signatures and approvals are judged as they were when the send began: they may have expired since. */
export function toAuditRow({ payoutId, at }: BegunSend, { payouts, usd, view }: AuditFacts): AuditRow {
  const iso = new Date(at).toISOString();
  const payout = payouts.get(payoutId);
  const index = payout?.history.findIndex((entry) => entry.to === 'sending' && entry.at === iso) ?? -1;
  if (payout === undefined || index === -1) return { payoutId, at: iso, sent: undefined };
  const then = view === undefined ? undefined : { ...view, now: at };
  const micros = usd.get(`${payoutId} ${at}`);
  const { outcome, isLast } = findOutcome(payout, index);
  return {
    payoutId,
    at: iso,
    sent: {
      ...{ payout, outcome, signer: judgeSigner(payout, then), said: whoSaid(payout, then) },
      usd: micros === undefined ? undefined : formatMicros(micros),
      txhash: isLast ? payout.txhash : undefined,
    },
  };
}

/** @param index - of the begin in the history */
function findOutcome(
  { history }: Payout,
  index: number,
): { readonly outcome: PayoutState | undefined; readonly isLast: boolean } {
  const later = history.slice(index + 1).map(({ to }) => to);
  const end = later.findIndex((to) => to === 'queued' || to === 'sending');
  const own = end === -1 ? later : later.slice(0, end);
  const isLast = !later.includes('sending');
  return { outcome: later[0] === 'queued' ? undefined : (own.at(-1) ?? 'sending'), isLast };
}
