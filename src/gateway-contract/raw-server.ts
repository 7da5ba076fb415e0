import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { type TlsOptions, TLSSocket } from 'node:tls';

export interface Peer {
  /** Where to write a response, byte by byte; TLS where the server speaks it. */
  readonly stream: Socket;
  readonly reset: () => void;
}

export type RawServer = Awaited<ReturnType<typeof startRawServer>>;

export interface RawServerBehaviour {
  onConnect?(raw: Socket): void;
  onReady?(peer: Peer): void;
  onRequest?(peer: Peer, request: string): void;
}

/**
 * A server that counts every byte it receives and responds with any bytes that a test provides, valid HTTP or not.
 * @param certificate - to speak TLS
 */
export async function startRawServer(
  behaviour: RawServerBehaviour,
  certificate?: Required<Pick<TlsOptions, 'cert' | 'key'>>,
) {
  const open = new Set<Promise<unknown>>();
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let receivedBytes = 0;

  const server = createServer({ noDelay: true }, (raw) => {
    const closed = once(raw, 'close').catch(() => undefined);
    open.add(closed);
    sockets.add(raw);
    raw.on('error', () => undefined);
    behaviour.onConnect?.(raw);
    const stream = certificate === undefined ? raw : new TLSSocket(raw, { isServer: true, ...certificate });
    stream.on('error', () => undefined);
    const peer = { stream, reset: () => raw.resetAndDestroy() };
    if (certificate === undefined) behaviour.onReady?.(peer);
    else stream.once('secure', () => behaviour.onReady?.(peer));

    let text = '';
    stream.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length;
      text += chunk.toString('latin1');
      const length = wholeRequestLength(text);
      if (length === undefined) return;
      const request = text.slice(0, length);
      text = text.slice(length);
      requests.push(request);
      behaviour.onRequest?.(peer, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const scheme = certificate === undefined ? 'http' : 'https';

  return {
    baseUrl: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    /** Of requests, decrypted. */
    get receivedBytes() {
      return receivedBytes;
    },
    /** Those that arrived completely. */
    requests,
    /** Resolves when every connection that was ever made is closed on this side as well. */
    allClosed: async () => Promise.all(open),
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function wholeRequestLength(text: string): number | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  const length = headEnd + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
  return headEnd === -1 || text.length < length ? undefined : length;
}

export function httpResponse(status: number, body: string | Buffer, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status} Whatever`, `Content-Length: ${bytes.length}`, ...headers, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), bytes]);
}
