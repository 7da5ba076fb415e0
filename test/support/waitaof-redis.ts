import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { TcpProxy } from '../proofs/chaos/tcp-proxy.js';

/**
 * A Redis with `appendfsync everysec` that replies to WAITAOF as a test says, also where the installed server is too old to
 * know the command. All other commands reach the server as they are.
 */
export interface WaitaofRedis {
  readonly url: string;
  readonly asked: string[][];
  /** On how many servers it says that all is on disk. */
  reply: readonly [here: number, replicas: number];
  close(): Promise<void>;
}

export async function startWaitaofRedis(): Promise<WaitaofRedis> {
  const server = await startLocalRedis({ args: ['--appendfsync', 'everysec'] });
  const proxy = await TcpProxy.start(server.port, { requests: (bytes) => replaceWaits(bytes, redis) });
  const redis: WaitaofRedis = {
    url: `redis://127.0.0.1:${proxy.port}`,
    asked: [],
    reply: [1, 0],
    async close() {
      await proxy.close();
      await server.stop();
    },
  };
  return redis;
}

/** The server itself gives the reply, so that it comes in its place among the others. */
function replaceWaits(bytes: Buffer, { asked, reply }: WaitaofRedis): Buffer {
  const script = `return {${reply.join(',')}}`;
  const replaced = bytes
    .toString('latin1')
    .replace(/\*4\r\n\$7\r\nwaitaof\r\n((?:\$\d+\r\n\d+\r\n){3})/gi, (_, args: string) => {
      asked.push([...args.matchAll(/\$\d+\r\n(\d+)\r\n/g)].map(([, arg = '']) => arg));
      return `*3\r\n$4\r\nEVAL\r\n$${script.length}\r\n${script}\r\n$1\r\n0\r\n`;
    });
  return Buffer.from(replaced, 'latin1');
}
