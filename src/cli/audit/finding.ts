import type { BoundKeyring } from '../../control/keys/keyring.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';

/** What an audit knows beside the journals. */
export interface AuditContext {
  readonly platformId: number;
  /** Without it, only the hashes of intents are compared. */
  readonly keyring: BoundKeyring | undefined;
  /** Its quorums apply to sends that were checked against it. */
  readonly policy: Pick<LoadedPolicy, 'policy' | 'hash' | 'isListed'> | undefined;
  /** Without it, only the keys of the sends are checked. */
  readonly connection: LedgerConnection | undefined;
  readonly retentionDays: number | undefined;
  /** Asks this host's archive. */
  readonly isArchived: (payoutId: string, state: string) => Promise<boolean>;
  readonly onProgress: (done: number) => void;
}

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
  | 'gateway_id'
  /** An attempt began after an accepted one. */
  | 'sent_again'
  | 'not_in_journal'
  | 'unreadable'
  /** The key had no right to sign payouts. */
  | 'key'
  | 'signature'
  | 'approval'
  /** It was sent although a person had rejected it. */
  | 'rejected'
  | 'receipt'
  /** The stream of spends contradicts the journal. */
  | 'spend'
  /** The line published as the newest is gone. */
  | 'head';

export function findingOf(
  { payoutId, attempt }: Pick<Finding, 'payoutId' | 'attempt'>,
  kind: FindingKind,
  message: string,
  action: string,
): Finding {
  return { payoutId, ...(attempt !== undefined && { attempt }), kind, message, action };
}

export function identifyFinding({ payoutId, attempt, kind, message }: Finding): string {
  return [payoutId, attempt ?? '', kind, kind === 'approval' ? message : ''].join(' ');
}
