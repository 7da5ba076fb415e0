import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/logger.js';

/** Which accounts the dashboard shows, and who may see them. */
export interface DashboardOptions {
  /** One merchant account, or several, with pages under `/accounts/<platformId>`. */
  readonly platformId: number | readonly number[];
  /** The ledger's Redis, in one of the forms of `REDIS_URL`. */
  readonly redisUrl: string;
  /**
   * Required on every path. Without one, the application that mounts the dashboard must control access. A client must
   * wait after ten wrong ones. Clients are known by `request.ip`, so set Express's `trust proxy` behind a proxy.
   */
  readonly password?: string | undefined;
  /** @defaultValue `payouts` */
  readonly user?: string | undefined;
  /** Block explorers for txhashes, by payment_id: `https://…/{txhash}`. @defaultValue no links */
  readonly explorers?: ReadonlyMap<number, string> | undefined;
  /**
   * The workers' keyring, read again when it changes. With it, pages verify signatures and approvals, commands name the
   * required key, and `POST /approvals` takes signed approvals. @defaultValue nothing is verified
   */
  readonly keysFile?: string | undefined;
  /** Each account's environment, as in its worker's `PAYOUT_AUDIENCE`. Required with `keysFile`. */
  readonly audiences?: ReadonlyMap<number, string> | undefined;
  /** Until when signatures without an environment count (earlier versions made them): ISO 8601. @defaultValue never */
  readonly acceptUnboundUntil?: string | undefined;
  /** The workers' policy of each account; payout pages then show each rule's result. */
  readonly policyFiles?: ReadonlyMap<number, string> | undefined;
  /**
   * Replicas of Redis that must acknowledge an approval. @defaultValue all that are connected, at least one with
   * Sentinel
   */
  readonly redisReplicas?: number | undefined;
  /** A payout in progress for longer than this, in ms, is stuck. @defaultValue a day */
  readonly stuckAfterMs?: number;
  /** @defaultValue a silent logger */
  readonly logger?: Logger;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}
