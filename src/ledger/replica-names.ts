import { Redis } from 'ioredis';
import { replyCode } from '../base/redis-errors.js';

const ASK_SENTINEL_MS = 500;

/** The longer list: Sentinel and cluster also name replicas that are down, INFO those that follow now. */
export function longerOf(one: readonly string[], other: readonly string[]): readonly string[] {
  return one.length >= other.length ? one : other;
}

/**
 * This server as its replicas, Sentinels and cluster name it. After a failover it is the one that is missing.
 * @param announced - its settings `replica-announce-ip` and `replica-announce-port`, as far as it has them
 */
export async function nameServer(
  server: Redis,
  announced: { readonly host?: string | undefined; readonly port?: string | undefined },
  isInCluster: boolean,
): Promise<string> {
  if (isInCluster) return `${server.options.host ?? ''}:${server.options.port ?? ''}`;
  const local = await findLocalAddress(server);
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(local) ?? [];
  const announcedPort = announced.port === '0' ? '' : (announced.port ?? '');
  return `${announced.host || host}:${announcedPort || port}`;
}

/** The server's own end of the connection: behind a proxy or a virtual address, this end shows another one. */
async function findLocalAddress(server: Redis): Promise<string> {
  try {
    const [, address] = /(?:^| )laddr=(\S+)/.exec(await server.client('INFO')) ?? [];
    if (address !== undefined) return address;
  } catch (error) {
    // The user may lack the right.
    if (replyCode(error) === undefined) throw error;
  }
  const { remoteAddress = '', remotePort = '' } = server.stream as { remoteAddress?: string; remotePort?: number };
  return `${remoteAddress}:${remotePort}`;
}

/**
 * What Sentinel or the cluster lists as replicas of this master. One that is down counts: it may be promoted once it is
 * back.
 * @returns none if neither exists or answers
 */
export async function listReplicas(server: Redis, isInCluster: boolean): Promise<readonly string[]> {
  if (isInCluster) return listClusterReplicas(server);
  const { sentinels } = server.options;
  const lists = await Promise.all((sentinels ?? []).map(async (sentinel) => askSentinel(server, sentinel)));
  // A Sentinel that was parted from the others may know fewer.
  return lists.reduce<readonly string[]>(longerOf, []);
}

async function askSentinel(
  { options }: Redis,
  { host, port }: Partial<{ readonly host: string; readonly port: number }>,
): Promise<readonly string[]> {
  const { sentinelUsername, sentinelPassword, sentinelTLS, enableTLSForSentinelMode, tls, family } = options;
  const secure = sentinelTLS ?? (enableTLSForSentinelMode === true ? tls : undefined);
  const sentinel = new Redis({
    ...(host !== undefined && { host }),
    port: port ?? 26_379,
    ...(family !== undefined && { family }),
    ...(sentinelUsername != null && { username: sentinelUsername }),
    ...(sentinelPassword != null && { password: sentinelPassword }),
    ...(secure !== undefined && { tls: secure }),
    connectTimeout: ASK_SENTINEL_MS,
    commandTimeout: ASK_SENTINEL_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: null,
    enableReadyCheck: false,
    lazyConnect: true,
  });
  sentinel.on('error', () => undefined);
  try {
    await sentinel.connect();
    const replies = await sentinel.call('SENTINEL', 'REPLICAS', options.name ?? '');
    return parseSentinelReplicas(replies);
  } catch {
    return [];
  } finally {
    sentinel.disconnect();
  }
}

/** @param replies - for each replica a list of field, value, … */
export function parseSentinelReplicas(replies: unknown): readonly string[] {
  const names = (replies as string[][]).map((pairs) => {
    const valueOf = (field: string): string => pairs[pairs.indexOf(field) + 1] ?? '';
    return `${valueOf('ip')}:${valueOf('port')}`;
  });
  return [...new Set(names)].sort();
}

async function listClusterReplicas(server: Redis): Promise<readonly string[]> {
  try {
    return parseClusterReplicas(String(await server.call('CLUSTER', 'NODES')));
  } catch (error) {
    // The user may lack the right; the ledger and INFO still count.
    if ((error as Error).name === 'ReplyError') return [];
    throw error;
  }
}

/** The replicas of the server that replied. */
export function parseClusterReplicas(nodes: string): readonly string[] {
  const rows = nodes.split('\n').map((line) => line.split(' '));
  const own = rows.find(([, , flags = '']) => flags.split(',').includes('myself'))?.[0];
  const ofOwn = rows.filter(([, , , master]) => own !== undefined && master === own);
  return ofOwn.map(([, address = '']) => /^[^@,]*/.exec(address)?.[0] ?? '').sort();
}
