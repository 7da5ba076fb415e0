import { afterEach, describe, expect, it } from '@jest/globals';
import type { Logger } from '../../src/base/logger.js';
import { loggerWithThrowingChildren, throwingLogger } from '../support/throwing-watchers.js';
import { httpResponse, startRawGateway, type RawGateway } from './support/raw-gateway.js';
import { clientOf } from './support/test-client.js';

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123456789' };

let server: RawGateway;

afterEach(async () => {
  await server.stop();
});

async function respondToAll(body: string): Promise<void> {
  server = await startRawGateway('http', { onRequest: ({ stream }) => void stream.write(httpResponse(200, body)) });
}

describe.each<[string, Logger]>([
  ['whose every call throws', throwingLogger],
  ['whose children throw', loggerWithThrowingChildren],
])('a logger %s', (_name, logger) => {
  it.each<[string, string, object]>([
    ['an acceptance', '{"result":1,"txhash":"abc"}', { kind: 'accepted', txhash: 'abc' }],
    [
      'an acceptance that repeats the request differently',
      '{"result":1,"txhash":"abc","amount":9}',
      { kind: 'accepted', txhash: 'abc' },
    ],
    ['a rejection', '{"result":0,"message":"Not enough money"}', { kind: 'rejected', message: 'Not enough money' }],
  ])('does not cost %s', async (_response, body, expected) => {
    await respondToAll(body);
    expect(await clientOf(server, { logger }).withdraw(REQUEST)).toMatchObject(expected);
  });

  it('does not fail a query', async () => {
    await respondToAll('{"result":1,"balance":"7"}');
    const client = clientOf(server, { logger });
    expect(await client.balance()).toBe('7');
    client.close();
  });
});
