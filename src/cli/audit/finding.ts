/** Something that an audit found: two records of the same thing do not agree, or a signature does not hold. */
export interface Finding {
  /** Empty where it is about the journal as a whole. */
  readonly payoutId: string;
  /** The attempt; absent where it is about no single one. */
  readonly attempt?: number;
  /** One word, for programs. */
  readonly kind: FindingKind;
  readonly message: string;
  /** What to do. */
  readonly action: string;
}

export type FindingKind =
  /** The journal has a send whose payout, or attempt, the ledger does not know. */
  | 'not_in_ledger'
  /** The ledger says of a payout what cannot have followed from what the journal says. */
  | 'state'
  /** Redis says that retention removed a payout, and that cannot be. */
  | 'removed'
  /** The record has other data than what was sent. */
  | 'altered'
  | 'txhash'
  /** A later attempt was begun although the gateway had accepted one. */
  | 'sent_again'
  /** The ledger has a send that no journal has. */
  | 'not_in_journal'
  /** The record in Redis makes no sense. */
  | 'unreadable'
  /** The key of a send is not, or was not, one that may sign payouts. */
  | 'key'
  | 'signature'
  | 'approval'
  | 'receipt'
  /** The stream of spends says something else than the journal. */
  | 'spend'
  /** The line that was told as the newest is gone. */
  | 'head';

/** Two findings of the same thing have the same text. */
export function identifyFinding({ payoutId, attempt, kind, message }: Finding): string {
  return [payoutId, attempt ?? '', kind, kind === 'approval' ? message : ''].join(' ');
}
