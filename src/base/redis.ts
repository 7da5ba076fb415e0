import { isDeepStrictEqual } from 'node:util';
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  AbstractConnector,
  Cluster,
  Command,
  type ClusterNode,
  type ClusterOptions,
  type Redis,
  type RedisOptions,
  SentinelConnector,
} from 'ioredis';
import { LONGEST_TIMER_MS, within } from './clock.js';
import { leaveDemoted, SteadyRedis } from './leave-demoted.js';
import { failsafeLogger, type Logger, silentLogger } from './logger.js';
import { lookUpRedis } from './look-up.js';
import { describeLogin, describeTrouble, requireClassNames, WITHOUT_TLS } from './redis-errors.js';

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
 * @throws InvalidConfigError if a bundler has renamed classes
 */
export function connectRedis(url: string, role: RedisRole, logger: Logger = silentLogger): RedisClient {
  const target = parseRedisUrl(url);
  return open(role, logger, (options) => openTarget(target, options));
}

type OwnOptions = Omit<RedisOptions, 'replyMapping'>;

function open(role: RedisRole, logger: Logger, connect: (options: OwnOptions) => RedisClient): RedisClient {
  requireClassNames();
  const retryDelay = (attempt: number): number | null => (closed.has(client) ? null : reconnectDelay(attempt));
  const log = failsafeLogger(logger);
  const options = { ...ROLE_OPTIONS[role], ...leaveDemoted(retryDelay, log), disconnectTimeout: DISCONNECT_WITHIN_MS };
  const client: RedisClient = connect(options);
  logConnectionTrouble(client, role, log);
  return client;
}

function openTarget(target: RedisTarget, options: OwnOptions): RedisClient {
  switch (target.kind) {
    case 'single':
      return openServer({ ...target.node, ...target.login }, options);
    case 'sentinel': {
      const { nodes, masterName, login } = target;
      const sentinel = {
        sentinels: nodes,
        name: masterName,
        ...(login.tls === undefined ? {} : { enableTLSForSentinelMode: true }),
        ...(login.password === undefined ? {} : { sentinelPassword: login.password }),
        ...(login.username === undefined ? {} : { sentinelUsername: login.username }),
      };
      return openServer({ ...login, ...sentinel }, options);
    }
    case 'cluster':
      return openCluster(target.nodes, target.login, options);
  }
}

/** One Redis, or one watched by Sentinels. */
function openServer(where: OwnOptions, options: OwnOptions): Redis {
  if (!where.sentinels) return new SteadyRedis({ ...options, ...where, Connector: NamedConnector });
  return new SteadyRedis({
    ...options,
    ...where,
    // Detects a demoted master, which must not be written to until its connection happens to break.
    failoverDetector: true,
    Connector: SteadySentinelConnector,
    sentinelRetryStrategy: reconnectDelay,
  });
}

function openCluster(
  nodes: ClusterNode[],
  login: OwnOptions,
  options: OwnOptions,
  { dnsLookup, natMap }: Pick<ClusterOptions, 'dnsLookup' | 'natMap'> = {},
): Cluster {
  return new BoundedCluster(nodes, {
    redisOptions: { ...options, ...login },
    clusterRetryStrategy: options.retryStrategy,
    enableOfflineQueue: options.enableOfflineQueue ?? true,
    // Otherwise ioredis repeats a command whose connection broke, whether or not it was carried out.
    ...(options.autoResendUnfulfilledCommands === false ? { retryDelayOnFailover: 0 } : {}),
    // With TLS the certificate is for the name, not for the address that the cluster announces.
    ...(login.tls && {
      dnsLookup: (address, callback) => {
        callback(null, address);
      },
    }),
    ...(dnsLookup && { dnsLookup }),
    ...(natMap && { natMap }),
  });
}

/** The options of ioredis that say where a connection leads and how it logs in, and none that says how it fails. */
const WHERE = [
  ...([
    'host',
    'port',
    'path',
    'family',
    'db',
    'username',
    'password',
    'tls',
    'keepAlive',
    'noDelay',
    'natMap',
  ] as const),
  ...(['sentinels', 'name', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS', 'updateSentinels'] as const),
  ...(['enableTLSForSentinelMode', 'sentinelMaxConnections', 'connectionName', 'clientInfoTag'] as const),
] as const;

function whereOf(options: RedisOptions = {}): OwnOptions {
  return Object.fromEntries(WHERE.filter((name) => options[name] != null).map((name) => [name, options[name]]));
}

/** Opens a connection of its own to the same Redis, with the time limits of the role. The given one is not used. */
export function connectLike(client: RedisClient, role: RedisRole, logger: Logger): RedisClient {
  return open(role, logger, (options) => {
    if (!isCluster(client)) return openServer(whereOf(client.options), options);
    return openCluster(
      client['startupNodes'] as ClusterNode[],
      whereOf(client.options.redisOptions),
      options,
      client.options,
    );
  });
}

/** @returns why {@link connectLike} would reach something else, with the end of a sentence */
export function findUnlike(client: RedisClient): string | undefined {
  const { Connector: connector, role } = serverOptions(client);
  const known: unknown[] = [NamedConnector, SteadySentinelConnector, undefined, null];
  if (role === 'slave') return "has role 'slave', but the worker must write: let it lead to the master";
  return known.includes(connector) ? undefined : 'has a Connector of its own, which cannot be copied: give redisUrl';
}

/** What ioredis puts before each key; in a cluster it is set at the top. */
export function keyPrefixOf(client: RedisClient): string {
  return client.options.keyPrefix ?? serverOptions(client).keyPrefix ?? '';
}

/** Options of a program's own client by which the ledger would get other replies, or ask another server. */
const UNFIT_OPTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  stringNumbers: (value) => value === true,
  replyMapping: (value) => value !== undefined && value !== 'legacy',
  enableAutoPipelining: (value) => value === true,
  monitor: (value) => value === true,
  readOnly: (value) => value === true,
  scaleReads: (value) => value !== undefined && value !== 'master',
};

/** What ioredis makes of the replies and arguments of these commands, unless a program changed that for all clients. */
const PLAIN_REPLIES: Readonly<Record<string, unknown>> = {
  hgetall: { a: 'b' },
  ...Object.fromEntries(
    ['evalsha', 'eval', 'hget', 'hmget', 'hkeys', 'get', 'xrange', 'smembers'].map((name) => [name, ['a', 'b']]),
  ),
};

/** @returns the option, or transformer, of a program's own client with which the ledger would not work */
export function findUnfitOption(client: RedisClient): string | undefined {
  const given: Readonly<Record<string, unknown>> = { ...serverOptions(client), ...client.options };
  const option = Object.keys(UNFIT_OPTIONS).find((name) => UNFIT_OPTIONS[name]?.(given[name]));
  if (option !== undefined) return `the option ${option} (got ${JSON.stringify(given[option])})`;
  const changed = Object.keys(PLAIN_REPLIES).find((name) => {
    const command = new Command(name, ['k', 'f'], { replyEncoding: 'utf8' });
    const reply: unknown = command.transformReply([Buffer.from('a'), Buffer.from('b')]);
    return !isDeepStrictEqual(reply, PLAIN_REPLIES[name]) || !isSameArguments(name);
  });
  return changed === undefined ? undefined : `a transformer of ${changed}, which changes it for every client`;
}

function isSameArguments(name: string): boolean {
  const command = new Command(name, ['k', 'f']);
  command.toWritable(undefined as never);
  return isDeepStrictEqual(command.args.map(String), ['k', 'f']);
}

export function serverOptions(client: RedisClient): RedisOptions {
  return (isCluster(client) ? client.options.redisOptions : client.options) ?? {};
}

/** Also if another copy of ioredis made it. */
function isCluster(client: RedisClient): client is Cluster {
  return client.isCluster;
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
    const { host = 'localhost', port = 6379, family = 0, tls, path } = this.#options;
    const where = path == null ? { host, port, lookup: lookUpRedis, family } : { path };
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
