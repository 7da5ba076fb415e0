import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect } from 'node:net';
import { startSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { call, signForm, withdrawFields } from './support/independent-client.js';
import { makeSelfSignedCertificate } from '../gateway/support/self-signed-certificate.js';
import { runSandbox, SECRET_KEY } from './support/running-sandbox.js';

const accounts = [{ platformId: 1001, secretKey: SECRET_KEY }];

describe('startSandbox', () => {
  it.each<[object, string]>([
    [{ accounts, speed: 3 }, 'speed: is not a known field'],
    [{ accounts: [] }, 'accounts: must name at least one account'],
    [{ accounts: [...accounts, ...accounts] }, 'accounts: must not name a platformId twice'],
    [{ accounts: [{ ...accounts[0], key: SECRET_KEY }] }, 'key: is not a known field'],
    [accounts, 'options: must be an object'],
    [{ accounts, failShare: 2 }, 'failShare: must be 0 to 1 (got 2)'],
    [{ accounts, latencyBeforeMs: { min: 2, max: 1 } }, 'latencyBeforeMs: must be milliseconds'],
    [{ accounts: [{ ...accounts[0], balance: 12 }] }, 'accounts.0.balance: must be a decimal string'],
  ])('refuses %j, and shows no secret', async (options, message) => {
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

  it('lets chosen recipients and a share of the payments end in error, the same from the same seed', async () => {
    const outcomes = async (seed: number): Promise<unknown[]> => {
      const draws = { seed, failShare: 0.5, failAddresses: ['bad'], settleAfterMs: 0 };
      const { merchant, sandbox, clock } = await runSandbox({ ...draws, latencyBeforeMs: { min: 0, max: 2 } });
      for (let index = 0; index < 24; index += 1) {
        clock.advance(1000);
        await call(merchant, 'withdraw', withdrawFields(merchant, { addressTo: index < 4 ? 'bad' : 'good' }));
      }
      expect(sandbox.seed).toBe(seed);
      const status = { platform_id: '1001', txhash: sandbox.payments()[0]?.txhash ?? '' };
      expect(await call(merchant, 'transactionstatus', status)).toMatchObject({ result: 1, approve: 2 });
      return sandbox.payments().map(({ settlesAs }) => settlesAs);
    };
    const first = await outcomes(42);
    expect(first.slice(0, 4)).toEqual([2, 2, 2, 2]);
    expect(new Set(first.slice(4))).toEqual(new Set([1, 2]));
    expect(await outcomes(42)).toEqual(first);
    expect(await outcomes(43)).not.toEqual(first);
  });

  it('serves https with a key and a certificate', async () => {
    const tls = makeSelfSignedCertificate();
    const { sandbox } = await runSandbox({ tls });
    expect(sandbox.url).toBe(`https://127.0.0.1:${sandbox.port}`);
    const request = get(`${sandbox.url}/__sandbox/stats`, { ca: tls.cert, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    response.resume();
    await once(response, 'end');
  });
});
