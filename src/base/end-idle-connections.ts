import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Ends the connection that was idle for the longest time whenever there are more than `most`. Otherwise connections that
 * ask nothing would keep out those that do. One before its TLS handshake or the end of its headers counts as idle.
 */
export function endIdleConnections(server: Server, most: number): void {
  const open = new Set<string>();
  // The longest idle first.
  const idle = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    open.add(key);
    idle.set(key, socket);
    socket.once('close', () => {
      open.delete(key);
      idle.delete(key);
    });
    const [longest] = idle.values();
    if (open.size > most) longest?.destroy();
  });
  server.on('request', ({ socket }, response) => {
    // With TLS it is another object than the one that was accepted.
    const key = keyOf(socket);
    const accepted = idle.get(key);
    idle.delete(key);
    response.once('close', () => {
      if (open.has(key) && accepted !== undefined) idle.set(key, accepted);
    });
  });
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
