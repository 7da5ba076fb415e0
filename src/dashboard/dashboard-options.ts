import type { Registry } from 'prom-client';
import { z } from 'zod';
import type { Clock } from '../base/clock.js';
import { platformIdField } from '../base/fields.js';
import type { Logger } from '../base/logger.js';
import type { RedisClient } from '../base/redis.js';
import {
  checkOptions,
  objectWith,
  type OptionRule,
  type OptionRules,
  requireNone,
  text,
  WATCHING_RULES,
} from '../base/setting.js';
import { CONTROL_SETTINGS, DASHBOARD_SETTINGS, WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../base/settings.js';
import { checkTarget, CONNECTION_RULES } from '../queues/open-ledger.js';

/** Which accounts the dashboard shows, and who may see them. */
export interface DashboardOptions {
  /** One merchant account, or several, with pages under `/accounts/<platformId>`. */
  readonly platformId: number | readonly number[];
  /** The ledger's Redis, in one of the forms of `REDIS_URL`. Give either `redisUrl` or `connection`. */
  readonly redisUrl?: string | undefined;
  /** As of `PayoutProducer`: it stays open, and needs a `commandTimeout`. */
  readonly connection?: RedisClient | undefined;
  /**
   * The path under which browsers see the dashboard, such as `/admin/payouts`, for `handler`: on a server that keeps it
   * in the URL, or behind a proxy that strips it. An Express application that mounts the router needs none.
   * @defaultValue none: the dashboard is at `/`
   */
  readonly publicPath?: string | undefined;
  /** What the pages are of, such as `staging`: a band on top of each says so. @defaultValue no band */
  readonly environment?: string | undefined;
  /** Takes the dashboard's metrics too, once for each registry. @defaultValue a registry of its own */
  readonly registry?: Registry | undefined;
  /**
   * Required on every path. `createDashboard` needs one, or `allowUnprotected`. A client must wait after ten wrong ones.
   * Clients are known by `request.ip`, so set Express's `trust proxy` behind a proxy.
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
  /** The workers' policy of each account; payout pages then show each rule's result. */
  readonly policyFiles?: ReadonlyMap<number, string> | undefined;
  /**
   * Replicas of Redis that must acknowledge an approval, if that is more than the account knows. @defaultValue all that
   * the account's ledger knows, at least one with Sentinel
   */
  readonly redisReplicas?: number | undefined;
  /** A payout in progress for longer than this, in ms, is stuck. @defaultValue a day */
  readonly stuckAfterMs?: number;
  /** @defaultValue a silent logger */
  readonly logger?: Logger;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}

const mapRule: OptionRule = { rule: z.instanceof(Map, { error: 'must be a Map' }), hidden: true };

const accountsField = z
  .transform((given) => [given].flat())
  .pipe(
    z.array(platformIdField).refine((all) => all.length > 0 && new Set(all).size === all.length, {
      error: 'must name at least one account, and each once',
    }),
  );

export const DASHBOARD_RULES = {
  platformId: { rule: accountsField, required: true },
  redisUrl: WORKER_SETTINGS.redisUrl,
  connection: CONNECTION_RULES.connection,
  publicPath: { rule: DASHBOARD_SETTINGS.dashboardPath.rule },
  environment: { rule: DASHBOARD_SETTINGS.environment.rule },
  registry: objectWith('registerMetric', 'metrics'),
  password: { rule: text, secret: true },
  user: { rule: text.refine((user) => !user.includes(':'), 'must not contain a colon (RFC 7617)') },
  explorers: mapRule,
  keysFile: CONTROL_SETTINGS.keysFile,
  audiences: mapRule,
  policyFiles: mapRule,
  redisReplicas: WORKER_SETTINGS.redisReplicas,
  stuckAfterMs: WORKER_COMMAND_SETTINGS.stuckAfterMs,
  ...WATCHING_RULES,
} as const satisfies OptionRules<DashboardOptions>;

/** @throws InvalidConfigError with all problems */
export function requireDashboardOptions(rules: Readonly<Record<string, OptionRule>>, options: DashboardOptions): void {
  const problems = checkOptions(rules, options);
  requireNone(problems.length > 0 ? problems : checkTarget(options));
}
