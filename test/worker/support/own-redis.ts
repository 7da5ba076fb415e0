import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { makeFolder } from './close-after-test.js';

export type OwnRedis = Awaited<ReturnType<typeof startOwnRedis>>;

/** A Redis that a test may stop and start again, with its data and on its port. */
export async function startOwnRedis(args: readonly string[] = []) {
  const folder = await makeFolder('own-redis');
  const { dir } = folder;
  let server: LocalRedis = await startLocalRedis({ dir, args });
  const { url, port } = server;
  return {
    ...{ url, dir },
    get pid() {
      return server.pid;
    },
    stop: async () => server.stop(),
    async startAgain(newArgs = args) {
      server = await startLocalRedis({ dir, port, args: newArgs });
    },
    async close() {
      await server.stop();
      await folder.close();
    },
  };
}
