import type { Clock } from '../base/clock.js';
import type { FactsGateway } from '../gateway/gateway.js';
import type { ControlJournal } from '../journal/control-journal.js';
import type { StoredReceipt } from '../ledger/control-record.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Payout } from '../ledger/payout.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { SenderLedger } from '../ledger/sender-ledger.js';
import type { Logger } from '../base/logger.js';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import type { ResumeAuthority, SendAuthority } from './sender/send-authority.js';

/** The ports to control of money. The worker knows nothing else of it. */

/** Opens control before Redis is connected. @throws InvalidConfigError */
export type OpenControl = (context: { readonly logger: Logger; readonly clock: Clock }) => Promise<WorkerControl>;

export interface WorkerControl {
  of(account: { readonly platformId: number; readonly audience: string; readonly logger: Logger }): AccountControl;
  reloadKeys(): void;
  reloadPolicies(): void;
}

export interface AccountControl {
  readonly keyring: KeyringFacts | undefined;
  readonly policy: PolicyFacts | undefined;
  /** Lines that the journal must keep in memory. */
  readonly heldLines: { readonly unsigned: boolean; readonly spends: boolean };
  /** Undefined if final states are not signed. */
  readonly receipts: ReceiptSigner | undefined;
  /** Publishes until the signal is aborted. @param name - host and process id */
  report(connection: LedgerConnection, name: string, end: AbortSignal): Promise<void>;
  /** Called once, when the journal is open. */
  open(account: OpenedAccount): SendControl;
}

export interface OpenedAccount {
  readonly journal: ControlJournal;
  readonly connection: LedgerConnection;
  readonly ledger: Pick<PayoutLedger, 'change'>;
  readonly senderLedger: Pick<SenderLedger, 'holdPayout' | 'readSpends'>;
  readonly relay: Pick<OutboxRelay, 'tryDeliver'>;
  readonly gateway: Pick<FactsGateway, 'readCurrencies'>;
}

/** Each call but `takeOver` runs until its signal is aborted. */
export interface SendControl {
  /** Undefined if everything may be sent. */
  readonly authority: SendAuthority | undefined;
  /** Undefined if the ledger alone decides whether the account is paused. */
  readonly resumeAuthority: ResumeAuthority | undefined;
  /** While another process has the lease. */
  standBy(end: AbortSignal): Promise<void>;
  /** Resolves once this process, with the lease, may send. */
  takeOver(end: AbortSignal): Promise<void>;
  /** While this process has the lease. */
  keep(end: AbortSignal): Promise<void>;
}

export interface ReceiptSigner {
  /**
   * Never throws, and settles within seconds. `failed`: a signature was wanted, and there is none.
   * @param payout - with the txhash that the gateway told with this state
   */
  sign(
    payout: Omit<Payout, 'txhash'> & { readonly txhash: string | undefined },
    state: 'completed' | 'failed',
    /** When it ended, ISO 8601. @defaultValue now */
    endedAt?: string,
  ): Promise<
    | { readonly kind: 'signed'; readonly receipt: StoredReceipt }
    | { readonly kind: 'refused' | 'failed'; readonly message: string }
  >;
}

/** The keys of the keyring in force. */
export interface KeyringFacts {
  readonly keys: readonly {
    readonly name: string;
    readonly role: string;
    readonly revoked: boolean;
    readonly notAfter?: number | undefined;
  }[];
  readonly reloadTrouble?: string | undefined;
}

/** The policy in force. */
export interface PolicyFacts {
  readonly hash: string;
  readonly reloadTrouble: string | undefined;
}
