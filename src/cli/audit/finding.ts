export interface Finding {
  /** Empty for a finding about the whole journal. */
  readonly payoutId: string;
  readonly attempt?: number;
  readonly kind: FindingKind;
  readonly message: string;
  readonly action: string;
}

export type FindingKind =
  /** The ledger lacks a journaled send. */
  | 'not_in_ledger'
  /** The ledger's state cannot follow from the journal. */
  | 'state'
  /** Redis claims an impossible removal by retention. */
  | 'removed'
  /** The record differs from what was sent. */
  | 'altered'
  | 'txhash'
  /** An attempt began after an accepted one. */
  | 'sent_again'
  | 'not_in_journal'
  | 'unreadable'
  /** The key had no right to sign payouts. */
  | 'key'
  | 'signature'
  | 'approval'
  | 'receipt'
  /** The stream of spends contradicts the journal. */
  | 'spend'
  /** The line published as the newest is gone. */
  | 'head';

export function identifyFinding({ payoutId, attempt, kind, message }: Finding): string {
  return [payoutId, attempt ?? '', kind, kind === 'approval' ? message : ''].join(' ');
}
