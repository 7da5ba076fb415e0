import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { ConflictError } from '../errors.js';

export interface SocketServer {
  readonly url: string;
  readonly port: number;
  /** Closes every connection at once. Safe to call twice. */
  close(): Promise<void>;
}

export interface SocketServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly key: string; readonly cert: string } | undefined;
  readonly listener: RequestListener;
}

/**
 * Listens for http, or https where a key is given.
 * @throws ConflictError when the address is taken
 */
export async function startSocketServer(options: SocketServerOptions): Promise<SocketServer> {
  const { host, port, tls, listener } = options;
  const server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener);
  const sockets = trackSockets(server);
  await listen(server, port, host);

  const address = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${toUrlHost(host)}:${address.port}`,
    port: address.port,
    close: () => (closed ??= closeAll(server, sockets)),
  };
}

/** `closeAllConnections()` knows only sockets with an HTTP request; unfinished TLS handshakes would stay open. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === 'EADDRINUSE';
      reject(
        isTaken
          ? new ConflictError(`port ${port} on ${host} is taken: stop what listens there or choose another port`)
          : error,
      );
    });
    server.listen(port, host, resolve);
  });
}

async function closeAll(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = new Promise<void>((resolve) =>
    server.close(() => {
      resolve();
    }),
  );
  for (const socket of sockets) socket.destroy();
  await closed;
}

/** The host as clients on this machine reach it. */
function toUrlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
