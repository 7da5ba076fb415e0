import type { Telemetry } from 'bullmq';
import type { PayoutArchive } from '../archive/payout-archive.js';
import type { RedisClient } from '../base/redis.js';
import type { AccountSettings } from '../base/settings.js';
import type { Gateway } from '../gateway/gateway.js';
import type { AccountJournal } from '../journal/control-journal.js';
import type { AccountReplicas } from '../ledger/known-replicas.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { OutboxRelay } from '../queues/outbox-relay.js';
import type { PayoutQueues } from '../queues/payout-queues.js';
import type { AccountControl, SendControl } from './account-control.js';
import type { RecentWork } from './monitoring/recent-work.js';
import type { RedisClocks } from './redis-clocks.js';
import type { RedisCheck } from './redis-monitor.js';
import type { SenderStatus } from './sender/send-report.js';
import type { SenderRuntime } from './sender/sender-runtime.js';

/**
 * What the parts of an account's worker share: built once, and passed down unchanged. Three places complete or narrow
 * it: when the journal is open (`AccountWorker`), while another process sends (`AccountSending`), and for the log lines
 * of a lease (`SenderLoop`).
 */
export interface AccountRuntime extends SenderRuntime {
  readonly journal: AccountJournal;
  readonly platformId: number;
  /** `intervalMs` is at least what the gateway's limit takes. */
  readonly settings: AccountSettings;
  readonly gateway: Gateway;
  readonly ledger: PayoutLedger;
  /** For gateway statuses. They can be fetched again, so their writes need no confirmation. */
  readonly polledLedger: PayoutLedger;
  readonly queues: PayoutQueues;
  readonly relay: OutboxRelay;
  /** BullMQ's own: commands may wait without limit. */
  readonly queueRedis: RedisClient;
  readonly telemetry?: Telemetry | undefined;
  readonly redisState: RedisCheck;
  /** Takes the journal's number once that is open. */
  readonly replicas: Pick<AccountReplicas, 'setJournal'>;
  readonly redisClocks: Pick<RedisClocks, 'readingOf'>;
  /** Undefined if the ledger alone decides what is sent. */
  readonly control: AccountControl | undefined;
  readonly sendControl: SendControl | undefined;
  /** Stores payouts before retention removes them. */
  readonly archive: PayoutArchive | undefined;
  /** Results of the last sends and polls. It records what `observer` receives. */
  readonly work: RecentWork;
}

/** The runtime while the journal is being opened. */
export type OpeningRuntime = Omit<AccountRuntime, 'journal' | 'authority' | 'sendControl'>;

/**
 * What this process does for an account.
 *
 * - `send`: competes for the lease and polls
 * - `watch`: another process with another journal works; this one compares its journal with the ledger, takes no lease,
 *   and objects if Redis lost a send
 * - `rest`: another process with the same journal works
 */
export type AccountPart = 'send' | 'watch' | 'rest';

/** What an account's worker is doing. */
export type AccountStatus = SenderStatus | Refused | { readonly role: 'stopped' };

/**
 * Redis may lose writes or refuses them, so nothing is sent: the lease stays, since no other process has a better
 * Redis. Or the journal's disk does not answer.
 */
interface Refused {
  readonly role: 'refused';
  readonly reason: string;
  readonly cause: 'redis' | 'replicas' | 'disk';
  /** The replicas that do not acknowledge, and since when (ISO 8601); only with that cause. */
  readonly missing?: readonly { readonly name: string; readonly since: string }[];
  /** Of the lease, if held. */
  readonly epoch?: number;
}
