import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type RequestHandler } from 'express';
import { ConflictError, InvalidConfigError } from '../errors.js';
import { createDashboard, type DashboardOptions } from './create-dashboard.js';

/** Which account is shown, and where the dashboard listens. */
export interface DashboardServerOptions extends DashboardOptions {
  /** The address to listen on. One that other machines can reach needs a password. */
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

/** A dashboard that listens. */
export interface DashboardServer {
  /** Where people open it. */
  readonly url: string;
  /** Ends every connection. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Serves the dashboard until it is closed.
 * @throws InvalidConfigError when other machines could reach it and no password is set, or the options cannot be used
 * @throws ConflictError when the address is taken
 */
export async function startDashboard(options: DashboardServerOptions): Promise<DashboardServer> {
  const { host, port, password } = options;
  if (password === undefined && !isLoopback(host)) {
    const message = `is required to listen on ${host}, which other machines may reach (without one: 127.0.0.1 only)`;
    throw new InvalidConfigError([{ field: 'password', message }]);
  }
  const dashboard = createDashboard(options);
  const app = express().disable('x-powered-by');
  if (password === undefined) app.use(refuseForeignNames);
  app.use(dashboard.router);

  const server = createServer(app);
  try {
    await listen(server, host, port);
  } catch (error) {
    await dashboard.close();
    throw error;
  }
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await closeServer(server);
    await dashboard.close();
  };
  return {
    url: `http://${toUrlHost(host)}:${(server.address() as AddressInfo).port}/`,
    close: () => (closed ??= close()),
  };
}

function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/i.test(host);
}

/**
 * Without a password, being on this machine is what gives access. A web page elsewhere could make its own name point
 * at 127.0.0.1 and have the browser here read the dashboard for it (DNS rebinding), but it cannot change that name.
 */
const refuseForeignNames: RequestHandler = (request, response, next) => {
  if (isLoopback((request.headers.host ?? '').replace(/:\d+$/, ''))) {
    next();
    return;
  }
  response.status(421).type('text').send('Without a password the dashboard answers to localhost and 127.0.0.1 only.\n');
};

async function listen(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const message = `port ${port} on ${host} is taken: stop what listens there or choose another port`;
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

/** The host as browsers on this machine reach it. */
function toUrlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
