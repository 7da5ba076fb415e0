import express, { type Request, Router } from 'express';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock } from '../base/clock.js';
import { InvalidConfigError } from '../base/errors.js';
import { failsafeLogger, type Logger, silentLogger } from '../base/logger.js';
import { readSource } from '../base/source-path.cjs';
import { exportAccounts } from '../operator/account-gauges.js';
import { type AccountAccess, openAccount } from '../queues/open-account.js';
import { type LedgerAccess, openLedger } from '../queues/open-ledger.js';
import { flag, type OptionRules } from '../base/setting.js';
import { WORKER_COMMAND_SETTINGS } from '../base/settings.js';
import { showAccount } from './account-routes.js';
import { acceptApprovals } from './control/accept-approvals.js';
import { ControlFiles } from './control/control-files.js';
import { DASHBOARD_RULES, type DashboardOptions, requireDashboardOptions } from './dashboard-options.js';
import { accountPath, type DashboardSite, type Site, toSite } from './layout/layout.js';
import { createLoginMetrics, type Login, requireLogin } from './login.js';
import { OverviewReader } from './overview/overview.js';
import { createAccountsPages } from './overview/accounts-page.js';
import { createRunbooks } from './runbooks.js';
import { noStore, pageHeaders, refuseWrites } from './security-headers.js';

/** The dashboard as part of an Express application. */
export interface Dashboard {
  /** Mount it under any path: `app.use('/admin', dashboard.router)`. */
  readonly router: Router;
  /**
   * The same for any server: `createServer(dashboard.handler)`, or Fastify's `request.raw` and `reply.raw` after
   * `reply.hijack()`. See `publicPath`.
   */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** Closes the connection to Redis without waiting for an unavailable one. Safe to call twice. */
  close(): Promise<void>;
}

/** What a dashboard shows that an application mounts, and who may see it. */
export interface MountedDashboardOptions extends DashboardOptions {
  /** Whether the application that mounts the dashboard controls access, so that no password is needed. @defaultValue false */
  readonly allowUnprotected?: boolean | undefined;
}

const RULES = {
  ...DASHBOARD_RULES,
  allowUnprotected: { rule: flag },
} as const satisfies OptionRules<MountedDashboardOptions>;

const DEFAULT_USER = 'payouts';

/**
 * Creates the dashboard: an overview under `/overview`, payouts under `/payouts`, Bull Board under `/board`; several accounts have theirs under
 * `/accounts/<platformId>`, with an overview under `/accounts`.
 *
 * The server is read-only: no click may run a job again or empty a queue. Operators decide with the `payouts` command,
 * which records who, what and why. The one write, `POST /approvals`, needs a keyring and takes only verified
 * signatures.
 * @throws InvalidConfigError if the options are unusable, or there is neither password nor `allowUnprotected`
 */
export function createDashboard(options: MountedDashboardOptions): Dashboard {
  requireDashboardOptions(RULES, options);
  if (options.password === undefined && options.allowUnprotected !== true) {
    const message =
      'is missing: everyone who reaches the application would see the payouts. Give one, or state with ' +
      'allowUnprotected: true that the application controls access';
    throw new InvalidConfigError([{ field: 'password', message }]);
  }
  return openDashboard(options);
}

/** The same for options that are checked already. */
export function openDashboard(options: DashboardOptions): Dashboard {
  const { stuckAfterMs = WORKER_COMMAND_SETTINGS.stuckAfterMs.default, explorers = new Map() } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  const login = toLogin(options);
  const files = new ControlFiles(options, logger);
  const accounts = openAccounts(options, logger);
  const platformIds = accounts.map(({ ledger }) => ledger.connection.platformId);
  const frame = { platformIds, environment: options.environment };

  const router = Router();
  router.use(pageHeaders, noStore);
  const metrics = createLoginMetrics(options.registry);
  exportAccounts(metrics.registry, 'dashboard', () => accounts, stuckAfterMs);
  if (login !== undefined) router.use(requireLogin(login, metrics.failures, logger));
  for (const { ledger } of openForApprovals(accounts, options)) {
    const path = accountPath(platformIds, ledger.connection.platformId) || '/';
    router.use(path, acceptApprovals(ledger, files, logger));
  }
  const toRunbookSite = (request: Request): DashboardSite | Site => {
    const [only = 0, ...others] = platformIds;
    if (others.length === 0) return toSite(request, only, frame, Date.now());
    return { ...frame, root: request.baseUrl, now: Date.now() };
  };
  router.use(refuseWrites, createAssets(), createRunbooks(toRunbookSite));
  router.get('/metrics', async (_, response) => {
    response.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  const shown = accounts.map((account) =>
    showAccount(account, frame, new OverviewReader(account.ledger.connection, stuckAfterMs), explorers, files, logger),
  );
  for (const { platformId, router: account } of shown) router.use(accountPath(platformIds, platformId) || '/', account);
  if (accounts.length > 1) router.use(createAccountsPages(shown, frame, logger));

  const close = async (): Promise<void> => {
    for (const { watch } of shown) watch.close();
    await closeAccounts(accounts);
  };
  let closed: Promise<void> | undefined;
  return {
    router,
    handler: atPublicPath(express().disable('x-powered-by').use(router), options.publicPath),
    close: () => (closed ??= close()),
  };
}

/** Serves under a public path, which the URL of a request begins with, or a proxy has stripped. */
export function atPublicPath(app: Dashboard['handler'], publicPath = ''): Dashboard['handler'] {
  return (request, response) => {
    const { url = '/' } = request;
    const rest = url.startsWith(publicPath) ? url.slice(publicPath.length) : undefined;
    if (publicPath !== '' && rest !== undefined && /^([/?]|$)/.test(rest)) request.url = rest.replace(/^(?!\/)/, '/');
    // Express makes links from it, as if the dashboard were mounted there.
    if (publicPath !== '') Object.assign(request, { baseUrl: publicPath });
    app(request, response);
  };
}

function openAccounts(options: DashboardOptions, logger: Logger): AccountAccess[] {
  const { redisUrl, clock = systemClock } = options;
  const platformIds = [options.platformId].flat();
  const accounts: AccountAccess[] = [];
  try {
    for (const platformId of platformIds) {
      const connection = options.connection ?? accounts[0]?.ledger.connection.redis;
      const common = { platformId, readOnly: true, clock, logger };
      const target = connection === undefined ? { ...(redisUrl && { redisUrl }) } : { connection };
      accounts.push(openAccount({ ...common, ...target }, 'reply'));
    }
  } catch (error) {
    void closeAccounts(accounts);
    throw error;
  }
  return accounts;
}

/** Uses the same connection, but reports an approval as kept only after it is confirmed. */
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

/** Closes the first last, because it opened the connection. */
async function closeAccounts(accounts: readonly AccountAccess[]): Promise<void> {
  for (const account of accounts.toReversed()) await account.close();
}

function toLogin({ user, password }: DashboardOptions): Login | undefined {
  if (password !== undefined) return { user: user ?? DEFAULT_USER, password };
  if (user === undefined) return undefined;
  throw new InvalidConfigError([{ field: 'password', message: 'is missing, but a user is given' }]);
}

const ASSETS = ['style.css', 'page.js', 'live.js'];

function createAssets(): Router {
  const router = Router();
  for (const name of ASSETS) {
    const text = readSource(`dashboard/${name}`);
    router.get(`/${name}`, (_, response) => {
      response.type(name).send(text);
    });
  }
  return router;
}
