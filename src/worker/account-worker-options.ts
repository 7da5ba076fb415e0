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
import type { RedisCheck } from './redis-monitor.js';
import type { SenderStatus } from './sender/send-report.js';

export interface WorkerConnections {
  readonly commands: RedisClient;
  readonly sender: RedisClient;
  readonly queue: RedisClient;
}

export interface WorkerConfirmations {
  readonly commands: Confirmation;
  readonly sender: Confirmation;
}

export interface AccountWorkerOptions {
  readonly platformId: number;
  readonly settings: AccountSettings;
  readonly part: AccountPart;
  readonly connections: WorkerConnections;
  readonly confirmations: WorkerConfirmations;
  readonly judgement: RedisCheck;
  readonly redisClocks: Pick<RedisClocks, 'readingOf'>;
  readonly gateway: GatewayClient;
  readonly openJournal: () => Promise<SendJournal>;
  readonly journalDir: string;
  readonly journalDays: number;
  /** Stores payouts before retention removes them. */
  readonly archive?: PayoutArchive | undefined;
  readonly audience: string;
  /** Undefined if the ledger alone decides what is sent. */
  readonly control?: AccountControl | undefined;
  readonly clock: Clock;
  readonly work: RecentWork;
  readonly logger: Logger;
  readonly telemetry?: Telemetry;
}

/**
 * What this process does for an account.
 *
 * - `send`: competes for the lease and polls
 * - `watch`: another process with another journal works; this one compares its journal with the ledger, takes no lease,
 *   and objects if Redis lost a send
 * - `rest`: another process with the same journal works
 */
export type AccountPart = 'send' | 'watch' | 'rest';

export class CurrentPart {
  #part: AccountPart;
  #changed = new AbortController();

  constructor(part: AccountPart) {
    this.#part = part;
  }

  get part(): AccountPart {
    return this.#part;
  }

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

/**
 * Redis may lose writes or refuses them, so nothing is sent. The lease stays, since no other process has a better
 * Redis.
 */
interface RefusedRedis {
  readonly role: 'refused';
  readonly reason: string;
  readonly cause: 'redis';
  /** Of the lease, if held. */
  readonly epoch?: number;
}
