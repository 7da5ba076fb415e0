import { Router } from 'express';
import { readFileSync } from 'node:fs';
import { type Clock, systemClock } from '../base/clock.js';
import { InvalidConfigError } from '../base/errors.js';
import { failsafeLogger, type Logger, silentLogger } from '../base/logger.js';
import { type AccountAccess, openAccount } from '../queues/open-account.js';
import { type LedgerAccess, openLedger } from '../queues/open-ledger.js';
import { WORKER_COMMAND_SETTINGS } from '../base/settings.js';
import { showAccount } from './account-routes.js';
import { acceptApprovals } from './control/accept-approvals.js';
import { ControlFiles } from './control/control-files.js';
import { accountPath } from './layout/layout.js';
import { createLoginMetrics, type Login, requireLogin } from './login.js';
import { createAccountsPages } from './overview/accounts-page.js';
import { noStore, pageHeaders, refuseWrites } from './security-headers.js';

/** Which accounts the dashboard shows, and who may see them. */
export interface DashboardOptions {
  /** The merchant account, or several: each then has its pages under `/accounts/<platformId>`. */
  readonly platformId: number | readonly number[];
  /** Where the ledger is, in one of the forms of `REDIS_URL`. */
  readonly redisUrl: string;
  /**
   * Required on every path. Without one, the application that mounts the dashboard must control access. A client that gives
   * ten wrong ones has to wait; clients are told apart by `request.ip`, so an application behind a proxy sets Express's
   * `trust proxy`.
   */
  readonly password?: string | undefined;
  /** @defaultValue `payouts` */
  readonly user?: string | undefined;
  /** Block explorers by payment_id, to which a txhash is linked: `https://…/{txhash}`. @defaultValue no links */
  readonly explorers?: ReadonlyMap<number, string> | undefined;
  /**
   * The keyring, as workers have it. Pages then say whose signatures and approvals count, commands have the key that they
   * need, and `POST /approvals` takes signed approvals. Read again when it changes. @defaultValue nothing is verified
   */
  readonly keysFile?: string | undefined;
  /** The environment of each account, as its worker's `PAYOUT_AUDIENCE` names it. Required with `keysFile`. */
  readonly audiences?: ReadonlyMap<number, string> | undefined;
  /** Until when signatures of earlier versions count, which name no environment: ISO 8601. @defaultValue they never count */
  readonly acceptUnboundUntil?: string | undefined;
  /** The policy of each account that has one, as its workers have it: the pages of payouts then say what each rule says. */
  readonly policyFiles?: ReadonlyMap<number, string> | undefined;
  /** How many replicas of Redis must acknowledge an approval. @defaultValue all that are connected, at least one with Sentinel */
  readonly redisReplicas?: number | undefined;
  /** A payout in progress for longer than this, in ms, is shown as stuck. @defaultValue a day */
  readonly stuckAfterMs?: number;
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
 * Creates the dashboard: of one account, payout pages under `/payouts` and Bull Board under `/board`; of several, an
 * overview under `/accounts` and the same for each under `/accounts/<platformId>`.
 *
 * The server makes everything read-only: where money moves, no click may run a job again or empty a queue. Operators
 * decide with the `payouts` command, which records who did what and why. The one write is `POST /approvals`, where there is
 * a keyring: what it takes was signed elsewhere and proves itself.
 * @throws InvalidConfigError when the options cannot be used
 */
export function createDashboard(options: DashboardOptions): Dashboard {
  const { stuckAfterMs = WORKER_COMMAND_SETTINGS.stuckAfterMs.default, explorers = new Map() } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  const login = toLogin(options);
  const files = new ControlFiles(options, logger);
  const accounts = openAccounts(options, logger);
  const platformIds = accounts.map(({ ledger }) => ledger.connection.platformId);

  const router = Router();
  router.use(pageHeaders, noStore);
  const metrics = createLoginMetrics();
  if (login !== undefined) router.use(requireLogin(login, { logger, failures: metrics.failures }));
  for (const { ledger } of openForApprovals(accounts, options)) {
    router.use(
      accountPath(platformIds, ledger.connection.platformId) || '/',
      acceptApprovals({ ledger, files, logger }),
    );
  }
  router.use(refuseWrites, createAssets());
  router.get('/metrics', async (_, response) => {
    response.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  const shown = accounts.map((account) =>
    showAccount(account, { platformIds, stuckAfterMs, explorers, files, logger }),
  );
  for (const { platformId, router: account } of shown) router.use(accountPath(platformIds, platformId) || '/', account);
  if (accounts.length > 1) router.use(createAccountsPages(shown, logger));

  const close = async (): Promise<void> => {
    for (const { watch } of shown) watch.close();
    await closeAccounts(accounts);
  };
  let closed: Promise<void> | undefined;
  return { router, close: () => (closed ??= close()) };
}

/** All on one connection. */
function openAccounts(options: DashboardOptions, logger: Logger): AccountAccess[] {
  const { redisUrl, clock = systemClock } = options;
  const platformIds = [options.platformId].flat();
  if (platformIds.length === 0 || new Set(platformIds).size < platformIds.length) {
    throw new InvalidConfigError([{ field: 'platformId', message: 'must name at least one account, and each once' }]);
  }
  const accounts: AccountAccess[] = [];
  try {
    for (const platformId of platformIds) {
      const connection = accounts[0]?.ledger.connection.redis;
      const common = { platformId, confirmation: 'reply', readOnly: true, clock, logger } as const;
      accounts.push(openAccount(connection === undefined ? { ...common, redisUrl } : { ...common, connection }));
    }
  } catch (error) {
    void closeAccounts(accounts);
    throw error;
  }
  return accounts;
}

/** On the connection that is there, but an approval is told to be kept only once it is. */
function openForApprovals(
  accounts: readonly AccountAccess[],
  { redisReplicas }: DashboardOptions,
): readonly LedgerAccess[] {
  try {
    return accounts.map(({ ledger: { connection }, clock, logger }) => {
      const { platformId, redis } = connection;
      return openLedger({ platformId, connection: redis, redisReplicas, clock, logger });
    });
  } catch (error) {
    void closeAccounts(accounts);
    throw error;
  }
}

/** The first one last: it opened the connection. */
async function closeAccounts(accounts: readonly AccountAccess[]): Promise<void> {
  for (const account of accounts.toReversed()) await account.close();
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

const ASSETS = ['style.css', 'page.js', 'live.js'];

/** The files that every page loads. */
function createAssets(): Router {
  const router = Router();
  for (const name of ASSETS) {
    const text = readFileSync(new URL(name, import.meta.url), 'utf8');
    router.get(`/${name}`, (_, response) => {
      response.type(name).send(text);
    });
  }
  return router;
}
