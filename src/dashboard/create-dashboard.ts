import { Router } from 'express';
import { systemClock, type Clock } from '../clock.js';
import { InvalidConfigError } from '../errors.js';
import { failsafeLogger, silentLogger, type Logger } from '../logger.js';
import { openAccount } from '../queues/open-account.js';
import { requireLogin, type Login } from './basic-auth.js';
import { createBoard } from './board.js';
import { createPayoutPages } from './payout-pages.js';
import { boardHeaders, noStore, pageHeaders, refuseWrites } from './security-headers.js';

export interface DashboardOptions {
  /** The merchant account. */
  readonly platformId: number;
  /** Where the ledger is, in one of the forms of `REDIS_URL`. */
  readonly redisUrl: string;
  /** Asked for on every path. Without one, access is for the application that mounts the dashboard to decide. */
  readonly password?: string | undefined;
  /** @defaultValue `payouts` */
  readonly user?: string | undefined;
  /** @defaultValue a logger that says nothing */
  readonly logger?: Logger;
  /** @defaultValue the machine's clock */
  readonly clock?: Clock;
}

export interface Dashboard {
  /** Mount it under any path: `app.use('/admin', dashboard.router)`. */
  readonly router: Router;
  /** Ends the connection to Redis, without waiting for a Redis that is away. Safe to call twice. */
  close(): Promise<void>;
}

const DEFAULT_USER = 'payouts';

/**
 * Makes the dashboard of an account: pages of our own under `/payouts`, Bull Board under `/board`.
 *
 * Everything is read only, at the server: a click that runs a job again, or empties a queue, must not exist where
 * money moves. What a person decides goes through the `payouts` command, which records who and why.
 * @throws InvalidConfigError when the options cannot be used
 */
export function createDashboard(options: DashboardOptions): Dashboard {
  const { platformId, redisUrl, clock = systemClock } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  const login = readLogin(options);
  const account = openAccount({ platformId, redisUrl, confirmation: 'reply', readOnly: true, clock, logger });
  const { ledger, queues } = account;

  const router = Router();
  router.use(pageHeaders, noStore);
  if (login !== undefined) router.use(requireLogin(login));
  router.use(refuseWrites);
  router.use('/board', boardHeaders, createBoard(ledger, queues));
  router.use(createPayoutPages(ledger, logger));

  let closed: Promise<void> | undefined;
  return { router, close: () => (closed ??= account.close()) };
}

function readLogin({ user, password }: DashboardOptions): Login | undefined {
  if (password === '') throw new InvalidConfigError([{ field: 'password', message: 'must not be empty' }]);
  if (user?.includes(':')) {
    throw new InvalidConfigError([{ field: 'user', message: 'must not hold a colon, which ends the name' }]);
  }
  if (password !== undefined) return { user: user ?? DEFAULT_USER, password };
  if (user === undefined) return undefined;
  throw new InvalidConfigError([{ field: 'password', message: 'is missing, but a user is given' }]);
}
