import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import type { Logger } from '../../src/base/logger.js';
import { loggerWithThrowingChildren, throwingLogger } from '../support/throwing-watchers.js';
import { httpResponse, type RawGateway, startForTest } from './support/raw-gateway.js';
import { clientOf, recordingLogger, SECRET_KEY } from './support/test-client.js';

const REQUEST = { paymentId: 10, amount: '1.5', addressTo: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123456789' };

async function respondToAll(body: string, status = 200): Promise<RawGateway> {
  return startForTest('http', { onRequest: ({ stream }) => void stream.write(httpResponse(status, body)) });
}

it.each<[string, Logger]>([
  ['whose every call throws', throwingLogger],
  ['whose children throw', loggerWithThrowingChildren],
])('a logger %s costs no response, and fails no query', async (_name, logger) => {
  const outcomeOf = async (body: string) => clientOf(await respondToAll(body), { logger }).withdraw(REQUEST);
  // The second repeats the request differently, which is logged too.
  for (const more of ['', ',"amount":9']) {
    expect(await outcomeOf(`{"result":1,"txhash":"abc"${more}}`)).toMatchObject({ kind: 'accepted', txhash: 'abc' });
  }
  expect(await outcomeOf('{"result":0,"message":"No"}')).toMatchObject({ kind: 'rejected', message: 'No' });
  expect(await clientOf(await respondToAll('{"result":1,"balance":"7"}'), { logger }).balance()).toBe('7');
});

const everything = (value: unknown) => inspect(value, { depth: 20, showHidden: true }) + JSON.stringify(value);

it('what the client does not disclose the secret key, in a client, a connection, and errors', async () => {
  const server = await respondToAll('', 502);
  const client = clientOf(server);
  const connection = await client.openConnection(new AbortController().signal);
  const error: unknown = await client.balance().catch((reason: unknown) => reason);
  const rejection: unknown = await clientOf({ baseUrl: 'http://127.0.0.1:1' })
    .balance()
    .catch((e: unknown) => e);
  connection.close();
  for (const value of [client, connection, error, rejection]) {
    expect(everything(value)).not.toContain(SECRET_KEY);
    expect(everything(value)).not.toMatch(/[0-9a-f]{64}/);
    expect(everything(value)).not.toContain('hash=');
  }
});

it('what the client does not disclose the hash, even where the gateway repeats it, and the address', async () => {
  const server = await startForTest('http', {
    onRequest: ({ stream }, request) => {
      const hash = /hash=(\w+)/.exec(request)?.[1] ?? '';
      stream.write(httpResponse(200, `{"result":0,"message":"bad hash ${hash.toUpperCase()}"}`));
    },
  });
  const logger = recordingLogger();
  const client = clientOf(server, { logger });
  const addressTo = 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC';
  const outcome = await client.withdraw({ paymentId: 10, amount: '1', addressTo });
  expect(outcome).toMatchObject({ kind: 'rejected', message: 'bad hash [hash]' });
  await expect(client.balance()).rejects.toThrow('bad hash [hash]');

  expect(logger.lines.map(({ fields }) => fields)).toEqual([
    expect.objectContaining({ endpoint: 'withdraw', httpStatus: 200, outcome: 'rejected' }),
    expect.objectContaining({ endpoint: 'balance', httpStatus: 200, outcome: 'failed' }),
  ]);
  expect(everything(logger.lines)).not.toMatch(/[0-9a-f]{64}/i);
  expect(everything(logger.lines)).not.toContain(addressTo);
  expect(everything(logger.lines)).not.toContain(SECRET_KEY);
});
