import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InvalidConfigError } from '../../base/errors.js';
import { failsafeLogger, silentLogger, type Logger } from '../../base/logger.js';
import { adviseAccount } from '../../operator/account-advice.js';
import { viewAccount, type AccountView, type WatchedAccount } from './account-snapshot.js';
import { warnAbout } from './account-warnings.js';
import type { WorkerMetrics } from './worker-metrics.js';

/** Where the health server listens, and what it reports. */
export interface HealthServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly metrics: WorkerMetrics;
  /** The accounts of the worker; none while it is still being created, which waits for Redis as long as it takes. */
  readonly accounts: () => readonly WatchedAccount[];
  readonly logger?: Logger;
}

/** A running health server. */
export interface HealthServer {
  readonly url: string;
  readonly port: number;
  /** Ends every connection. Safe to call twice. */
  close(): Promise<void>;
}

/** The body of `/readyz`. */
interface Readiness {
  readonly ready: boolean;
  readonly redis: 'up' | 'unavailable';
  readonly accounts: readonly AccountReadiness[];
}

interface AccountReadiness {
  readonly platformId: number;
  readonly role: AccountView['status']['role'];
  /** Of the lease; in the sender only. */
  readonly epoch?: number;
  /** Why it must not send; where it is refused only. */
  readonly reason?: string;
  /** Set where it is refused because of Redis itself, not because of what the ledger says. */
  readonly cause?: 'redis';
  /**
   * Null while Redis is unavailable, and where another process works for the account, which says so. A paused account is
   * ready: it waits for an operator, not for another process.
   */
  readonly paused: boolean | null;
  readonly pausedReason: string | null;
  /** What stops the account until an operator runs the command; empty where `paused` is null. */
  readonly stopped: readonly { readonly problem: string; readonly command: string }[];
  /** What else needs an operator, one line each, although this process could send or take over; empty when all is well. */
  readonly warnings: readonly string[];
}

interface HttpResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * Serves `/healthz` (this process works), `/readyz` (Redis is there, and every account sends or stands by) and
 * `/metrics` (for Prometheus). None of them shows a secret.
 * @throws InvalidConfigError when it cannot listen there
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const { host, port } = options;
  const logger = failsafeLogger(options.logger ?? silentLogger);
  const server = createServer((request, response) => {
    void serve(options, logger, request, response);
  });
  await listen(server, host, port);
  const { port: boundPort } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    port: boundPort,
    async close() {
      await new Promise<void>((resolve) => {
        // Called back with an error where it is closed already.
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
    },
  };
}

/**
 * Whether the process could send, or take over when the sender ends.
 * @param accounts - none stands for a worker that is still waiting for Redis
 * @param stuckAfterMs - a payout in progress for longer than this, in ms, is stuck
 */
async function readReadiness(accounts: readonly WatchedAccount[], stuckAfterMs: number): Promise<Readiness> {
  const views = await Promise.all(accounts.map(async (account) => viewAccount(account, stuckAfterMs)));
  const redisIsUp = views.length > 0 && views.every((view) => view.redisIsUp);
  return {
    ready: redisIsUp && views.every(({ status: { role } }) => role === 'sender' || role === 'standby'),
    redis: redisIsUp ? 'up' : 'unavailable',
    accounts: views.map(describeAccount),
  };
}

function describeAccount(view: AccountView): AccountReadiness {
  const { platformId, status, details, keyring } = view;
  const { stats } = details ?? {};
  const advice = stats === undefined ? [] : adviseAccount(stats, { isSigned: keyring !== undefined });
  return {
    platformId,
    ...status,
    paused: stats?.paused ?? null,
    pausedReason: stats?.pausedReason ?? null,
    stopped: advice.map(({ problem, command }) => ({ problem, command })),
    warnings: warnAbout(view),
  };
}

async function serve(
  options: HealthServerOptions,
  logger: Logger,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, contentType, body } = await respond(options, request).catch((error: unknown): HttpResponse => {
    logger.error({ error: (error as Error).message }, 'the state of the worker could not be read');
    return json(500, { error: 'the state of the worker could not be read, see the log' });
  });
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(body);
}

async function respond({ metrics, accounts }: HealthServerOptions, request: IncomingMessage): Promise<HttpResponse> {
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD') return json(405, { error: 'only GET and HEAD' });
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return json(200, { alive: true });
    case '/readyz': {
      const readiness = await readReadiness(accounts(), metrics.stuckAfterMs);
      return json(readiness.ready ? 200 : 503, readiness);
    }
    case '/metrics':
      return { status: 200, contentType: metrics.registry.contentType, body: await metrics.collect(accounts()) };
    default:
      return json(404, { error: 'there are /healthz, /readyz and /metrics' });
  }
}

function json(status: number, body: object): HttpResponse {
  return { status, contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(body)}\n` };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, resolve);
    });
  } catch (error) {
    const message = `the health server cannot listen on ${host} port ${port}: ${(error as Error).message}`;
    throw new InvalidConfigError([{ field: 'HEALTH_PORT', message }]);
  }
}
