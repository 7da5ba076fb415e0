import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { GatewayUnavailableError } from '../../src/gateway/gateway.js';
import type { GatewayClient } from '../../src/gateway/gateway-client.js';
import { startRawGateway, type RawGateway, type RawGatewayBehaviour, type Scheme } from './support/raw-gateway.js';
import { makeSelfSignedCertificate } from './support/self-signed-certificate.js';
import { clientOf } from './support/test-client.js';

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC' };

const servers: RawGateway[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

async function start(scheme: Scheme, behaviour: RawGatewayBehaviour = {}): Promise<RawGateway> {
  const server = await startRawGateway(scheme, behaviour);
  servers.push(server);
  return server;
}

/** A connection that cannot be made is an error when it is prepared, and "not sent" when a withdrawal needs it. */
async function expectNoConnection(client: GatewayClient, reason: RegExp): Promise<void> {
  const failure = client.openConnection(new AbortController().signal);
  await expect(failure).rejects.toThrow(GatewayUnavailableError);
  await expect(failure).rejects.toThrow(reason);
  expect(await client.withdraw(REQUEST)).toEqual({ kind: 'not_sent', reason: expect.stringMatching(reason) });
}

describe('a connection that cannot be made', () => {
  it('refused', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    await expectNoConnection(clientOf({ baseUrl: `http://127.0.0.1:${port}` }), /ECONNREFUSED/);
    await expectNoConnection(clientOf({ baseUrl: `https://127.0.0.1:${port}` }), /ECONNREFUSED/);
    await expectNoConnection(clientOf({ baseUrl: `http://localhost:${port}` }), /ECONNREFUSED/);
  });

  it('a name that does not exist', async () => {
    await expectNoConnection(clientOf({ baseUrl: 'https://gateway.invalid' }), /gateway\.invalid/);
  });

  it('an unknown authority, another host name, or no TLS at all', async () => {
    const server = await start('https');
    const other = makeSelfSignedCertificate().cert;
    await expectNoConnection(clientOf({ baseUrl: server.baseUrl }), /self-signed certificate/);
    await expectNoConnection(clientOf({ baseUrl: server.baseUrl, ca: other }), /self-signed certificate/);
    const plain = await start('http', { onConnect: (raw) => void raw.write('HTTP/1.1 400 Bad Request\r\n\r\n') });
    await expectNoConnection(clientOf({ baseUrl: plain.baseUrl.replace('http:', 'https:') }), /wrong version|EPROTO/);
    expect(server.receivedBytes).toBe(0);
  });

  it('a certificate of another host, although its authority is trusted', async () => {
    const server = await startRawGateway('https', {}, makeSelfSignedCertificate('gateway.example'));
    servers.push(server);
    await expectNoConnection(clientOf(server), /altnames/);
    await expectNoConnection(
      clientOf({ baseUrl: server.baseUrl.replace('127.0.0.1', 'localhost'), ca: server.ca }),
      /altnames/,
    );
    expect(server.receivedBytes).toBe(0);
  });

  it('accepted and closed at once, before TLS', async () => {
    const server = await start('https', { onConnect: (raw) => void raw.destroy() });
    await expectNoConnection(clientOf(server), /disconnected|ECONNRESET/);
    expect(server.receivedBytes).toBe(0);
  });

  it('a handshake that takes too long', async () => {
    // Accepts and sends nothing, as a stuck TCP connection does.
    const server = await start('http');
    const client = clientOf({ baseUrl: server.baseUrl.replace('http:', 'https:') }, { connectTimeoutMs: 100 });
    await expectNoConnection(client, /not connected within 100 ms/);
    await server.allClosed();
  });

  it('aborted by the caller, before and while it is made', async () => {
    const server = await start('http');
    const client = clientOf({ baseUrl: server.baseUrl.replace('http:', 'https:') });
    await expect(client.openConnection(AbortSignal.abort())).rejects.toThrow(/aborted by the caller/);
    await expect(client.openConnection(AbortSignal.timeout(50))).rejects.toThrow(/aborted by the caller/);
    await server.allClosed();
  });

  it('uses TLS server names where the host is one', async () => {
    const server = await start('https');
    const connection = await clientOf({
      baseUrl: server.baseUrl.replace('127.0.0.1', 'localhost'),
      ca: server.ca,
    }).openConnection(new AbortController().signal);
    expect(connection.usable).toBe(true);
    connection.close();
  });
});
