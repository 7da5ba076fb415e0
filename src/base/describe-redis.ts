import { type RedisClient, serverOptions } from './redis.js';

interface Address {
  readonly host?: string | null | undefined;
  readonly port?: number | null | undefined;
}

/** Where a connection leads, without user and password: `redis-1:6379/2`, `payouts by Sentinel …`, `cluster …`. */
export function describeRedis(client: RedisClient): string {
  if (client.isCluster) {
    const { startupNodes } = client as unknown as { readonly startupNodes: readonly Address[] };
    return `cluster ${startupNodes.map(toText).join(', ')}`;
  }
  const { host, port, path, db = 0, sentinels, name } = serverOptions(client);
  const database = db === 0 ? '' : `/${db}`;
  if (sentinels) return `${name ?? ''}${database} by Sentinel ${sentinels.map(toText).join(', ')}`;
  return `${path ?? toText({ host, port })}${database}`;
}

function toText(address: Address | string | number): string {
  if (typeof address !== 'object') return String(address).replace(/^.*@/, '');
  const { host, port } = address;
  return `${host ?? 'localhost'}:${port ?? 6379}`;
}
