import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { TcpProxy } from '../proofs/chaos/tcp-proxy.js';
import { connectAdmin, kill, untilReply } from './redis-cluster.js';

export type MasterWithReplica = Awaited<ReturnType<typeof startMasterWithReplica>>;

/** A master with a replica behind a link that can be cut. */
export async function startMasterWithReplica(args: readonly string[] = []) {
  const root = await mkdtemp(join(tmpdir(), 'payouts-replica-'));
  const dirs = [await mkdtemp(join(root, 'master-')), await mkdtemp(join(root, 'replica-'))] as const;
  const master = await startLocalRedis({ dir: dirs[0], args: ['--repl-diskless-sync-delay', '0', ...args] });
  const link = await TcpProxy.start(master.port);
  const replica = await startLocalRedis({ dir: dirs[1], args: ['--replicaof', `127.0.0.1 ${link.port}`] });
  const admin = connectAdmin(master.port);
  const untilReplica = async (state: 'online' | 'gone'): Promise<void> =>
    untilReply(admin, 'INFO replication', state === 'online' ? /slave0:.*state=online/ : /connected_slaves:0/);
  await untilReplica('online');
  return {
    ...{ master, replica, link },
    /** Resolves once the master lists the replica as following it, or as gone. */
    untilReplica,
    async close(): Promise<void> {
      admin.disconnect();
      // One that has just got its copy refuses to end until it has written that to its file.
      await kill(replica);
      await link.close();
      await master.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}
