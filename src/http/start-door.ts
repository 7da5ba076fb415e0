import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { type AddressInfo, BlockList, isIPv6 } from 'node:net';
import { createSecureContext } from 'node:tls';
import { isAborted, systemClock, within } from '../base/clock.js';
import type { readSettings } from '../base/config.js';
import { InvalidConfigError } from '../base/errors.js';
import { failsafeLogger, type Logger } from '../base/logger.js';
import { closeRedis, connectRedis, type RedisClient } from '../base/redis.js';
import type { SERVE_SETTINGS } from '../base/settings.js';
import { readSecretFile } from '../base/trusted-file.js';
import { PayoutProducer, type PayoutProducerOptions } from '../control/payout-producer.js';
import { ask, connectLedger } from '../ledger/ledger-connection.js';
import { EventBell } from './event-stream.js';
import { HttpMetrics } from './http-metrics.js';
import type { DoorAccount } from './routes.js';
import { createDoor } from './serve-request.js';
import { Tokens } from './tokens.js';

/** Starts and stops the HTTP door: a thin way to `PayoutProducer` for programs that are not Node. */

type ServeSettings = ReturnType<typeof readSettings<typeof SERVE_SETTINGS>>;

export interface DoorOptions
  extends
    ServeSettings,
    Pick<PayoutProducerOptions, 'redisReplicas' | 'checkAddresses' | 'keysFile' | 'acceptUnboundUntil'> {
  readonly platformIds: readonly number[];
  readonly redisUrl: string;
  /** Each account's environment; required with `keysFile`. */
  readonly audiences: ReadonlyMap<number, string>;
  readonly healthHost: string;
  /** See `ALLOW_READABLE_SECRETS`. */
  readonly mayBeOpen: boolean;
  readonly logger: Logger;
}

export interface RunningDoor {
  readonly url: string;
  readonly healthUrl: string;
  /** Reads tokens and certificate again; what cannot be read stays as it was. */
  reload(): void;
  /** Answers the requests in progress, ends streams, and adds the jobs of accepted payouts. Safe to call twice. */
  close(): Promise<void>;
}

const TOKENS_READ_EVERY_MS = 1_000;
const CLOSE_WITHIN_MS = 10_000;

/** A client that sends slowly holds a connection for some seconds only. */
const SERVER_LIMITS = {
  maxHeaderSize: 8_192,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  noDelay: true,
} as const;
const MAX_CONNECTIONS = 1_000;
const MAX_HEADERS = 64;
/** For a client that does not read its response. Streams write more often. */
const SILENT_CONNECTION_MS = 90_000;

/** @throws InvalidConfigError if it would serve unprotected, or a file or an address cannot be used */
export async function startDoor(options: DoorOptions): Promise<RunningDoor> {
  const logger = failsafeLogger(options.logger);
  const refuse = protect(options);
  const tls = readTls(options);
  const tokens = new Tokens(options.serveTokensFile, options.platformIds, options.mayBeOpen);
  const closed = new AbortController();
  const redis = connectRedis(options.redisUrl, 'commands', logger);
  const accounts = new Map<number, DoorAccount>();
  const metrics = new HttpMetrics();
  const closeAccounts = async (): Promise<void> => {
    await Promise.all([...accounts.values()].map(async ({ producer }) => producer.close()));
    await closeRedis(redis);
  };
  const servers: Server[] = [];
  try {
    for (const platformId of options.platformIds) {
      accounts.set(platformId, openAccount(redis, platformId, options, closed.signal));
    }
    const door = createDoor({ accounts, tokens, metrics, logger, refuse, closed: closed.signal });
    const server =
      tls === undefined ? createHttpServer(SERVER_LIMITS, door) : createHttpsServer({ ...SERVER_LIMITS, ...tls }, door);
    server.maxConnections = MAX_CONNECTIONS;
    server.maxHeadersCount = MAX_HEADERS;
    server.timeout = SILENT_CONNECTION_MS;
    servers.push(server);
    const url = await listen(
      server,
      tls === undefined ? 'http' : 'https',
      options.serveHost,
      options.servePort,
      'SERVE_PORT',
    );
    const health = createHttpServer(SERVER_LIMITS, (request, response) => {
      void respondHealth(request, { redis, tokens, metrics }).then(([status, type, body]) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
      });
    });
    servers.push(health);
    const healthUrl = await listen(health, 'http', options.healthHost, options.serveHealthPort, 'SERVE_HEALTH_PORT');

    const reloadTokens = (): void => {
      if (tokens.reload()) logger.info({}, 'the tokens were read again');
      else logger.error({ error: tokens.trouble }, 'the tokens could not be read again: those before still count');
      metrics.tokensStale.set(tokens.trouble === undefined ? 0 : 1);
    };
    watchFile(options.serveTokensFile, { interval: TOKENS_READ_EVERY_MS, persistent: false }, reloadTokens);
    const close = async (): Promise<void> => {
      unwatchFile(options.serveTokensFile, reloadTokens);
      closed.abort();
      await Promise.all(servers.map(closeServer));
      await closeAccounts();
    };
    let closing: Promise<void> | undefined;
    return {
      url,
      healthUrl,
      reload: () => {
        reloadTokens();
        if (tls !== undefined) reloadTls(server as ReturnType<typeof createHttpsServer>, options, logger);
      },
      close: async () => (closing ??= close()),
    };
  } catch (error) {
    await Promise.all(servers.map(closeServer));
    await closeAccounts();
    throw error;
  }
}

function openAccount(
  redis: RedisClient,
  platformId: number,
  { keysFile, audiences, acceptUnboundUntil, redisReplicas, checkAddresses, logger }: DoorOptions,
  closed: AbortSignal,
): DoorAccount {
  const connection = connectLedger(redis, platformId, systemClock);
  const audience = audiences.get(platformId);
  const keyring = keysFile === undefined ? {} : { keysFile, audience, acceptUnboundUntil };
  return {
    producer: new PayoutProducer({ platformId, connection: redis, redisReplicas, checkAddresses, logger, ...keyring }),
    connection,
    bell: new EventBell(connection, logger, closed),
    requiresSignature: keysFile !== undefined,
  };
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;

/**
 * A token crosses a network protected by TLS only: the door's own, or that of a proxy that is named.
 * @returns says why a request is refused
 * @throws InvalidConfigError if neither is set and other machines can connect
 */
function protect({ serveHost, serveTlsCertFile, serveTrustedProxies }: ServeSettings) {
  const passes = (): undefined => undefined;
  if (serveTlsCertFile !== undefined || LOOPBACK.test(serveHost)) return passes;
  if (serveTrustedProxies === undefined) {
    const message = `is ${serveHost}, which other machines can reach, and tokens would cross the network in the clear: set SERVE_TLS_CERT_FILE and SERVE_TLS_KEY_FILE, or name the TLS proxy in front of it in SERVE_TRUSTED_PROXIES, or listen on 127.0.0.1`;
    throw new InvalidConfigError([{ field: 'SERVE_HOST', message }]);
  }
  const proxies = toBlockList(serveTrustedProxies);
  return ({ socket, headers }: IncomingMessage): string | undefined => {
    const { remoteAddress = '' } = socket;
    if (!proxies.check(remoteAddress, isIPv6(remoteAddress) ? 'ipv6' : 'ipv4')) {
      return 'Without TLS only the proxies of SERVE_TRUSTED_PROXIES may connect: use their address, and change the token, which crossed the network in the clear';
    }
    const { 'x-forwarded-proto': scheme } = headers;
    if (scheme === undefined || scheme === 'https') return undefined;
    return 'The request came to the proxy without TLS: use https, and change the token, which crossed the network in the clear';
  };
}

const NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

function toBlockList(proxies: readonly string[]): BlockList {
  const list = new BlockList();
  for (const proxy of proxies.flatMap((name) => NETWORKS[name] ?? name)) {
    const [address = '', bits] = proxy.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** @throws InvalidConfigError if one of the files is missing, or they do not belong together */
function readTls({
  serveTlsCertFile,
  serveTlsKeyFile,
  mayBeOpen,
}: DoorOptions): { cert: string; key: string } | undefined {
  const [cert, key] = [
    ['SERVE_TLS_CERT_FILE', serveTlsCertFile] as const,
    ['SERVE_TLS_KEY_FILE', serveTlsKeyFile] as const,
  ];
  const read = ([field, path]: typeof cert | typeof key, other: string, reading: (path: string) => string): string => {
    if (path === undefined) throw new InvalidConfigError([{ field, message: `is required, because ${other} is set` }]);
    try {
      return reading(path);
    } catch (error) {
      throw new InvalidConfigError([{ field, message: `${path} ${(error as Error).message}` }]);
    }
  };
  if (serveTlsCertFile === undefined && serveTlsKeyFile === undefined) return undefined;
  const pair = {
    cert: read(cert, key[0], (path) => readFileSync(path, 'utf8')),
    key: read(key, cert[0], (path) => readSecretFile(path, mayBeOpen)),
  };
  try {
    createSecureContext(pair);
  } catch (error) {
    const message = `cannot be used with its key: ${(error as Error).message}`;
    throw new InvalidConfigError([{ field: 'SERVE_TLS_CERT_FILE', message }]);
  }
  return pair;
}

function reloadTls(server: ReturnType<typeof createHttpsServer>, options: DoorOptions, logger: Logger): void {
  try {
    server.setSecureContext(readTls(options) ?? {});
    logger.info({}, 'the certificate was read again');
  } catch (error) {
    logger.error(
      { error: (error as Error).message },
      'the certificate could not be read again: the one before is used',
    );
  }
}

type HealthResponse = readonly [status: number, type: string, body: string];

const READY_WITHIN_MS = 2_000;

async function respondHealth(
  request: IncomingMessage,
  { redis, tokens, metrics }: { redis: RedisClient; tokens: Tokens; metrics: HttpMetrics },
): Promise<HealthResponse> {
  const json = (status: number, body: object): HealthResponse => [
    status,
    'application/json',
    `${JSON.stringify(body)}\n`,
  ];
  request.resume();
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return json(200, { alive: true });
    case '/readyz': {
      const pong = await within(READY_WITHIN_MS, ask(redis.ping())).catch(() => undefined);
      const [isUp, isFresh] = [pong === 'PONG', tokens.trouble === undefined];
      // With former tokens it serves all the same: an operator must look, a load balancer need not.
      return json(isUp ? 200 : 503, {
        ready: isUp,
        redis: isUp ? 'up' : 'unavailable',
        tokens: isFresh ? 'read' : 'stale',
      });
    }
    case '/metrics':
      return [200, metrics.registry.contentType, await metrics.registry.metrics()];
    default:
      return json(404, { error: 'there are /healthz, /readyz and /metrics' });
  }
}

/** @throws InvalidConfigError if it cannot listen */
async function listen(server: Server, scheme: string, host: string, port: number, field: string): Promise<string> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, resolve);
    });
  } catch (error) {
    throw new InvalidConfigError([
      { field, message: `cannot listen on ${host} port ${port}: ${(error as Error).message}` },
    ]);
  }
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

const LOOK_AGAIN_MS = 50;

/** Waits for the responses in progress, then ends every connection. */
async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const done = new AbortController();
  server.close(() => {
    done.abort();
  });
  const deadline = systemClock.now() + CLOSE_WITHIN_MS;
  while (!isAborted(done.signal) && systemClock.now() < deadline) {
    server.closeIdleConnections();
    await systemClock.sleep(LOOK_AGAIN_MS, done.signal);
  }
  server.closeAllConnections();
}
