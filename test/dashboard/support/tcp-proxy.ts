import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP port in front of a server, which a test can close and open again while the server lives on. */
export interface TcpProxy {
  readonly port: number;
  /** Cuts every connection and refuses new ones. */
  close(): Promise<void>;
  reopen(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  let server: Server;
  const sockets = new Set<Socket>();
  const listen = async (port: number): Promise<number> => {
    server = createServer((socket) => {
      const target = connect(targetPort, '127.0.0.1');
      for (const each of [socket, target]) {
        sockets.add(each);
        each
          .on('error', () => undefined)
          .on('close', () => {
            sockets.delete(each);
            socket.destroy();
            target.destroy();
          });
      }
      socket.pipe(target).pipe(socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  return {
    port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async reopen() {
      await listen(port);
    },
  };
}
