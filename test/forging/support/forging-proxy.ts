import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

export type ForgingProxy = Awaited<ReturnType<typeof startForgingProxy>>;

/** A man in the middle of a Redis connection, who alters each piece of a reply, byte for byte as text. */
export async function startForgingProxy(port: number) {
  const server = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    client.pipe(redis);
    redis.on('data', (piece) => {
      const text = piece.toString('latin1');
      const forged = proxy.alter(text);
      if (forged !== text) proxy.altered += 1;
      client.write(Buffer.from(forged, 'latin1'));
    });
    client.on('error', () => undefined).on('close', () => redis.destroy());
    redis.on('error', () => undefined).on('close', () => client.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    alter: (reply: string) => reply,
    /** How many pieces were altered. */
    altered: 0,
    /** Once the workers behind it have ended. */
    close: async () => once(server.close(), 'close'),
  };
  return proxy;
}
