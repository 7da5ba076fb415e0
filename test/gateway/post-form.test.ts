import http from 'node:http';
import { inspect } from 'node:util';
import { expect, it } from '@jest/globals';
import { postForm } from '../../src/gateway/exchange-once.js';

it('an error contains nothing of the request', async () => {
  const agent = new http.Agent();
  const failure: unknown = await postForm('http://127.0.0.1:1/withdraw', 'amount=1&hash=f00', agent).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ message: expect.stringMatching(/ECONNREFUSED/) });
  expect(inspect(failure, { depth: 20, showHidden: true })).not.toContain('f00');
});
