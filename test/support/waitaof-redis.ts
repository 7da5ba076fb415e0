import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { TcpProxy } from '../proofs/chaos/tcp-proxy.js';

export type WaitaofRedis = Awaited<ReturnType<typeof startWaitaofRedis>>;

/** On how many servers all is on disk. */
type Reply = readonly [here: number, replicas: number];

/** With `appendfsync everysec`. It replies to WAITAOF as a test says, also where the server is too old to know the command. */
export async function startWaitaofRedis() {
  const server = await startLocalRedis({ args: ['--appendfsync', 'everysec'] });
  const answers = { asked: [] as string[][], reply: [1, 0] as Reply };
  const proxy = await TcpProxy.start(server.port, { requests: (bytes) => replaceWaits(bytes, answers) });
  return Object.assign(answers, {
    url: `redis://127.0.0.1:${proxy.port}`,
    async close() {
      await proxy.close();
      await server.stop();
    },
  });
}

/** The server itself gives the reply, so that it comes in its place among the others. */
function replaceWaits(bytes: Buffer, { asked, reply }: { asked: string[][]; reply: Reply }) {
  const script = `return {${reply.join(',')}}`;
  const replaced = bytes
    .toString('latin1')
    .replace(/\*4\r\n\$7\r\nwaitaof\r\n((?:\$\d+\r\n\d+\r\n){3})/gi, (_, args: string) => {
      asked.push([...args.matchAll(/\$\d+\r\n(\d+)\r\n/g)].map(([, arg = '']) => arg));
      return `*3\r\n$4\r\nEVAL\r\n$${script.length}\r\n${script}\r\n$1\r\n0\r\n`;
    });
  return Buffer.from(replaced, 'latin1');
}
