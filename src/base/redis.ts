import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Cluster, Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import { LONGEST_TIMER_MS, within } from './clock.js';
import { PayoutError, RedisUnavailableError } from './errors.js';
import { failsafeLogger, type Logger, silentLogger } from './logger.js';
import { lookUpRedis } from './look-up.js';

/** A connection to one Redis, to a Sentinel-watched one, or to a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * The purpose of a connection, which determines how it fails.
 *
 * - `commands`: an application or an operator waits: fail within seconds, with an error.
 * - `sender`: never send a command again behind the sender's back.
 * - `queue`: BullMQ's workers, which wait for Redis as long as it takes.
 */
export type RedisRole = 'commands' | 'sender' | 'queue';

const COMMAND_TIMEOUT_MS = 5_000;

/** A connection without a reply for this time, in ms, is reopened: it may be silently dead. */
const SOCKET_TIMEOUT_MS = 10_000;

const ROLE_OPTIONS: Record<RedisRole, Omit<RedisOptions, 'replyMapping'>> = {
  commands: {
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: 3_000,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
    socketTimeout: SOCKET_TIMEOUT_MS,
  },
  sender: {
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: 3_000,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    socketTimeout: SOCKET_TIMEOUT_MS,
  },
  // BullMQ lets a command wait for up to twenty seconds.
  queue: { connectTimeout: 5_000, maxRetriesPerRequest: null, socketTimeout: 30_000 },
};

const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 1_000;

/** Closing while Redis is unavailable keeps the process alive for this long. */
const DISCONNECT_WITHIN_MS = 250;

const QUIT_WITHIN_MS = 1_000;

type RedisTarget =
  | { readonly kind: 'single'; readonly node: Node; readonly login: Login }
  | { readonly kind: 'sentinel'; readonly nodes: Node[]; readonly masterName: string; readonly login: Login }
  | { readonly kind: 'cluster'; readonly nodes: Node[]; readonly login: Login };

interface Node {
  readonly host: string;
  readonly port: number;
}

interface Login {
  readonly username?: string;
  readonly password?: string;
  readonly db?: number;
  readonly tls?: object;
}

const ADDRESS = /^redis(s)?(-sentinel|-cluster)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^@?#]*))?$/;
const HIGHEST_PORT = 65_535;

/**
 * Parses a Redis address. `rediss…` uses TLS.
 *
 * - `redis://[user:password@]host:port[/db]`
 * - `redis-sentinel://[user:password@]host:port,host:port/masterName[/db]`
 * - `redis-cluster://[user:password@]host:port,host:port`
 *
 * @throws TypeError with the problem, but no part of the address, since each may be a piece of the password
 */
export function parseRedisUrl(url: string): RedisTarget {
  if (!/^rediss?(-sentinel|-cluster)?:\/\//.test(url)) {
    throw new TypeError('must begin with redis://, redis-sentinel:// or redis-cluster:// (rediss… for TLS)');
  }
  const match = ADDRESS.exec(url);
  if (match === null) {
    throw new TypeError(
      'must be redis://[user:password@]host:port[/db], without a query; in a user name or password write @ / ? # as %40 %2F %3F %23',
    );
  }
  const [, secure, kind, credentials, hosts = '', path = ''] = match;
  const nodes = hosts.split(',').map((host) => parseNode(host, kind === '-sentinel' ? 26379 : 6379));
  const login = { ...parseCredentials(credentials), ...(secure === undefined ? {} : { tls: {} }) };
  if (kind === undefined) {
    const [node, ...others] = nodes;
    if (node === undefined || others.length > 0) {
      throw new TypeError('names several hosts: use redis-cluster:// or redis-sentinel://');
    }
    return { kind: 'single', node, login: { ...login, db: parseDatabase(path) } };
  }
  if (kind === '-cluster') {
    if (path !== '') throw new TypeError('names a database, but a Redis Cluster has only one');
    return { kind: 'cluster', nodes, login };
  }
  const [masterName = '', database = ''] = path.split('/');
  if (masterName === '') throw new TypeError('must name the master: redis-sentinel://host:port,host:port/masterName');
  return { kind: 'sentinel', nodes, masterName, login: { ...login, db: parseDatabase(database) } };
}

function parseNode(text: string, defaultPort: number): Node {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  if (match?.[1] === undefined || port < 1 || port > HIGHEST_PORT) {
    throw new TypeError('must name its hosts as host:port (an IPv6 address in brackets), separated by commas');
  }
  return { host: match[1].replace(/^\[|\]$/g, ''), port };
}

function parseCredentials(text: string | undefined): Login {
  if (text === undefined || text === '') return {};
  const [username = '', ...rest] = text.split(':');
  return {
    ...(username === '' ? {} : { username: decode(username) }),
    ...(rest.length === 0 ? {} : { password: decode(rest.join(':')) }),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError('holds a % in its user name or password that begins no escape: write it as %25');
  }
}

function parseDatabase(text: string): number {
  if (!/^\d{0,4}$/.test(text)) throw new TypeError('names a database that is not a number');
  return Number(text);
}

/**
 * Opens a connection. It reconnects by itself until `quit()` or `disconnect()`.
 * @throws TypeError if the address is invalid
 */
export function connectRedis(url: string, role: RedisRole, logger: Logger = silentLogger): RedisClient {
  const target = parseRedisUrl(url);
  const retryStrategy = (attempt: number): number | null => (closed.has(client) ? null : reconnectDelay(attempt));
  const options = { ...ROLE_OPTIONS[role], retryStrategy, disconnectTimeout: DISCONNECT_WITHIN_MS };
  const client: RedisClient = openClient(target, options);
  logConnectionTrouble(client, role, failsafeLogger(logger));
  return client;
}

function openClient(target: RedisTarget, options: Omit<RedisOptions, 'replyMapping'>): RedisClient {
  switch (target.kind) {
    case 'single':
      return new Redis({ ...options, ...target.node, ...target.login, Connector: NamedConnector });
    case 'sentinel': {
      const { nodes, masterName, login } = target;
      return new Redis({
        ...options,
        ...login,
        sentinels: nodes,
        name: masterName,
        // Detects a demoted master, which must not be written to until its connection happens to break.
        failoverDetector: true,
        Connector: SteadySentinelConnector,
        sentinelRetryStrategy: reconnectDelay,
        ...(login.tls === undefined ? {} : { enableTLSForSentinelMode: true }),
        ...(login.password === undefined ? {} : { sentinelPassword: login.password }),
        ...(login.username === undefined ? {} : { sentinelUsername: login.username }),
      });
    }
    case 'cluster':
      return new BoundedCluster(target.nodes, {
        redisOptions: { ...options, ...target.login },
        clusterRetryStrategy: options.retryStrategy,
        enableOfflineQueue: options.enableOfflineQueue ?? true,
        // Otherwise ioredis repeats a command whose connection broke, whether or not it was carried out.
        ...(options.autoResendUnfulfilledCommands === false ? { retryDelayOnFailover: 0 } : {}),
        // With TLS the certificate is for the name, not for the address that the cluster announces.
        ...(target.login.tls === undefined
          ? {}
          : {
              dnsLookup: (address, callback) => {
                callback(null, address);
              },
            }),
      });
  }
}

/** ioredis lets a command wait forever while no server of a cluster is known; its `commandTimeout` starts only then. */
class BoundedCluster extends Cluster {
  override sendCommand(...args: Parameters<Cluster['sendCommand']>): unknown {
    const limitMs = this.options.redisOptions?.commandTimeout;
    if (limitMs !== undefined) args[0].setTimeout(limitMs);
    return super.sendCommand(...args);
  }
}

/**
 * Opens another connection like this one for blocking commands, which would delay all others on a shared one.
 * @param waitMs - the longest wait of a command
 */
export function duplicateForWaiting(client: RedisClient, waitMs: number): RedisClient {
  const options = {
    commandTimeout: Math.min(COMMAND_TIMEOUT_MS + waitMs, LONGEST_TIMER_MS),
    socketTimeout: Math.min(SOCKET_TIMEOUT_MS + waitMs, LONGEST_TIMER_MS),
  };
  const duplicate =
    client instanceof Cluster ? client.duplicate([], { redisOptions: options }) : client.duplicate(options);
  // Commands on it fail, and their callers report it.
  duplicate.on('error', () => undefined);
  return duplicate;
}

function reconnectDelay(attempt: number): number {
  return Math.min(RECONNECT_MIN_MS * 2 ** Math.min(attempt, 10), RECONNECT_MAX_MS);
}

/** ioredis repeats the same error at every attempt; this logs one line for each outage. */
function logConnectionTrouble(client: RedisClient, role: RedisRole, logger: Logger): void {
  let unavailable = false;
  client.on('error', (error: Error) => {
    // Every command fails with the same words, and its caller has them.
    if (role === 'commands' && describeLogin(error) !== undefined) return;
    if (!unavailable) logger.warn({ role, error: describeTrouble(error) }, 'Redis unavailable, reconnecting');
    unavailable = true;
  });
  client.on('ready', () => {
    if (unavailable) logger.info({ role }, 'Redis reconnected');
    unavailable = false;
  });
}

/** Replies of a Redis that is there but cannot work now; every other error reply is a mistake of ours. */
const UNAVAILABLE_REPLIES: ReadonlySet<string | undefined> = new Set([
  ...['LOADING', 'READONLY', 'CLUSTERDOWN', 'MASTERDOWN', 'TRYAGAIN', 'OOM', 'MISCONF', 'BUSY', 'NOREPLICAS'],
  ...['UNBLOCKED', 'NOAUTH', 'WRONGPASS', 'NOPERM', 'MAXCLIENTS'],
]);

/** Redis has no code of its own for this one. */
const TOO_MANY_CLIENTS = 'ERR max number of clients';

/** The code of an error reply of Redis, such as `NOAUTH`; undefined for every other error. */
export function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined;
  return error.message.startsWith(TOO_MANY_CLIENTS) ? 'MAXCLIENTS' : error.message.split(' ', 1)[0];
}

const CONNECTION_ERROR_NAMES = new Set([
  'AbortError',
  'InterruptError',
  'MaxRetriesPerRequestError',
  'ClusterAllFailedError',
]);

const CONNECTION_ERROR_MESSAGE =
  /^(?:Connection is (?:closed|aborted|discarded)|Command timed out|Socket timeout|connect ETIMEDOUT|Stream isn't writeable|All sentinels are unreachable|None of startup nodes|Node is disconnected|Cluster (?:is ended|is disconnect|isn't ready)|Too many Cluster redirections|Unknown RESP type)/;

const CONNECTION_ERROR_CODE =
  /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_|ENOTFOUND|EADDRNOTAVAIL|EPROTO|ERR_TLS_|ERR_SSL_|ERR_SOCKET_|ERR_STREAM_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/**
 * Converts a failed Redis call into this project's error, so that callers need not know ioredis.
 * @returns a RedisUnavailableError for connection trouble, timeouts and a Redis that cannot work now; other errors,
 * such as a wrong type or a script's own, unchanged
 */
export function toRedisError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof PayoutError || !isUnavailable(error)) return error;
  return new RedisUnavailableError(
    `Redis unavailable (${describeTrouble(error)}): check that it runs, and the address, user and password in REDIS_URL; asking again is safe`,
    { cause: error },
  );
}

function isUnavailable(error: Error): boolean {
  if (error.name === 'ReplyError') return UNAVAILABLE_REPLIES.has(replyCode(error));
  // Errors that only a mistake in a program makes; Node gives some of them codes as well.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return false;
  if (CONNECTION_ERROR_NAMES.has(error.name) || CONNECTION_ERROR_MESSAGE.test(error.message)) return true;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === 'connect' || (typeof code === 'string' && CONNECTION_ERROR_CODE.test(code));
}

/** Why a call failed, without advice. ioredis speaks of its own options if a command found no connection. */
export function describeTrouble(error: Error): string {
  if (error instanceof RedisUnavailableError && error.cause instanceof Error) return describeTrouble(error.cause);
  const known = describeLogin(error) ?? (NOT_TLS.test(error.message) ? WITHOUT_TLS : undefined);
  if (known !== undefined) return known;
  const isUnconnected =
    error.name === 'MaxRetriesPerRequestError' || error.message.startsWith("Stream isn't writeable");
  return isUnconnected ? 'no connection' : error.message;
}

function describeLogin(error: Error): string | undefined {
  switch (replyCode(error)) {
    case 'NOAUTH':
      return 'it asks for a password, and there is none in the address (NOAUTH)';
    case 'WRONGPASS':
      return 'it knows no such user and password (WRONGPASS)';
    default:
      return undefined;
  }
}

const WITHOUT_TLS = 'the port is open, but does not speak TLS: give its TLS port, or redis:// in place of rediss://';

/** OpenSSL's words for a reply that is not TLS. */
const NOT_TLS = /wrong version number|packet length too long/;

/** Closed connections. BullMQ's copies share their options, and end with them. */
const closed = new WeakSet<RedisClient>();

export async function closeRedis(client: RedisClient): Promise<void> {
  closed.add(client);
  if (client.status === 'ready') {
    // A hanging Redis does not respond to QUIT either.
    await within(
      QUIT_WITHIN_MS,
      client.quit().catch(() => undefined),
    );
  }
  if (client.status !== 'end') client.disconnect();
}

/**
 * Connects to one Redis, with the process's shared look-ups. ioredis's own connector leaves a look-up behind each time
 * it gives up. If one takes longer than an attempt to connect, each waits for all before it, and none ever connects.
 */
class NamedConnector extends AbstractConnector {
  readonly #options: RedisOptions;

  constructor(options: unknown) {
    const { disconnectTimeout = 0 } = options as RedisOptions;
    super(disconnectTimeout);
    this.#options = options as RedisOptions;
  }

  override async connect(): ReturnType<AbstractConnector['connect']> {
    this.connecting = true;
    const { host = 'localhost', port = 6379, family = 0, tls } = this.#options;
    const where = { host, port, lookup: lookUpRedis, family };
    const stream = tls === undefined ? createConnection(where) : connectTls({ ...where, ...tls });
    this.stream = stream;
    stream.once('error', (error: Error) => {
      this.firstError = error;
    });
    if (tls !== undefined) endWithoutTls(stream, this.#options.connectTimeout);
    return Promise.resolve(stream);
  }
}

/** Shortly before ioredis gives up. */
const BEFORE_TIMEOUT_MS = 100;

/** A plain Redis takes the beginning of TLS for the beginning of a command, and waits for the rest. */
function endWithoutTls(stream: Socket, timeoutMs = SOCKET_TIMEOUT_MS): void {
  const timer = setTimeout(() => {
    if (!stream.connecting) stream.destroy(Object.assign(new Error(WITHOUT_TLS), { code: 'EPROTO' }));
  }, timeoutMs - BEFORE_TIMEOUT_MS);
  const end = (): void => {
    clearTimeout(timer);
  };
  stream.once('secureConnect', end).once('close', end);
}

/**
 * Finds the master through Sentinel, also while a failover is announced.
 *
 * ioredis's connector listens for failovers until the next connection is made, and ends what it finds. News during its
 * next question would end the client for good.
 */
class SteadySentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as RedisOptions);
  }

  override async connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    // Stops listening; the connection is already gone.
    this.disconnect();
    return super.connect(...args);
  }
}
