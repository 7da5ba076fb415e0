import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export type ForgingProxy = Awaited<ReturnType<typeof startForgingProxy>>;

/** A bulk string as Redis writes it. */
export function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

/** A man in the middle of a Redis connection, who alters each piece of a reply, byte for byte as text. */
export async function startForgingProxy(port: number) {
  const sockets = new Set<Socket>();
  let altered = 0;
  const server = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        redis.destroy();
      });
    }
    client.pipe(redis);
    redis.on('data', (piece) => {
      const text = piece.toString('latin1');
      const forged = proxy.alter(text);
      if (forged !== text) altered += 1;
      client.write(Buffer.from(forged, 'latin1'));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    alter: (reply: string) => reply,
    /** How many pieces were altered. */
    get altered() {
      return altered;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
