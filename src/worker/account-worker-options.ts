import type { Telemetry } from 'bullmq';
import type { AccountSettings } from '../base/settings.js';
import type { PayoutArchive } from '../archive/payout-archive.js';
import type { Clock } from '../base/clock.js';
import type { GatewayClient } from '../gateway/gateway-client.js';
import type { SendJournal } from '../journal/send-journal.js';
import type { Confirmation } from '../ledger/confirm-write.js';
import type { Logger } from '../base/logger.js';
import type { RedisClient } from '../base/redis.js';
import type { AccountControl } from './account-control.js';
import type { RecentWork } from './monitoring/recent-work.js';
import type { RedisClocks } from './redis-clocks.js';
import type { RedisJudgement } from './redis-watch.js';
import type { SenderStatus } from './sender/send-report.js';

/** Connections that the accounts of a process share. */
export interface WorkerConnections {
  readonly commands: RedisClient;
  readonly sender: RedisClient;
  readonly queue: RedisClient;
}

/** How writes on these connections are known to be kept. */
export interface WorkerConfirmations {
  readonly commands: Confirmation;
  readonly sender: Confirmation;
}

export interface AccountWorkerOptions {
  readonly platformId: number;
  readonly settings: AccountSettings;
  /** What this process does for the account at first. */
  readonly part: AccountPart;
  readonly connections: WorkerConnections;
  readonly confirmations: WorkerConfirmations;
  readonly judgement: RedisJudgement;
  readonly redisClocks: Pick<RedisClocks, 'readingOf'>;
  readonly gateway: GatewayClient;
  /** Opens the account's journal. @throws Error when it cannot be read or written */
  readonly openJournal: () => Promise<SendJournal>;
  /** The folder of the journal, for operators. */
  readonly journalDir: string;
  /** For how many days its files are kept. */
  readonly journalDays: number;
  /** Has payouts before retention removes them; undefined where they are gone then. */
  readonly archive?: PayoutArchive | undefined;
  /** The environment: what the worker signs names it, and the ledger is bound to it. */
  readonly audience: string;
  /** Undefined where the ledger alone decides what is sent. */
  readonly control?: AccountControl | undefined;
  readonly clock: Clock;
  /** Its observer measures the account's work. */
  readonly work: RecentWork;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

/**
 * What this process does for an account.
 *
 * - `send`: competes for the lease, and polls
 * - `watch`: another process works for it, with another journal: this one compares its own journal with the ledger, and
 *   objects where Redis forgot what it sent, but takes no lease
 * - `rest`: another process works for it, with the same journal
 */
export type AccountPart = 'send' | 'watch' | 'rest';

/** The part that a process has in an account now, and a signal for its end. */
export class CurrentPart {
  #part: AccountPart;
  #changed = new AbortController();

  constructor(part: AccountPart) {
    this.#part = part;
  }

  get part(): AccountPart {
    return this.#part;
  }

  /** Aborted when the part changes. */
  get changed(): AbortSignal {
    return this.#changed.signal;
  }

  assign(part: AccountPart): void {
    if (part === this.#part) return;
    this.#part = part;
    const before = this.#changed;
    this.#changed = new AbortController();
    before.abort();
  }
}

/** What an account's worker is doing. */
export type AccountStatus = SenderStatus | RefusedRedis | { readonly role: 'stopped' };

/** Nothing is sent because Redis may lose it, or refuses it; a lease is kept meanwhile, since no other process has a better Redis. */
interface RefusedRedis {
  readonly role: 'refused';
  readonly reason: string;
  readonly cause: 'redis';
  /** Of the lease; where it is held only. */
  readonly epoch?: number;
}
