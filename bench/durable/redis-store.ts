import { findFreePort, type LocalRedis, startLocalRedis } from 'payout-queue/local-redis';
import { makeStoreDir, type Store } from './store.js';

/** With the settings that payouts need: every write is on disk before it is acknowledged. */
export async function openRedisStore(): Promise<Store> {
  const [dir, port] = [await makeStoreDir('redis'), await findFreePort()];
  let server: LocalRedis | undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    dir,
    start: async () => void (server = await startLocalRedis({ dir, port })),
    stop: async () => server?.stop(),
  };
}
