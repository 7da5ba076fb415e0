import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, startLocalRedis, type LocalRedis } from '../../src/sandbox/index.js';
import { connectAdmin, kill, untilReply, type ReplicatedRedis } from './redis-cluster.js';

const SENTINELS = 3;
const DOWN_AFTER_MS = 1_000;
const MASTER_NAME = 'payouts';

/** Starts a master, a replica and three Sentinels that watch them. */
export async function startRedisSentinel(): Promise<ReplicatedRedis> {
  const root = await mkdtemp(join(tmpdir(), 'payouts-sentinel-'));
  const master = await startLocalRedis({ dir: await mkdtemp(join(root, 'master-')) });
  const dir = await mkdtemp(join(root, 'replica-'));
  const args = ['--replicaof', `127.0.0.1 ${master.port}`, '--repl-diskless-sync-delay', '0'];
  let replica: LocalRedis = await startLocalRedis({ dir, args });
  const sentinels: Sentinel[] = [];
  for (let index = 0; index < SENTINELS; index += 1) sentinels.push(await startSentinel(root, master.port));
  for (const { port } of sentinels) await untilWatching(port);
  return {
    url: `redis-sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`,
    killMaster: async () => kill(master),
    killReplica: async () => kill(replica),
    async startReplicaAgain() {
      replica = await startLocalRedis({ dir, port: replica.port, args });
    },
    async close() {
      await Promise.all(sentinels.map(async ({ child }) => endChild(child)));
      await replica.stop();
      await master.stop();
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
  process.once('exit', () => void child.kill('SIGKILL'));
  return { child, port };
}

async function untilWatching(port: number): Promise<void> {
  const admin = connectAdmin(port);
  await untilReply(admin, 'INFO sentinel', /status=ok,address=[\d.:]+,slaves=1,sentinels=3/);
  admin.disconnect();
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}
