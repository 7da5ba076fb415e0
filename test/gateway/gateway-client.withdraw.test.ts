import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import type { GatewayClientOptions } from '../../src/gateway/exchange/client-options.js';
import type { WithdrawConnection, WithdrawOutcome } from '../../src/gateway/gateway.js';
import {
  httpResponse,
  startForTest,
  type Peer,
  type RawGateway,
  type RawGatewayBehaviour,
  type Scheme,
} from './support/raw-gateway.js';
import { clientOf, recordingLogger } from './support/test-client.js';
import { until } from '../support/until.js';

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123456789' };
const ACCEPTED = '{"result":1,"txhash":"abc","payment_id":10,"amount":1.5}';
const REJECTED = '{"result":0,"message":"Not enough money"}';

describe.each<Scheme>(['http', 'https'])('a withdrawal over %s', (scheme) => {
  const start = async (behaviour: RawGatewayBehaviour): Promise<RawGateway> => startForTest(scheme, behaviour);

  /** Every attempt of this file goes through here: "not sent" and a byte at the server exclude each other. */
  async function attempt(
    behaviour: RawGatewayBehaviour,
    options: Partial<GatewayClientOptions> = {},
    use: (connection: WithdrawConnection) => Promise<WithdrawOutcome> = sendAtOnce,
  ): Promise<{ outcome: WithdrawOutcome; server: RawGateway }> {
    const server = await start(behaviour);
    const connection = await clientOf(server, options).openConnection(new AbortController().signal);
    const outcome = await use(connection);
    await server.allClosed();
    if (outcome.kind === 'not_sent') expect(server.receivedBytes).toBe(0);
    expect(connection.usable).toBe(false);
    return { outcome, server };
  }

  const sendAtOnce = (connection: WithdrawConnection) => connection.withdraw(REQUEST, { mayWrite: () => true });
  const responding = (response: Buffer): RawGatewayBehaviour => ({
    onRequest: ({ stream }) => void stream.write(response),
  });
  const respondingAfter = (ms: number): RawGatewayBehaviour => ({
    onRequest: ({ stream }) => void setTimeout(() => stream.write(httpResponse(200, ACCEPTED)), ms),
  });
  const ending = (bytes: string): RawGatewayBehaviour => ({ onRequest: ({ stream }) => void stream.end(bytes) });

  it('sends the signed payload and the hash to the byte, once, and closes', async () => {
    const { outcome, server } = await attempt(responding(httpResponse(200, ACCEPTED)));
    expect(outcome).toEqual({ kind: 'accepted', gatewayId: 'abc', txhash: 'abc', durationMs: expect.any(Number) });
    expect(server.requests).toHaveLength(1);
    const [head, body] = server.requests[0]?.split('\r\n\r\n') ?? [];
    expect(body).toMatch(
      /^payment_id=10&platform_id=4242&amount=1\.5&address_to=rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh%3A123456789&hash=[0-9a-f]{64}$/,
    );
    const lines = ['POST /api/v1/withdraw HTTP/1.1', 'Content-Type: application/x-www-form-urlencoded'];
    expect(head?.split('\r\n')).toEqual(
      expect.arrayContaining([...lines, 'Accept-Encoding: gzip', 'Connection: close']),
    );
  });

  const gzipped = gzipSync(ACCEPTED);
  const zip = ['Content-Encoding: gzip'];
  const chunked = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n38\r\n${ACCEPTED}\r\n`;
  const [accepted, unknown] = [{ kind: 'accepted', gatewayId: 'abc' }, { kind: 'unknown' }] as const;
  const cutOff = { ...unknown, durationMs: expect.any(Number) as unknown as number };
  it.each<[string, RawGatewayBehaviour, Partial<WithdrawOutcome>]>([
    ['gzip', responding(httpResponse(200, gzipped, zip)), accepted],
    ['chunks', responding(Buffer.from(`${chunked}0\r\n\r\n`)), accepted],
    ['a refusal', responding(httpResponse(200, REJECTED)), { kind: 'rejected', message: 'Not enough money' }],
    ['HTML', responding(httpResponse(502, '<html>Bad gateway</html>')), { kind: 'unknown', httpStatus: 502 }],
    ['half a gzip stream', responding(httpResponse(200, gzipped.subarray(0, -9), zip)), unknown],
    ['more than is read', responding(httpResponse(200, ACCEPTED + ' '.repeat(5 * 1024 * 1024))), unknown],
    [
      'another protocol',
      responding(Buffer.from('HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')),
      unknown,
    ],
    ['half of its length', ending(`HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${ACCEPTED}`), cutOff],
    ['half of its chunks', ending(chunked), cutOff],
    ['half of its head', ending('HTTP/1.1 200 OK\r\nContent-'), cutOff],
    ['nothing', ending(''), cutOff],
    ['an end with the connection', ending(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${ACCEPTED}`), accepted],
    ['a reset', { onRequest: ({ reset }) => void setImmediate(reset) }, unknown],
  ])('a response of %s counts for what it is', async (_name, behaviour, expected) => {
    expect((await attempt(behaviour)).outcome).toMatchObject(expected);
  });

  it.each<[string, string, WithdrawOutcome['kind']]>([
    ['a refusal', '', 'rejected'],
    ['a refusal with a txhash, which is unclear,', ',"txhash":"abc"', 'unknown'],
  ])('%s that repeats the signature shows it to no one', async (_name, more, kind) => {
    const logger = recordingLogger();
    let signature = '';
    const { outcome } = await attempt(
      {
        onRequest: ({ stream }, request) => {
          signature = /&hash=([0-9a-f]{64})/.exec(request)?.[1] ?? '';
          const message = `wrong hash ${signature}, or ${signature.toUpperCase()}`;
          stream.write(httpResponse(200, JSON.stringify({ result: 0, message }).replace('}', `${more}}`)));
        },
      },
      { logger },
    );
    expect(outcome.kind).toBe(kind);
    const shown = JSON.stringify([outcome, logger.lines]).toLowerCase();
    expect(shown).toContain('wrong hash [hash], or [hash]');
    expect(signature).toHaveLength(64);
    expect(shown).not.toContain(signature);
  });

  it('follows no redirect: a 307 is one request', async () => {
    const server = await start({});
    const { outcome, server: redirecting } = await attempt(
      responding(httpResponse(307, ACCEPTED, [`Location: ${server.baseUrl}/withdraw`])),
    );
    await delay(50);
    expect(outcome).toMatchObject({ kind: 'unknown' });
    expect(redirecting.requests).toHaveLength(1);
    expect(server.receivedBytes).toBe(0);
  });

  it('a late response counts', async () => {
    const { outcome } = await attempt(respondingAfter(400), { timeoutMs: 50, connectTimeoutMs: 300 });
    expect(outcome).toMatchObject({ kind: 'accepted', gatewayId: 'abc' });
    expect(outcome.kind === 'accepted' ? outcome.durationMs : 0).toBeGreaterThan(350);
  });

  it.each<[string, string]>([
    ['silence', ''],
    ['a response that never ends', 'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{'],
  ])('after the time limit, %s is unknown and the connection is reset', async (_name, beginning) => {
    let ending: unknown;
    const { outcome } = await attempt(
      {
        onConnect: (raw) => void raw.on('error', (error: NodeJS.ErrnoException) => (ending = error.code)),
        onRequest: ({ stream }) => void stream.write(beginning),
      },
      { withdrawTimeoutMs: 200 },
    );
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'no complete response within 200 ms' });
    expect(outcome.kind === 'unknown' ? outcome.durationMs : 0).toBeGreaterThan(190);
    // A TLS socket reports the reset in its own words, if at all.
    if (scheme === 'http') await until('the gateway sees the reset', () => ending === 'ECONNRESET');
  });

  const fail = (): never => {
    throw new Error('lease lost');
  };
  const broken = { amount: '1e3', symbol: 'usd' };
  it.each<[string, object, () => boolean, string]>([
    ['without permission', {}, () => false, 'permission to write was refused'],
    ['when asking fails', {}, fail, 'permission to write could not be determined: lease lost'],
    ['that breaks a rule', broken, () => true, "the request breaks the gateway's rules for amount, symbol"],
  ])('writes nothing %s, and asks once at most', async (_name, changes, mayWrite, reason) => {
    let asked = 0;
    const counted = () => {
      asked += 1;
      return mayWrite();
    };
    const { outcome } = await attempt({}, {}, async (connection) => {
      expect(asked).toBe(0);
      return connection.withdraw({ ...REQUEST, ...changes }, { mayWrite: counted });
    });
    expect(outcome).toEqual({ kind: 'not_sent', reason });
    expect(asked).toBeLessThanOrEqual(1);
  });

  it('uses a connection once', async () => {
    const { server } = await attempt(responding(httpResponse(200, ACCEPTED)), {}, async (connection) => {
      const [first, second] = await Promise.all([sendAtOnce(connection), sendAtOnce(connection)]);
      expect(second).toEqual({ kind: 'not_sent', reason: 'this connection was already used' });
      return first;
    });
    expect(server.requests).toHaveLength(1);
  });

  const afterItSettled = async (connection: WithdrawConnection) => {
    for (let waitedMs = 0; connection.usable && waitedMs < 5_000; waitedMs += 10) await delay(10);
    expect(connection.usable).toBe(false);
    return sendAtOnce(connection);
  };

  it.each<[string, Required<RawGatewayBehaviour>['onReady'], RegExp]>([
    ['ended', ({ stream }) => void setTimeout(() => stream.end(), 10), /closed the connection before the request/],
    ['reset', (peer) => void setTimeout(peer.reset, 10), /ECONNRESET/],
    ['written to', ({ stream }) => void stream.write(httpResponse(200, ACCEPTED)), /sent something before/],
  ])('%s by the peer while idle is not sent', async (_name, onReady, reason) => {
    const { outcome } = await attempt({ onReady }, {}, afterItSettled);
    expect(outcome).toEqual({ kind: 'not_sent', reason: expect.stringMatching(reason) });
  });

  it('reads what has already reached this machine before it writes', async () => {
    const peers: Peer[] = [];
    const { outcome } = await attempt({ onReady: (peer) => void peers.push(peer) }, {}, async (connection) => {
      while (peers.length === 0) await delay(1);
      // On loopback the bytes are there at once, but no turn of the event loop has read them yet.
      peers[0]?.stream.write(httpResponse(200, ACCEPTED));
      expect(connection.usable).toBe(true);
      return sendAtOnce(connection);
    });
    expect(outcome).toEqual({ kind: 'not_sent', reason: 'the gateway sent something before the request' });
  });

  it('closes an unused connection', async () => {
    const server = await start({});
    const connection = await clientOf(server).openConnection(new AbortController().signal);
    expect(connection.usable).toBe(true);
    connection.close();
    connection.close();
    expect(connection.usable).toBe(false);
    expect(await sendAtOnce(connection)).toMatchObject({ kind: 'not_sent' });
    await server.allClosed();
    expect(server.receivedBytes).toBe(0);
  });

  it.each<[string, Buffer, 'write' | 'end', boolean]>([
    ['a response of something before the gateway', httpResponse(502, '<html>'), 'write', true],
    ['such a response, and the end of the connection', httpResponse(408, ''), 'end', true],
    ['a response that ends too early', Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'), 'end', true],
    ['an acceptance', httpResponse(200, ACCEPTED), 'write', false],
  ])('after %s nothing of the request is left to the kernel, where it is unknown', async (_, bytes, how, isReset) => {
    let ending: unknown;
    const { outcome } = await attempt({
      onConnect: (raw) => {
        raw.allowHalfOpen = how === 'end';
        raw.on('error', (error: NodeJS.ErrnoException) => (ending = error.code));
      },
      onRequest: ({ stream }) => void stream[how](bytes),
    });
    expect(outcome.kind).toBe(isReset ? 'unknown' : 'accepted');
    if (scheme === 'http') expect(ending).toBe(isReset ? 'ECONNRESET' : undefined);
  });

  it('reset ends a withdrawal under way as unknown, for the reason given, and resets the connection', async () => {
    let ending: unknown;
    const { outcome } = await attempt(
      { onConnect: (raw) => void raw.on('error', (error: NodeJS.ErrnoException) => (ending = error.code)) },
      {},
      async (connection) => {
        const sent = sendAtOnce(connection);
        setTimeout(() => {
          connection.reset('others may send');
        }, 50);
        return sent;
      },
    );
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'others may send' });
    if (scheme === 'http') await until('the gateway sees the reset', () => ending === 'ECONNRESET');
  });

  it('close does not cut off a withdrawal that is under way', async () => {
    const { outcome } = await attempt(respondingAfter(50), {}, async (connection) => {
      const sent = sendAtOnce(connection);
      connection.close();
      return sent;
    });
    expect(outcome).toMatchObject({ kind: 'accepted' });
  });
});
