import type { Clock } from '../../base/clock.js';
import type { BrokenInvariantError } from '../../base/invariants.js';
import type { Logger } from '../../base/logger.js';
import type { AccountSettings } from '../../base/settings.js';
import type { WithdrawGateway } from '../../gateway/gateway.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { JournalLocation, ReplicasSeen, SenderLedger } from '../../ledger/sender-ledger.js';
import type { Pacer } from './pacer.js';
import type { SendAuthority } from './send-authority.js';
import type { WorkerObserver } from './worker-observer.js';

/**
 * What the parts of a sender share. Built once, by the account or by the simulation, and passed down unchanged. A part
 * picks what it needs; what lasts only for one lease is a further argument.
 */
export interface SenderRuntime {
  readonly clock: Clock;
  readonly senderLedger: SenderLedger;
  readonly journal: SendJournal;
  readonly journalLocation: JournalLocation;
  /** How long the journal's files are kept. */
  readonly journalKeptMs: number;
  readonly gateway: WithdrawGateway;
  /** What the ledger is bound to: gateway and API, see `bindingOf`. */
  readonly audience: string;
  readonly pacer: Pacer;
  readonly settings: Pick<
    AccountSettings,
    | 'intervalMs'
    | 'inFlightMaxMs'
    | 'leaseMs'
    | 'quarantineMs'
    | 'maxRejectionsInARow'
    | 'maxPayoutRejectionsInARow'
    | 'maxUnknownsInARow'
  >;
  /** The longest time from asking the ledger to begin until the first byte is written. */
  readonly guardMs: number;
  /** Milliseconds on a clock that also runs while the machine is suspended. It may only forbid a send. */
  readonly machineUptime: () => number;
  /** Absent if the ledger alone decides what is sent. */
  readonly authority?: SendAuthority | undefined;
  /** Why Redis may not be trusted with a send now. Called without giving up the event loop. */
  readonly hindrance: () => string | undefined;
  /** The replicas of Redis that acknowledge now, for the journal to remember. */
  readonly acknowledgedReplicas: () => ReplicasSeen;
  /** Another process must get the lease, even if it does not hold it yet. @defaultValue false */
  readonly onlyWatches?: boolean | undefined;
  /** No other start of any process has the same name. */
  readonly makeOwner: () => string;
  /** No other attempt of any process has the same token. */
  readonly makeToken: () => string;
  /**
   * Adds the missing jobs of payouts that changed.
   * @param changedBefore - wall clock, ms
   * @returns the number of payouts that were checked
   */
  readonly relayOutbox: (changedBefore: number, signal: AbortSignal) => Promise<number>;
  /** Ends the process. Called once nothing of the attempt can be written any more. */
  readonly onBroken: (error: BrokenInvariantError) => void;
  readonly observer: WorkerObserver;
  /** While a lease is held, its lines name the epoch. */
  readonly logger: Logger;
}
