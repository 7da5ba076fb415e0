import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { connectAdmin, kill, untilReply, type ReplicatedRedis } from './redis-cluster.js';

const SENTINELS = 3;
const REPLICAS = 2;
const DOWN_AFTER_MS = 1_000;
export const MASTER_NAME = 'payouts';

/** A master, replicas and Sentinels that watch them. */
export interface SentinelServers {
  readonly root: string;
  readonly master: LocalRedis;
  readonly replicas: LocalRedis[];
  readonly sentinelPorts: readonly number[];
  startReplicaAgain(index: number): Promise<void>;
  close(): Promise<void>;
}

export interface SentinelServersOptions {
  /** Under which replicas and Sentinels reach the master. @defaultValue its own port */
  readonly announcedPortOf?: (masterPort: number) => Promise<number>;
  readonly args?: readonly string[];
}

export async function startRedisSentinel(): Promise<ReplicatedRedis> {
  const servers = await startSentinelServers();
  const { master, replicas, sentinelPorts } = servers;
  const replica = (index: number): LocalRedis => {
    const found = replicas[index];
    if (found === undefined) throw new Error(`there is no replica ${index}`);
    return found;
  };
  return {
    url: `redis-sentinel://${sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`,
    killMaster: async () => kill(master),
    killReplica: async () => kill(replica(0)),
    killOtherReplicas: async () => kill(replica(1)),
    startReplicaAgain: async () => servers.startReplicaAgain(0),
    close: async () => servers.close(),
  };
}

export async function startSentinelServers(options: SentinelServersOptions = {}): Promise<SentinelServers> {
  const { announcedPortOf = async (port: number) => Promise.resolve(port), args = [] } = options;
  const root = await mkdtemp(join(tmpdir(), 'payouts-sentinel-'));
  const masterPort = await findFreePort();
  const announced = await announcedPortOf(masterPort);
  const master = await startLocalRedis({
    dir: await mkdtemp(join(root, 'master-')),
    port: masterPort,
    args: [...args, '--replica-announce-port', String(announced)],
  });
  const replicaArgs = [...args, '--replicaof', `127.0.0.1 ${announced}`, '--repl-diskless-sync-delay', '0'];
  const replicas: LocalRedis[] = [];
  for (let index = 0; index < REPLICAS; index += 1) {
    replicas.push(await startLocalRedis({ dir: await mkdtemp(join(root, 'replica-')), args: replicaArgs }));
  }
  const admin = connectAdmin(master.port);
  await untilReply(admin, 'INFO replication', new RegExp(`(slave\\d:.*state=online[^]*){${REPLICAS}}`));
  admin.disconnect();
  const sentinels: Sentinel[] = [];
  for (let index = 0; index < SENTINELS; index += 1) sentinels.push(await startSentinel(root, announced));
  for (const { port } of sentinels) await untilWatching(port);
  return {
    root,
    master,
    replicas,
    sentinelPorts: sentinels.map(({ port }) => port),
    async startReplicaAgain(index) {
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

interface Sentinel {
  readonly child: ChildProcess;
  readonly port: number;
}

async function startSentinel(root: string, masterPort: number): Promise<Sentinel> {
  const port = await findFreePort();
  const file = join(root, `sentinel-${port}.conf`);
  await writeFile(
    file,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${root}`,
      `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${MASTER_NAME} 5000`,
    ].join('\n'),
  );
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  const endWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithParent);
  child.once('exit', () => process.removeListener('exit', endWithParent));
  return { child, port };
}

async function untilWatching(port: number): Promise<void> {
  const admin = connectAdmin(port);
  await untilReply(
    admin,
    'INFO sentinel',
    new RegExp(`status=ok,address=[\\d.:]+,slaves=${REPLICAS},sentinels=${SENTINELS}`),
  );
  admin.disconnect();
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
