import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { TcpProxy } from '../proofs/chaos/tcp-proxy.js';
import { connectAdmin, kill, untilReply, type ReplicatedRedis } from './redis-cluster.js';
import { until } from './until.js';

export type MasterWithReplica = Awaited<ReturnType<typeof startMasterWithReplica>>;

/** A master with a replica behind a link that can be cut. */
export async function startMasterWithReplica(args: readonly string[] = []) {
  const root = await mkdtemp(join(tmpdir(), 'payouts-replica-'));
  const dirs = [await mkdtemp(join(root, 'master-')), await mkdtemp(join(root, 'replica-'))] as const;
  const master = await startLocalRedis({ dir: dirs[0], args: ['--repl-diskless-sync-delay', '0', ...args] });
  const link = await TcpProxy.start(master.port);
  const replica = await startLocalRedis({ dir: dirs[1], args: ['--replicaof', `127.0.0.1 ${link.port}`] });
  const admin = connectAdmin(master.port);
  const untilReplica = async (state: 'online' | 'gone') =>
    untilReply(admin, 'INFO replication', state === 'online' ? /slave0:.*state=online/ : /connected_slaves:0/);
  await untilReplica('online');
  return {
    ...{ master, replica, link },
    untilReplica,
    async close() {
      admin.disconnect();
      // One that has just got its copy refuses to end until it has written that to its file.
      await kill(replica);
      await link.close();
      await master.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** A master with a replica behind one address, as a managed Redis has: a failover leaves connections open. */
export async function startManagedRedis() {
  const servers = await startMasterWithReplica();
  const { master, replica } = servers;
  const address = await TcpProxy.start(master.port);
  const admin = connectAdmin(master.port);
  return {
    url: `redis://127.0.0.1:${address.port}`,
    ...{ master, replica, address, admin },
    /** The master becomes the replica of its replica, which has all its writes. */
    async failOver() {
      await admin.call('FAILOVER');
      await untilReply(admin, 'ROLE', /^slave/);
      address.leadTo(replica.port);
    },
    async close() {
      admin.disconnect();
      await address.close();
      await servers.close();
    },
  };
}

const SENTINELS = 3;
const REPLICAS = 2;
const DOWN_AFTER_MS = 1_000;
const MASTER_NAME = 'payouts';

export async function startRedisSentinel(): Promise<ReplicatedRedis & SentinelActs> {
  const servers = await startSentinelServers();
  const killReplica = async (index: number) => kill(servers.replicas[index] as LocalRedis);
  return {
    url: toUrl(servers.sentinelPorts),
    killMaster: async () => kill(servers.master),
    killReplica: async () => killReplica(0),
    killOtherReplicas: async () => killReplica(1),
    startReplicaAgain: async () => servers.startReplicaAgain(0),
    startMasterAgain: async () => servers.startMasterAgain(),
    async failOver() {
      await askSentinel(servers.sentinelPorts, 'FAILOVER');
    },
    async untilWhole() {
      await until('one master has every replica', async () => {
        const [, port = ''] = (await askSentinel(servers.sentinelPorts, 'GET-MASTER-ADDR-BY-NAME')) as string[];
        const admin = connectAdmin(Number(port));
        const info = await admin.info('replication').catch(() => '');
        admin.disconnect();
        return new RegExp(`role:master[^]*(slave\\d:.*state=online[^]*){${REPLICAS}}`).test(info);
      });
    },
    close: async () => servers.close(),
  };
}

interface SentinelActs {
  /** A planned failover, as an operator orders it. */
  failOver(): Promise<void>;
  untilWhole(): Promise<void>;
}

async function askSentinel([port = 0]: readonly number[], command: string): Promise<unknown> {
  const sentinel = connectAdmin(port);
  try {
    return await sentinel.call('SENTINEL', command, MASTER_NAME);
  } finally {
    sentinel.disconnect();
  }
}

const toUrl = (ports: readonly number[]) =>
  `redis-sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`;

/** @param announcedPortOf - under which replicas and Sentinels reach the master */
async function startSentinelServers(
  announcedPortOf = async (port: number) => Promise.resolve(port),
  args: readonly string[] = [],
) {
  const root = await mkdtemp(join(tmpdir(), 'payouts-sentinel-'));
  const masterPort = await findFreePort();
  const announced = await announcedPortOf(masterPort);
  const masterOptions = {
    dir: await mkdtemp(join(root, 'master-')),
    port: masterPort,
    args: [...args, '--replica-announce-port', String(announced)],
  };
  let master = await startLocalRedis(masterOptions);
  const replicaArgs = [...args, '--replicaof', `127.0.0.1 ${announced}`, '--repl-diskless-sync-delay', '0'];
  const replicas: LocalRedis[] = [];
  for (let index = 0; index < REPLICAS; index += 1) {
    replicas.push(await startLocalRedis({ dir: await mkdtemp(join(root, 'replica-')), args: replicaArgs }));
  }
  const admin = connectAdmin(master.port);
  await untilReply(admin, 'INFO replication', new RegExp(`(slave\\d:.*state=online[^]*){${REPLICAS}}`));
  admin.disconnect();
  const sentinels: Awaited<ReturnType<typeof startSentinel>>[] = [];
  for (let index = 0; index < SENTINELS; index += 1) sentinels.push(await startSentinel(root, announced));
  for (const { port } of sentinels) await untilWatching(port);
  return {
    get master() {
      return master;
    },
    replicas,
    /** Sentinel makes it a replica of the new one. */
    async startMasterAgain() {
      master = await startLocalRedis(masterOptions);
    },
    sentinelPorts: sentinels.map(({ port }) => port),
    async startReplicaAgain(index: number) {
      const { dir, port } = replicas[index] as LocalRedis;
      replicas[index] = await startLocalRedis({ dir, port, args: replicaArgs });
    },
    async close() {
      await Promise.all(sentinels.map(async ({ child }) => endChild(child)));
      for (const server of [...replicas, master]) await server.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function startSentinel(root: string, masterPort: number) {
  const port = await findFreePort();
  const file = join(root, `sentinel-${port}.conf`);
  const settings = [
    ...[`port ${port}`, 'bind 127.0.0.1', `dir ${root}`],
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} 5000`,
  ];
  await writeFile(file, settings.join('\n'));
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  const endWithParent = () => void child.kill('SIGKILL');
  process.once('exit', endWithParent);
  child.once('exit', () => process.removeListener('exit', endWithParent));
  return { child, port };
}

async function untilWatching(port: number) {
  const admin = connectAdmin(port);
  const watches = new RegExp(`status=ok,address=[\\d.:]+,slaves=${REPLICAS},sentinels=${SENTINELS}`);
  await untilReply(admin, 'INFO sentinel', watches);
  admin.disconnect();
}

async function endChild(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** So soon a master forgets a silent replica, in seconds: both before and after that, nothing may be sent. */
const FORGET_REPLICA_S = 5;

/**
 * A master that a cut parts from its replicas and Sentinels, while a worker on its side still reaches it. The others reach
 * it through a proxy, under whose port it is announced; that worker reaches the Sentinels through proxies, which give it
 * the master's own port.
 */
export async function startSplitSentinel() {
  const links: TcpProxy[] = [];
  const link = async (...args: Parameters<typeof TcpProxy.start>) => {
    const proxy = await TcpProxy.start(...args);
    links.push(proxy);
    return proxy.port;
  };
  let announcedPort = 0;
  const servers = await startSentinelServers(
    async (port) => (announcedPort = await link(port)),
    ['--repl-timeout', String(FORGET_REPLICA_S), '--repl-ping-replica-period', '1'],
  );
  const masterPort = servers.master.port;

  const seenAs = new Map([[announcedPort, masterPort]]);
  for (const port of servers.sentinelPorts) {
    seenAs.set(port, await link(port, { replies: (bytes) => replacePorts(bytes, seenAs) }));
  }
  return {
    masterSideUrl: toUrl(servers.sentinelPorts.map((port) => seenAs.get(port) ?? 0)),
    otherSideUrl: toUrl(servers.sentinelPorts),
    /** In silence. */
    cut() {
      for (const each of links) each.silence(['requests', 'replies']);
    },
    /** What was held back arrives, too. */
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
function replacePorts(replies: Buffer, seenAs: ReadonlyMap<number, number>) {
  const text = replies.toString('latin1').replace(/\d{5}/g, (port) => String(seenAs.get(Number(port)) ?? port));
  return Buffer.from(text, 'latin1');
}
