import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler } from 'express';
import { z } from 'zod';
import { ConflictError, InvalidConfigError } from '../base/errors.js';
import type { OptionRules } from '../base/setting.js';
import { DASHBOARD_SETTINGS } from '../base/settings.js';
import { atPublicPath, openDashboard } from './create-dashboard.js';
import { DASHBOARD_RULES, type DashboardOptions, requireDashboardOptions } from './dashboard-options.js';

/** Which accounts are shown, and where the dashboard listens. */
export interface DashboardServerOptions extends DashboardOptions {
  /** The address to listen on; any but loopback requires a password of at least 12 characters. */
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /**
   * Proxies whose `X-Forwarded-For` names the client: addresses, networks such as `10.0.0.0/8`, or `loopback`.
   * @defaultValue none: the client is the connecting address
   */
  readonly trustedProxies?: readonly string[] | undefined;
}

const RULES = {
  ...DASHBOARD_RULES,
  host: { ...DASHBOARD_SETTINGS.dashboardHost, required: true },
  port: { ...DASHBOARD_SETTINGS.dashboardPort, required: true },
  trustedProxies: { rule: z.array(z.string(), 'must be a list') },
} as const satisfies OptionRules<DashboardServerOptions>;

/** A running dashboard server. */
export interface DashboardServer extends AsyncDisposable {
  /** The URL to open. */
  readonly url: string;
  /** Closes every connection. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Serves the dashboard until it is closed.
 * @throws InvalidConfigError if other machines could reach it without a password, or an option is invalid
 * @throws ConflictError if the address is taken
 */
export async function startDashboard(options: DashboardServerOptions): Promise<DashboardServer> {
  requireDashboardOptions(RULES, options);
  const { host, port, password, trustedProxies = [] } = options;
  checkPassword(host, password);
  const dashboard = openDashboard(options);
  const app = express()
    .disable('x-powered-by')
    .set('trust proxy', [...trustedProxies]);
  if (password === undefined) app.use(refuseForeignNames);
  app.use(dashboard.router);

  const server = createServer(atPublicPath(app, options.publicPath));
  try {
    await listen(server, host, port);
  } catch (error) {
    await dashboard.close();
    throw error;
  }
  let closed: Promise<void> | undefined;
  const closeBoth = async (): Promise<void> => {
    await closeServer(server);
    await dashboard.close();
  };
  const close = async (): Promise<void> => (closed ??= closeBoth());
  return {
    url: `http://${toUrlHost(host)}:${(server.address() as AddressInfo).port}${options.publicPath ?? ''}/`,
    close,
    [Symbol.asyncDispose]: close,
  };
}

const SHORTEST_PASSWORD = 12;

/** The error never contains the password. */
function checkPassword(host: string, password: string | undefined): void {
  if (isLoopback(host)) return;
  const where = `to listen on ${host}, which other machines can reach`;
  if (password === undefined) {
    const message = `is required ${where} (without a password: 127.0.0.1 only)`;
    throw new InvalidConfigError([{ field: 'password', message }]);
  }
  if (Array.from(password).length < SHORTEST_PASSWORD) {
    throw new InvalidConfigError([
      { field: 'password', message: `must have at least ${SHORTEST_PASSWORD} characters ${where}` },
    ]);
  }
}

function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/i.test(host);
}

/**
 * Without a password, only this machine has access. A web page could point its host name at 127.0.0.1 and read the
 * dashboard through a browser here (DNS rebinding). It cannot change the name in the request.
 */
const refuseForeignNames: RequestHandler = (request, response, next) => {
  if (isLoopback((request.headers.host ?? '').replace(/:\d+$/, ''))) {
    next();
    return;
  }
  response.status(421).type('text').send('Without a password the dashboard serves localhost and 127.0.0.1 only.\n');
};

async function listen(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const message = `port ${port} on ${host} is in use: stop the process that listens there, or choose another port`;
      reject(error.code === 'EADDRINUSE' ? new ConflictError(message) : error);
    });
    server.listen(port, host, resolve);
  });
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) =>
    server.close(() => {
      resolve();
    }),
  );
  server.closeAllConnections();
  await closed;
}

function toUrlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
