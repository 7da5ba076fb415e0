import { once } from 'node:events';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createSecureContext } from 'node:tls';
import { systemClock, within } from '../base/clock.js';
import type { readSettings } from '../base/config.js';
import { endIdleConnections } from '../base/end-idle-connections.js';
import { InvalidConfigError } from '../base/errors.js';
import { answerHealth, listen } from '../base/health-server.js';
import { failsafeLogger, type Logger } from '../base/logger.js';
import { closeRedis, connectRedis } from '../base/redis.js';
import type { SERVE_SETTINGS } from '../base/settings.js';
import { readSecretFile } from '../base/trusted-file.js';
import { CurrentFile, readNamedBy } from '../control/keys/current-file.js';
import { PayoutProducer, type PayoutProducerOptions } from '../control/payout-producer.js';
import { ask, connectLedger } from '../ledger/ledger-connection.js';
import { openBell } from './event-stream.js';
import type { DoorAccount } from './routes.js';
import { createDoor, HttpMetrics } from './serve-request.js';
import { Tokens } from './tokens.js';

/** Starts and stops the HTTP door: a thin way to `PayoutProducer` for programs that are not Node. */

type ServeSettings = ReturnType<typeof readSettings<typeof SERVE_SETTINGS>>;
type ProducerSetting = 'redisReplicas' | 'checkAddresses' | 'checkPaymentIds' | 'requireCurrencies' | 'keysFile';

export interface DoorOptions extends ServeSettings, Pick<PayoutProducerOptions, ProducerSetting> {
  readonly platformIds: readonly number[];
  readonly redisUrl: string;
  readonly audiences: ReadonlyMap<number, string>;
  readonly healthHost: string;
  readonly mayBeOpen: boolean;
  readonly logger: Logger;
}

export interface RunningDoor {
  readonly url: string;
  readonly healthUrl: string;
  reload(): void;
  /** Answers the requests in progress, and adds the jobs of accepted payouts. Safe to call twice. */
  close(): Promise<void>;
}

const TOKENS_READ_EVERY_MS = 1_000;
const READY_WITHIN_MS = 2_000;
const CLOSE_WITHIN_MS = 10_000;

/** A slow client holds a connection for some seconds only. */
const SERVER_LIMITS = {
  maxHeaderSize: 8_192,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
} as const;
/** `timeout` is for a client that does not read. */
const MOST_BEFORE_IDLE_END = 900;
const CONNECTION_LIMITS = { maxConnections: 1_000, maxHeadersCount: 64, timeout: 90_000 } as const;

/** @throws InvalidConfigError if it would serve unprotected, or a file or an address cannot be used */
export async function startDoor(options: DoorOptions): Promise<RunningDoor> {
  const { serveTokensFile, platformIds, mayBeOpen, keysFile } = options;
  const { redisReplicas, checkAddresses, checkPaymentIds, requireCurrencies } = options;
  const checks = { redisReplicas, checkAddresses, checkPaymentIds, requireCurrencies };
  const logger = failsafeLogger(options.logger);
  const refuse = await protect(options);
  const tls = new CurrentFile(() => readTls(options));
  const tokens = new Tokens(serveTokensFile, platformIds, mayBeOpen);
  const metrics = new HttpMetrics();
  const closed = new AbortController();
  const redis = connectRedis(options.redisUrl, 'commands', logger);
  const accounts = new Map<number, DoorAccount>();
  const servers: Server[] = [];

  const readAgain = (file: CurrentFile<unknown>, name: string): boolean => {
    const isRead = file.reload();
    if (isRead) logger.info({}, `the ${name} were read again`);
    else logger.error({ error: file.trouble }, `the ${name} could not be read again: those before still count`);
    return isRead;
  };
  const reloadTokens = (): void => {
    metrics.tokensStale.set(readAgain(tokens, 'tokens') ? 0 : 1);
  };
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    unwatchFile(serveTokensFile, reloadTokens);
    closed.abort();
    await Promise.all(servers.map(closeServer));
    await Promise.all([...accounts.values()].map(async ({ producer }) => producer.close()));
    await closeRedis(redis);
  };
  const close = async (): Promise<void> => (closing ??= closeAll());

  try {
    for (const platformId of platformIds) {
      const connection = connectLedger(redis, platformId, systemClock);
      const keyring = { keysFile, audience: options.audiences.get(platformId) };
      accounts.set(platformId, {
        producer: new PayoutProducer({ platformId, connection: redis, logger, ...checks, ...keyring }),
        connection,
        nextEvents: openBell(connection, logger, closed.signal),
        requiresSignature: keysFile !== undefined,
      });
    }
    const door = createDoor({ accounts, tokens, metrics, logger, refuse, closed: closed.signal });
    const encrypted = tls.content && createHttpsServer({ ...SERVER_LIMITS, ...tls.content }, door);
    const server = encrypted ?? createHttpServer(SERVER_LIMITS, door);
    const answer = answerHealth(metrics.registry, async () => {
      const ready = (await within(READY_WITHIN_MS, ask(redis.ping())).catch(() => undefined)) === 'PONG';
      const readable = tokens.trouble === undefined ? 'read' : 'stale';
      return [ready, { ready, redis: ready ? 'up' : 'unavailable', tokens: readable }];
    });
    const health = createHttpServer(SERVER_LIMITS, answer);
    for (const each of [server, health]) {
      servers.push(Object.assign(each, CONNECTION_LIMITS));
      endIdleConnections(each, MOST_BEFORE_IDLE_END);
    }
    const url = await listen(server, options.serveHost, options.servePort, 'SERVE_PORT');
    const healthUrl = await listen(health, options.healthHost, options.serveHealthPort, 'SERVE_HEALTH_PORT');
    watchFile(serveTokensFile, { interval: TOKENS_READ_EVERY_MS, persistent: false }, reloadTokens);
    return {
      url: `http${encrypted === undefined ? '' : 's'}://${url}`,
      healthUrl: `http://${healthUrl}`,
      reload() {
        reloadTokens();
        if (encrypted !== undefined && readAgain(tls, 'TLS files')) encrypted.setSecureContext(tls.content ?? {});
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;

/**
 * A token crosses a network under TLS only: the door's own, or that of a named proxy.
 * @returns says why a request is refused
 */
async function protect({ serveHost, serveTlsCertFile, serveTrustedProxies }: ServeSettings) {
  if (serveTlsCertFile !== undefined || LOOPBACK.test(serveHost)) return () => undefined;
  if (serveTrustedProxies === undefined) {
    const message = `is ${serveHost}, which other machines can reach, so tokens would cross the network in the clear: set SERVE_TLS_CERT_FILE and SERVE_TLS_KEY_FILE, name a TLS proxy in SERVE_TRUSTED_PROXIES, or listen on 127.0.0.1`;
    throw new InvalidConfigError([{ field: 'SERVE_HOST', message }]);
  }
  // Only its reading of proxies: its handling of requests would cost more than the door.
  const { default: express } = await import('express');
  const app = express().set('trust proxy', [...serveTrustedProxies]);
  const trusts = app.get('trust proxy fn') as (address: string | undefined, hop: number) => boolean;
  const change = 'and change the token, which crossed the network in the clear';
  return ({ socket, headers }: IncomingMessage): string | undefined => {
    if (!trusts(socket.remoteAddress, 0)) {
      return `Without TLS only the proxies of SERVE_TRUSTED_PROXIES may connect: use their address, ${change}`;
    }
    const protocol = headers['x-forwarded-proto'];
    if (protocol === 'https') return undefined;
    if (protocol === undefined)
      return 'The proxy does not say how the request came to it: let it set X-Forwarded-Proto';
    return `The request came to the proxy without TLS: use https, ${change}`;
  };
}

const [CERT, KEY] = ['SERVE_TLS_CERT_FILE', 'SERVE_TLS_KEY_FILE'] as const;

function readTls({ serveTlsCertFile: certFile, serveTlsKeyFile: keyFile, mayBeOpen }: DoorOptions) {
  if (certFile === undefined || keyFile === undefined) {
    if (certFile === keyFile) return undefined;
    const [field, other] = certFile === undefined ? [CERT, KEY] : [KEY, CERT];
    throw new InvalidConfigError([{ field, message: `is required, because ${other} is set` }]);
  }
  const cert = readNamedBy(CERT, certFile, () => readFileSync(certFile, 'utf8'));
  const key = readNamedBy(KEY, keyFile, () => readSecretFile(keyFile, mayBeOpen));
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const message = `cannot be used with its key: ${(error as Error).message}`;
    throw new InvalidConfigError([{ field: CERT, message }]);
  }
  return { cert, key };
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  // After its response a connection is idle, and would keep the server open.
  server.keepAliveTimeout = 1;
  await within(CLOSE_WITHIN_MS, once(server.close(), 'close'));
  server.closeAllConnections();
}
