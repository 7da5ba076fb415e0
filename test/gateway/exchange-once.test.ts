import { afterEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { exchangeOnce } from '../../src/gateway/exchange-once.js';
import { GuardedSocket, openSocket } from '../../src/gateway/socket.js';
import { httpResponse, startRawGateway, type RawGateway, type Scheme } from './support/raw-gateway.js';

const servers: RawGateway[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

describe.each<Scheme>(['http', 'https'])('exchangeOnce over %s', (scheme) => {
  it('writes the whole request in one piece, in the same synchronous step as the permission', async () => {
    const server = await startRawGateway(scheme, {
      onRequest: ({ stream }) => void stream.write(httpResponse(200, '{}')),
    });
    servers.push(server);
    const { signal } = new AbortController();
    const socket = await openSocket(new URL(server.baseUrl), { connectTimeoutMs: 5000, ca: server.ca }, signal);
    const order: string[] = [];
    const { stream } = socket;
    const write = stream.write.bind(stream) as (chunk: Buffer, callback: () => void) => boolean;
    stream.write = ((chunk: Buffer, callback: () => void) => {
      order.push(`written: ${chunk.toString().split(' ', 1).join()} … ${chunk.toString().slice(-5)}`);
      return write(chunk, callback);
    }) as typeof stream.write;

    const request = { url: `${server.baseUrl}/withdraw`, body: 'a=1&b=2' };
    const mayWrite = (): boolean => {
      order.push('asked');
      process.nextTick(() => order.push('next tick'));
      queueMicrotask(() => order.push('microtask'));
      return true;
    };
    const limits = { withdrawTimeoutMs: 5000, clock: systemClock };
    const exchange = await exchangeOnce(new GuardedSocket(socket), request, mayWrite, limits);
    expect(exchange).toMatchObject({ kind: 'responded', response: { status: 200 } });
    expect(order.slice(0, 2)).toEqual(['asked', 'written: POST … 1&b=2']);
    expect(order.slice(2).sort()).toEqual(['microtask', 'next tick']);
  });
});
