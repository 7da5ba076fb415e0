import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import { until } from './until.js';

/** Redis servers that hold each other's copies, of which tests may kill some. */
export type ReplicatedRedis = Readonly<
  { url: string; close(): Promise<void> } & Record<
    'killMaster' | 'killReplica' | 'killOtherReplicas' | 'startReplicaAgain' | 'startMasterAgain',
    (key: string) => Promise<void>
  >
>;

export type RedisCluster = Awaited<ReturnType<typeof startRedisCluster>>;

const MASTERS = 3;
const NODE_TIMEOUT_MS = 1_500;
const LAST_SLOT = 16_383;
const READY_WITHIN_MS = 30_000;

type ClusterNode = Awaited<ReturnType<typeof startNode>>;

export async function startRedisCluster() {
  const root = await mkdtemp(join(tmpdir(), 'payouts-cluster-'));
  const nodes: ClusterNode[] = [];
  for (let index = 0; index < 2 * MASTERS; index += 1) nodes.push(await startNode(root));
  await joinNodes(nodes);
  const addresses = nodes.slice(0, MASTERS).map(({ server }) => `127.0.0.1:${server.port}`);
  return {
    url: `redis-cluster://${addresses.join(',')}`,
    killMaster: async (key: string) => kill((await findOwners(nodes, key)).master.server),
    killReplica: async (key: string) => kill((await findOwners(nodes, key)).replica.server),
    beginMove: async (key: string) => beginMove(nodes, key),
    killOtherReplicas: async () => Promise.resolve(),
    /** Without the master's consent, or that of a majority. */
    async takeOver(key: string) {
      const { replica } = await findOwners(nodes, key);
      await untilReply(replica.admin, 'PING', /PONG/);
      await untilReply(replica.admin, 'CLUSTER FAILOVER TAKEOVER', /OK|to a replica/);
    },
    async startMasterAgain(key: string) {
      const { master } = await findOwners(nodes, key);
      master.server = await startLocalRedis({ dir: master.dir, port: master.server.port, args: master.args });
    },
    async startReplicaAgain(key: string) {
      const { replica } = await findOwners(nodes, key);
      replica.server = await startLocalRedis({ dir: replica.dir, port: replica.server.port, args: replica.args });
    },
    async close() {
      for (const { admin, server } of nodes) {
        admin.disconnect();
        await server.stop();
      }
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function startNode(root: string) {
  const dir = await mkdtemp(join(root, 'node-'));
  const busPort = await findFreePort();
  const args = [
    ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
    ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS), '--cluster-replica-validity-factor', '0'],
    ...['--repl-diskless-sync-delay', '0'],
  ];
  const server = await startLocalRedis({ dir, args });
  const admin = connectAdmin(server.port);
  return { server, dir, args, admin, busPort, nodeId: String(await admin.call('CLUSTER', 'MYID')) };
}

export const connectAdmin = (port: number, options: { readonly password?: string } = {}) =>
  new Redis({ port, host: '127.0.0.1', ...options }).on('error', () => undefined);

async function joinNodes(nodes: readonly ClusterNode[]) {
  const [first] = nodes as [ClusterNode];
  for (const { server, busPort } of nodes.slice(1)) {
    await first.admin.call('CLUSTER', 'MEET', '127.0.0.1', server.port, busPort);
  }
  const masters = nodes.slice(0, MASTERS);
  for (const [index, { admin }] of masters.entries()) {
    const from = Math.ceil((index * (LAST_SLOT + 1)) / MASTERS);
    const to = Math.ceil(((index + 1) * (LAST_SLOT + 1)) / MASTERS) - 1;
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
  }
  await untilAll(nodes, 'CLUSTER INFO', new RegExp(`cluster_known_nodes:${nodes.length}\\b`));
  for (const [index, { admin }] of nodes.slice(MASTERS).entries()) {
    await admin.call('CLUSTER', 'REPLICATE', masters[index]?.nodeId ?? '');
  }
  await untilAll(nodes, 'CLUSTER INFO', /cluster_state:ok/);
  await untilAll(nodes.slice(MASTERS), 'INFO replication', /master_link_status:up/);
  await untilAll(nodes, 'CLUSTER NODES', new RegExp(`^(?:.*\\bslave\\b.*\\n?|.*\\bmaster\\b.*\\n?){${nodes.length}}$`));
}

async function untilAll(nodes: readonly ClusterNode[], command: string, pattern: RegExp) {
  for (const { admin } of nodes) await untilReply(admin, command, pattern);
}

export async function untilReply(admin: Redis, command: string, pattern: RegExp) {
  const [name = '', ...args] = command.split(' ');
  let reply = '';
  const matches = async () => {
    reply = String(await admin.call(name, ...args).catch(String));
    return pattern.test(reply);
  };
  await until(() => `${command} replies ${String(pattern)}:\n${reply}`, matches, READY_WITHIN_MS);
}

async function findOwners(nodes: readonly ClusterNode[], key: string) {
  const slot = await findSlot(nodes, key);
  const index = Math.floor((slot * MASTERS) / (LAST_SLOT + 1));
  const [master, replica] = [nodes[index], nodes[index + MASTERS]];
  if (master === undefined || replica === undefined) throw new Error(`no server has ${key}`);
  return { master, replica };
}

/** Any server can say; the connection of one that was just killed may not have noticed it. */
async function findSlot(nodes: readonly ClusterNode[], key: string) {
  for (const { admin } of nodes) {
    if (admin.status !== 'ready') continue;
    const reply = await admin.call('CLUSTER', 'KEYSLOT', key).catch(() => undefined);
    if (reply !== undefined) return Number(reply);
  }
  throw new Error('no server of the cluster replies');
}

/** As `redis-cli --cluster reshard` does it, but key by key. */
async function beginMove(nodes: readonly ClusterNode[], key: string) {
  const { master: source } = await findOwners(nodes, key);
  const masters = nodes.slice(0, MASTERS);
  const target = masters.find((node) => node !== source) as ClusterNode;
  const slot = Number(await source.admin.call('CLUSTER', 'KEYSLOT', key));
  await target.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.nodeId);
  await source.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.nodeId);
  return {
    async moveOne() {
      const [next] = (await source.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
      if (next === undefined) return false;
      await source.admin.call('MIGRATE', '127.0.0.1', target.server.port, next, 0, 5_000);
      return true;
    },
    async end() {
      for (const { admin } of [target, source, ...masters]) {
        await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.nodeId);
      }
    },
  };
}

export async function kill(server: LocalRedis) {
  process.kill(server.pid, 'SIGKILL');
  await server.stop();
}
