import { Router } from 'express';
import { systemClock, type Clock } from '../clock.js';
import { InvalidConfigError } from '../errors.js';
import { failsafeLogger, silentLogger, type Logger } from '../logger.js';
import { openAccount } from '../queues/open-account.js';
import { requireLogin, type Login } from './basic-auth.js';
import { createBoard } from './board.js';
import { createLoginMetrics } from './login-metrics.js';
import { createPayoutPages } from './payout-pages.js';
import { boardHeaders, noStore, pageHeaders, refuseWrites } from './security-headers.js';

/** Which account the dashboard shows, and who may see it. */
export interface DashboardOptions {
  /** The merchant account. */
  readonly platformId: number;
  /** Where the ledger is, in one of the forms of `REDIS_URL`. */
  readonly redisUrl: string;
  /**
   * Required on every path. Without one, the application that mounts the dashboard must control access. A client that gives
   * wrong ones has to wait longer and longer; clients are told apart by `request.ip`, so an application behind a proxy sets
   * Express's `trust proxy`.
   */
  readonly password?: string | undefined;
  /** @defaultValue `payouts` */
  readonly user?: string | undefined;
  /** Block explorers by payment_id, to which a txhash is linked: `https://…/{txhash}`. @defaultValue no links */
  readonly explorers?: ReadonlyMap<number, string> | undefined;
  /** @defaultValue a logger that says nothing */
  readonly logger?: Logger;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}

/** The dashboard as part of an Express application. */
export interface Dashboard {
  /** Mount it under any path: `app.use('/admin', dashboard.router)`. */
  readonly router: Router;
  /** Closes the connection to Redis, without waiting for one that is unavailable. Safe to call twice. */
  close(): Promise<void>;
}

const DEFAULT_USER = 'payouts';

/**
 * Creates the dashboard of an account: payout pages under `/payouts`, Bull Board under `/board`.
 *
 * The server makes everything read-only: where money moves, no click may run a job again or empty a queue. Operators
 * decide with the `payouts` command, which records who did what and why.
 * @throws InvalidConfigError when the options cannot be used
 */
export function createDashboard(options: DashboardOptions): Dashboard {
  const { platformId, redisUrl, clock = systemClock } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  const login = toLogin(options);
  const account = openAccount({ platformId, redisUrl, confirmation: 'reply', readOnly: true, clock, logger });
  const { ledger, queues } = account;

  const router = Router();
  router.use(pageHeaders, noStore);
  const metrics = createLoginMetrics();
  if (login !== undefined) router.use(requireLogin(login, { clock: systemClock, logger, metrics }));
  router.use(refuseWrites);
  router.get('/metrics', async (_, response) => {
    response.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  router.use('/board', boardHeaders, createBoard(ledger, queues));
  router.use(createPayoutPages(ledger, logger));

  let closed: Promise<void> | undefined;
  return { router, close: () => (closed ??= account.close()) };
}

function toLogin({ user, password }: DashboardOptions): Login | undefined {
  if (password === '') throw new InvalidConfigError([{ field: 'password', message: 'must not be empty' }]);
  if (user?.includes(':')) {
    throw new InvalidConfigError([{ field: 'user', message: 'must not contain a colon (RFC 7617)' }]);
  }
  if (password !== undefined) return { user: user ?? DEFAULT_USER, password };
  if (user === undefined) return undefined;
  throw new InvalidConfigError([{ field: 'password', message: 'is missing, but a user is given' }]);
}
