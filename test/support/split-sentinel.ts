import { TcpProxy } from '../proofs/chaos/tcp-proxy.js';
import { MASTER_NAME, startSentinelServers } from './redis-sentinel.js';

/**
 * A master that a cut of the network parts from its replicas and Sentinels, while a worker on its side still reaches it.
 *
 * Replicas, Sentinels and the workers of their side reach the master through one proxy, under whose port it is
 * announced. A worker on the master's side reaches the Sentinels through proxies, which give it the master's own port.
 */
export interface SplitRedis {
  /** As `REDIS_URL` of what is on the master's side. */
  readonly masterSideUrl: string;
  /** As `REDIS_URL` of what is on the side of the replicas and the Sentinels. */
  readonly otherSideUrl: string;
  readonly masterPort: number;
  /** Lets nothing through between the two sides, and says nothing about it. */
  cut(): void;
  /** Lets through again, also what was held back. */
  heal(): void;
  close(): Promise<void>;
}

/** So soon a master forgets a silent replica, in seconds: both before and after that, nothing may be sent. */
const FORGET_REPLICA_S = 5;

export async function startSplitSentinel(): Promise<SplitRedis> {
  const links: TcpProxy[] = [];
  const link = async (...args: Parameters<typeof TcpProxy.start>): Promise<number> => {
    const proxy = await TcpProxy.start(...args);
    links.push(proxy);
    return proxy.port;
  };
  let announcedPort = 0;
  const servers = await startSentinelServers({
    announcedPortOf: async (masterPort) => (announcedPort = await link(masterPort)),
    args: ['--repl-timeout', String(FORGET_REPLICA_S), '--repl-ping-replica-period', '1'],
  });
  const masterPort = servers.master.port;

  const seenAs = new Map([[announcedPort, masterPort]]);
  for (const port of servers.sentinelPorts) {
    seenAs.set(port, await link(port, { replies: (bytes) => replacePorts(bytes, seenAs) }));
  }
  const toUrl = (ports: readonly number[]): string =>
    `redis-sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`;
  return {
    masterSideUrl: toUrl(servers.sentinelPorts.map((port) => seenAs.get(port) ?? 0)),
    otherSideUrl: toUrl(servers.sentinelPorts),
    masterPort,
    cut() {
      for (const each of links) each.silence(['requests', 'replies']);
    },
    heal() {
      for (const each of links) each.heal();
    },
    async close() {
      await servers.close();
      await Promise.all(links.map(async (each) => each.close()));
    },
  };
}

/** Ports that the system hands out have five digits each, so that what is replaced stays as long. */
function replacePorts(replies: Buffer, seenAs: ReadonlyMap<number, number>): Buffer {
  const text = replies.toString('latin1');
  return Buffer.from(
    text.replace(/\d{5}/g, (digits) => String(seenAs.get(Number(digits)) ?? digits)),
    'latin1',
  );
}
