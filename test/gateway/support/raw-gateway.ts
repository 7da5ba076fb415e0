import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { afterEach } from '@jest/globals';
import { makeSelfSignedCertificate, type Certificate } from './self-signed-certificate.js';

export interface Peer {
  /** Where to write a response, byte by byte; TLS where the server speaks it. */
  readonly stream: Socket;
  readonly reset: () => void;
}

export type RawGateway = Awaited<ReturnType<typeof startRawGateway>>;

export interface RawGatewayBehaviour {
  onConnect?(raw: Socket): void;
  onReady?(peer: Peer): void;
  onRequest?(peer: Peer, request: string): void;
}

export type Scheme = 'http' | 'https';

const localCertificate = makeSelfSignedCertificate();

/** A server that counts every byte it receives and responds with any bytes that a test provides, valid HTTP or not. */
export async function startRawGateway(
  scheme: Scheme,
  behaviour: RawGatewayBehaviour,
  certificate: Certificate = localCertificate,
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
    const stream = scheme === 'http' ? raw : new TLSSocket(raw, { isServer: true, ...certificate });
    stream.on('error', () => undefined);
    const peer = { stream, reset: () => raw.resetAndDestroy() };
    if (scheme === 'http') behaviour.onReady?.(peer);
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

  return {
    baseUrl: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    ca: scheme === 'https' ? certificate.cert : undefined,
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

const started: RawGateway[] = [];

export async function startForTest(
  scheme: Scheme,
  behaviour: RawGatewayBehaviour = {},
  certificate?: Certificate,
): Promise<RawGateway> {
  const server = await startRawGateway(scheme, behaviour, certificate);
  started.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(started.splice(0).map(async (server) => server.stop()));
});

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
