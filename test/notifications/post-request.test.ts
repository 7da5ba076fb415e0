import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { postRequest } from '../../src/notifications/post-request.js';
import { startReceiver, type Receiver, type Respond } from './support/receiver.js';

let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
});

afterEach(async () => {
  await receiver.close();
});

const REQUEST = { headers: { 'payouts-signature': 't=1,v1=x' }, body: '{"a":1}' };

async function post(url = `${receiver.url}/hook?token=hunter2`, timeoutMs = 10_000): Promise<unknown> {
  return postRequest(url, REQUEST, timeoutMs);
}

it('is delivered with any 2xx, as it was made', async () => {
  receiver.respond = (_received, response) => void response.writeHead(202).end('thanks');
  expect(await post()).toEqual({ kind: 'delivered' });
  expect(receiver.received).toMatchObject([
    { path: '/hook?token=hunter2', body: REQUEST.body, headers: REQUEST.headers },
  ]);
});

it.each<[string, Respond, string]>([
  ['fails', (_r, response) => void response.writeHead(500).end('hunter2'), 'the receiver responded with HTTP 500'],
  ['hangs', () => undefined, 'no complete response within 500 ms'],
  [
    'hangs in the middle',
    (_r, response) => void response.writeHead(200).write('a'),
    'no complete response within 500 ms',
  ],
  ['hangs up', (_r, response) => response.destroy(), 'no response: UND_ERR_SOCKET'],
])('is not delivered where the receiver %s', async (_what, respond, reason) => {
  receiver.respond = respond;
  expect(await post(undefined, reason.endsWith('500 ms') ? 500 : undefined)).toEqual({ kind: 'failed', reason });
});

it('is not delivered where nobody listens', async () => {
  const url = `http://127.0.0.1:${await findFreePort()}/hunter2`;
  expect(await post(url)).toEqual({ kind: 'failed', reason: 'no response: ECONNREFUSED' });
});

it('follows no redirect, and passes on when the receiver wants to be asked again', async () => {
  receiver.respond = (received, response) => void response.writeHead(307, { location: received.path }).end();
  expect(await post()).toEqual({ kind: 'failed', reason: 'the receiver responded with HTTP 307' });
  expect(receiver.received).toHaveLength(1);
  receiver.respond = (_received, response) => void response.writeHead(429, { 'retry-after': '7' }).end();
  expect(await post()).toMatchObject({ kind: 'failed', retryAfterMs: 7_000 });
});

it('reads no more of a response than it needs', async () => {
  receiver.respond = (_received, response) => {
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384)));
    };
    response.on('drain', more);
    more();
  };
  expect(await post()).toEqual({ kind: 'delivered' });
});
