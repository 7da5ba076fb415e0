import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect } from 'node:net';
import { startSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { call, signForm, withdrawFields } from './support/independent-client.js';
import { TEST_CERTIFICATE } from './support/test-certificate.js';
import { runSandbox, SECRET_KEY } from './support/running-sandbox.js';

const accounts = [{ platformId: 1001, secretKey: SECRET_KEY }];

describe('startSandbox', () => {
  it.each<[string, object, string]>([
    ['an unknown option', { accounts, speed: 3 }, 'speed: is not a known field'],
    ['no account', { accounts: [] }, 'accounts: must name at least one account'],
    ['an account twice', { accounts: [...accounts, ...accounts] }, 'accounts: must not name a platformId twice'],
    ['an unknown account setting', { accounts: [{ ...accounts[0], key: SECRET_KEY }] }, 'key: is not a known field'],
    ['an account as a text', { accounts: [`1001:${SECRET_KEY}`] }, 'accounts.0: '],
    ['a list for options', accounts, 'options: must be an object'],
    ['a share above 1', { accounts, failShare: 2 }, 'failShare: must be 0 to 1 (got 2)'],
    ['a range upside down', { accounts, latencyBeforeMs: { min: 2, max: 1 } }, 'latencyBeforeMs: must be milliseconds'],
    ['a negative delay', { accounts, latencyAfterMs: -1 }, 'latencyAfterMs: must be milliseconds'],
    [
      'a balance as a number',
      { accounts: [{ ...accounts[0], balance: 12 }] },
      'accounts.0.balance: must be a decimal string',
    ],
  ])('refuses %s, and shows no secret', async (_name, options, message) => {
    const failure = (await startSandbox(options as SandboxOptions).catch((error: unknown) => error)) as Error;
    expect(failure.name).toBe('InvalidInputError');
    expect(failure.message).toContain(message);
    expect(failure.message).not.toContain(SECRET_KEY);
  });

  it('reports a port that is taken', async () => {
    const { sandbox } = await runSandbox();
    await expect(startSandbox({ accounts, port: sandbox.port })).rejects.toThrow(
      `port ${sandbox.port} on 127.0.0.1 is taken`,
    );
  });

  it('closes idle and half-open connections, and may be closed twice', async () => {
    const { sandbox } = await runSandbox();
    const socket = connect(sandbox.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('POST /balance HTTP/1.1\r\n');
    // A reset closes it too; `once` would reject on it.
    const ended = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve));
    await Promise.all([sandbox.close(), sandbox.close()]);
    await ended;
  });

  it('never processes a call that was cut off, even where its body looks complete', async () => {
    const { sandbox, merchant } = await runSandbox();
    const body = signForm(merchant, withdrawFields(merchant));
    const socket = connect(sandbox.port, '127.0.0.1');
    await once(socket, 'connect');
    const type = 'content-type: application/x-www-form-urlencoded';
    socket.end(`POST /withdraw HTTP/1.1\r\nhost: x\r\n${type}\r\ncontent-length: ${body.length + 1}\r\n\r\n${body}`);
    await once(socket.resume(), 'close');
    // A later call has its response, so the earlier one would have been processed.
    await call(merchant, 'balance', { platform_id: '1001' });
    expect(sandbox.stats()).toMatchObject({ arrivals: 0, payments: 0, calls: { withdraw: 0 } });
  });

  it('draws the same failures and latencies from the same seed, and others from another', async () => {
    const failures = async (seed: number): Promise<string> => {
      const draws = { seed, failShare: 0.5, latencyBeforeMs: { min: 0, max: 2 } };
      const { merchant, sandbox, clock } = await runSandbox(draws);
      for (let index = 0; index < 24; index += 1) {
        clock.advance(1000);
        await call(merchant, 'withdraw', withdrawFields(merchant));
      }
      expect(sandbox.seed).toBe(seed);
      return JSON.stringify(sandbox.payments().map(({ settlesAs }) => settlesAs));
    };
    const first = await failures(42);
    expect(await failures(42)).toBe(first);
    expect(await failures(43)).not.toBe(first);
  });

  it('serves https with a key and a certificate', async () => {
    const { sandbox } = await runSandbox({ tls: TEST_CERTIFICATE });
    expect(sandbox.url).toBe(`https://127.0.0.1:${sandbox.port}`);
    const request = get(`${sandbox.url}/__sandbox/stats`, { ca: TEST_CERTIFICATE.cert, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    response.resume();
    await once(response, 'end');
  });

  it("uses the client's parsers of responses in no file", () => {
    const folder = new URL('../../src/sandbox/', import.meta.url);
    const files = readdirSync(folder);
    expect(files.filter((file) => readFileSync(new URL(file, folder), 'utf8').includes('parseResult'))).toEqual([]);
  });
});
