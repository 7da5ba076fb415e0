import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InvalidConfigError } from '../../base/errors.js';
import { failsafeLogger, silentLogger, type Logger } from '../../base/logger.js';
import { systemClock } from '../../base/clock.js';
import { accountHeadline, type Headline, otherVersionHeadline } from '../../operator/account-headline.js';
import { type MissingReport, senderOf } from '../../ledger/reads/workers.js';
import { type LedgerObservation, WORKER_SILENT_AFTER_MS } from '../../operator/account-poller.js';
import { adviseAccount } from '../../operator/account-advice.js';
import { viewAccount, type AccountView, type MonitoredAccount } from './account-snapshot.js';
import { warnAbout } from './account-warnings.js';
import { toJsonLine } from '../../base/plain-text.js';
import type { WorkerMetrics } from './worker-metrics.js';

/** Where the health server listens, and what it reports. */
export interface HealthServerOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly metrics: WorkerMetrics;
  /** The worker's accounts; empty while its creation waits for Redis. */
  readonly accounts: () => readonly MonitoredAccount[];
  readonly logger?: Logger;
}

/** A running health server. */
export interface HealthServer {
  readonly url: string;
  readonly port: number;
  /** Ends every connection. Safe to call twice. */
  close(): Promise<void>;
}

interface Readiness {
  readonly ready: boolean;
  readonly redis: 'up' | 'unavailable';
  readonly accounts: readonly AccountReadiness[];
}

interface AccountReadiness {
  readonly platformId: number;
  /** As on the dashboard and in `payouts status`. Undefined if another process works for the account. */
  readonly headline: string | undefined;
  /** The page that says what to do, such as `docs/runbooks/paused.md`. */
  readonly runbook?: string;
  readonly role: AccountView['status']['role'];
  /** Of the lease; only in the sender. */
  readonly epoch?: number;
  /** Why a refused account must not send. */
  readonly reason?: string;
  /** Set if Redis itself is the reason, its missing replicas, the journal's disk, or another gateway's ledger. */
  readonly cause?: 'redis' | 'replicas' | 'disk' | 'gateway';
  /** With the cause `replicas`: which, and since when. */
  readonly missing?: MissingReport;
  /**
   * Null while Redis is unavailable, or if another process works for the account and reports it. A paused account is
   * ready: it waits for an operator, not for another process.
   */
  readonly paused: boolean | null;
  readonly pausedReason: string | null;
  /** What stops the account until an operator runs the command. Empty if `paused` is null. */
  readonly stopped: readonly { readonly problem: string; readonly command: string }[];
  /** What else needs an operator, one line each, although this process could send or take over. */
  readonly warnings: readonly string[];
}

interface HttpResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * Serves `/healthz` (the process runs), `/readyz` (Redis is available, every account sends or stands by) and `/metrics`
 * (for Prometheus). None shows a secret.
 * @throws InvalidConfigError if it cannot listen
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
        // The callback gets an error if the server is already closed.
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      });
    },
  };
}

/** @param accounts - none if the worker still waits for Redis */
async function readReadiness(accounts: readonly MonitoredAccount[], stuckAfterMs: number): Promise<Readiness> {
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
  const { headline, runbook } = headlineOf(view) ?? {};
  return {
    platformId,
    headline,
    ...(runbook !== undefined && { runbook }),
    ...status,
    paused: stats?.paused ?? null,
    pausedReason: stats?.pausedReason ?? null,
    stopped: advice.map(({ problem, command }) => ({ problem, command })),
    warnings: warnAbout(view),
  };
}

/** Of what this process knows now. It watches no heartbeat: a sender lives for as long as its reports come. */
function headlineOf({ platformId, status, work, details, redisIsUp, ...view }: AccountView): Headline | undefined {
  const { writeRefusal, formatError } = view;
  if (!redisIsUp) {
    return accountHeadline({
      redis: { kind: 'unavailable', sinceMs: 0, reason: 'it does not reply' },
      ledger: undefined,
    });
  }
  if (formatError !== undefined) return otherVersionHeadline(formatError);
  if (details === undefined) return undefined;
  const { stats, workers, due, money, atRisk, policyReport, stuck, notificationLagMs } = details;
  const wallNow = systemClock.wallNow();
  const isSender = status.role === 'sender';
  // Its own report may be what Redis refuses.
  const own = 'missing' in status ? { missing: status.missing } : {};
  const observed = workers.map((worker) => ({ ...worker, ...own, silentMs: Math.max(0, wallNow - worker.at) }));
  const { silentMs = 0 } = senderOf(stats.sender?.owner ?? '', observed) ?? {};
  const isLive = isSender || silentMs < WORKER_SILENT_AFTER_MS;
  const sinceSendMs = isSender ? work.sinceLastSendMs : 0;
  const ledger: LedgerObservation = {
    platformId,
    ageMs: 0,
    wallNow,
    life: stats.sender === null ? { kind: 'none' } : { ...stats.sender, kind: isLive ? 'alive' : 'silent', silentMs },
    workers: observed,
    writeRefusal,
    pausedReason: stats.pausedReason ?? undefined,
    objections: stats.objections.length,
    ...atRisk,
    due,
    sending: stats.sending,
    held: stats.held,
    unknown: stats.unknown,
    sends: stats.sends,
    sinceSendMs,
    watchedMs: sinceSendMs,
    readyMs: isSender ? Math.min(stats.oldestAgeMs.sending ?? stats.oldestAgeMs.queued ?? 0, sinceSendMs) : 0,
  };
  const left = { stats, stuck, notificationLagMs };
  const facts = { heldSums: [], heldBy: policyReport?.held ?? [], covers: money.covers, ...left };
  return accountHeadline({ redis: { kind: 'up' }, ledger }, facts);
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
  return { status, contentType: 'application/json; charset=utf-8', body: toJsonLine(body) };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, resolve);
    });
  } catch (error) {
    const { code, message: cause } = error as NodeJS.ErrnoException;
    const advice = code === 'EADDRINUSE' ? '; give each process on a host a port of its own' : '';
    const message = `the health server cannot listen on ${host} port ${port}: ${cause}${advice}`;
    throw new InvalidConfigError([{ field: 'HEALTH_PORT', message }]);
  }
}
