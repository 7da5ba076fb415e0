import type { Clock } from '../base/clock.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { StoredReceipt } from '../ledger/control-record.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { SenderLedger } from '../ledger/sender-ledger.js';
import type { Logger } from '../base/logger.js';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import type { ResumeAuthority, SendAuthority } from './sender/send-authority.js';

/** The ports through which control of money takes part in a worker, which starts and stops it, and knows no more of it. */

/** Opens the control of a worker's accounts, before Redis is connected. @throws InvalidConfigError when it cannot be used */
export type OpenControl = (context: { readonly logger: Logger; readonly clock: Clock }) => WorkerControl;

/** Control of money in a worker process. */
export interface WorkerControl {
  of(account: { readonly platformId: number; readonly audience: string; readonly logger: Logger }): AccountControl;
  reloadKeys(): void;
  reloadPolicies(): void;
}

/** Control of one account's money. */
export interface AccountControl {
  /** Whose signatures count; undefined where the ledger alone decides what is sent. */
  readonly keyring: KeyringFacts | undefined;
  /** What may leave the account; undefined where everything may. */
  readonly policy: PolicyFacts | undefined;
  /** What the account's journal has to hold in memory. */
  readonly heldLines: { readonly unsigned: boolean; readonly spends: boolean };
  /** Undefined where final states are not signed. */
  readonly receipts: ReceiptSigner | undefined;
  /** Reports to operators in every process of the account, until the signal is aborted. @param name - host and process id */
  report(connection: LedgerConnection, name: string, end: AbortSignal): Promise<void>;
  /** Called once, when the journal is open. */
  open(account: OpenedAccount): SendControl;
}

/** What control works on. */
export interface OpenedAccount {
  readonly journal: SendJournal;
  readonly ledger: PayoutLedger;
  readonly senderLedger: Pick<SenderLedger, 'holdPayout' | 'readSpends'>;
  readonly relay: OutboxRelay;
  readonly gateway: Pick<GatewayClient, 'currencies'>;
  /** For how long a request may be on its way after it was journaled, ms. */
  readonly doubtMs: number;
}

/** Control of the sends of one account. Each call runs until its signal is aborted, but for `takeOver`. */
export interface SendControl {
  /** Undefined where everything may be sent. */
  readonly authority: SendAuthority | undefined;
  /** Undefined where the ledger alone says whether the account is paused. */
  readonly resumeAuthority: ResumeAuthority | undefined;
  /** While another process has the lease. */
  standBy(end: AbortSignal): Promise<void>;
  /** This process has the lease: resolves once it may send. */
  takeOver(end: AbortSignal): Promise<void>;
  /** While this process has the lease. */
  keep(end: AbortSignal): Promise<void>;
}

/** Signs how payments ended. */
export interface ReceiptSigner {
  sign(
    payout: Payout,
    state: 'completed' | 'failed',
  ):
    | { readonly kind: 'signed'; readonly receipt: StoredReceipt }
    | { readonly kind: 'refused'; readonly message: string };
}

/** A keyring, as metrics and `/readyz` show it. */
export interface KeyringFacts {
  readonly keys: readonly {
    readonly name: string;
    readonly role: string;
    readonly revoked: boolean;
    /** Wall clock, ms. */
    readonly notAfter?: number | undefined;
  }[];
  /** Why the file could not be read again. */
  readonly reloadTrouble: string | undefined;
}

/** A policy, as metrics and `/readyz` show it. */
export interface PolicyFacts {
  readonly hash: string;
  /** Why the file could not be read again. */
  readonly reloadTrouble: string | undefined;
}
