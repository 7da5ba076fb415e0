import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { makeFolder } from './close-after-test.js';

/** A Redis that a test may stop and start again, with its data and on its port. */
export interface OwnRedis {
  readonly url: string;
  /** With its files. */
  readonly dir: string;
  /** Of the server that runs now. */
  readonly pid: number;
  stop(): Promise<void>;
  /** @param args - in place of those that it was started with at first */
  startAgain(args?: readonly string[]): Promise<void>;
  /** Stops it and removes its data. */
  close(): Promise<void>;
}

export async function startOwnRedis(args: readonly string[] = []): Promise<OwnRedis> {
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
