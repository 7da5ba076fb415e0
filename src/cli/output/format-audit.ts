import { stringify } from 'csv-stringify/sync';
import { formatMicros } from '../../control/policy/usd.js';
import { quoteFormula } from '../../csv-columns.js';
import type { JournalEntry } from '../../journal/journal-line.js';

/** A send of the journal, flat; what does not apply is undefined. Times are ISO 8601, UTC. */
export interface AuditRow {
  readonly sent_at: string;
  readonly payout_id: string;
  readonly attempt: number;
  readonly payment_id: number;
  readonly amount: string;
  readonly address_to: string;
  readonly symbol: string | undefined;
  /** As the sender saw it; undefined where it ended before it could note one. */
  readonly outcome: string | undefined;
  readonly txhash: string | undefined;
  /** What the gateway, or the sender, said of an outcome without a txhash. */
  readonly message: string | undefined;
  readonly signer: string | undefined;
  readonly intent: string | undefined;
  readonly issued_at: string | undefined;
  readonly expires_at: string | undefined;
  readonly act: string | undefined;
  /** What it was worth at that moment, where the worker knew it. */
  readonly usd: string | undefined;
  /** The hash of the policy that let it pass. */
  readonly policy: string | undefined;
  /** The hashes of the approvals that counted, separated by spaces. */
  readonly approvals: string | undefined;
}

const COLUMNS = [
  'sent_at',
  'payout_id',
  'attempt',
  'payment_id',
  'amount',
  'address_to',
  'symbol',
  'outcome',
  'txhash',
  'message',
  'signer',
  'intent',
  'issued_at',
  'expires_at',
  'act',
  'usd',
  'policy',
  'approvals',
] as const satisfies readonly (keyof AuditRow)[];

export const AUDIT_CSV_HEADER = stringify([COLUMNS]);

export function toAuditRow({ at, payoutId, attempt, request, outcome, signed, judged }: JournalEntry): AuditRow {
  return {
    sent_at: toIso(at),
    payout_id: payoutId,
    attempt,
    payment_id: request.paymentId,
    amount: request.amount,
    address_to: request.addressTo,
    symbol: request.symbol,
    outcome: outcome?.kind,
    txhash: outcome?.kind === 'accepted' ? outcome.txhash : undefined,
    message: describeOutcome(outcome),
    signer: signed?.key,
    intent: signed?.intent,
    issued_at: signed && toIso(signed.issuedAt),
    expires_at: signed && toIso(signed.expiresAt),
    act: signed?.act,
    usd: judged?.usd === undefined ? undefined : formatMicros(BigInt(judged.usd)),
    policy: judged?.policy,
    approvals: judged?.approvals?.join(' '),
  };
}

/** A line of CSV, safe for spreadsheets. */
export function formatAuditRow(entry: JournalEntry): string {
  const row = toAuditRow(entry);
  return stringify([
    COLUMNS.map((name) => {
      const value = row[name];
      return typeof value === 'string' ? quoteFormula(value) : value;
    }),
  ]);
}

function describeOutcome(outcome: JournalEntry['outcome']): string | undefined {
  if (outcome === undefined || outcome.kind === 'accepted') return undefined;
  return outcome.kind === 'rejected' ? outcome.message : outcome.reason;
}

function toIso(at: number): string {
  return new Date(at).toISOString();
}
