import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Finding } from '../../../src/cli/doctor/check-result.js';
import { checkWorker } from '../../../src/cli/doctor/check-services.js';
import { findFreePort } from '../../../src/sandbox/local-redis.js';

let server: Server | undefined;
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  server = undefined;
});

const ACCOUNT = {
  platformId: 7,
  role: 'sender',
  epoch: 1,
  paused: false,
  pausedReason: null,
  stopped: [],
  warnings: [],
};

/** What doctor makes of a `/readyz` with this body. */
async function judge(body: unknown, host = '127.0.0.1'): Promise<Finding[]> {
  server = createServer((_, response) => {
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server?.listen(0, resolve));
  return checkWorker(host, (server.address() as AddressInfo).port, [7]);
}

describe('payouts doctor asks the worker, which', () => {
  it('is well', async () => {
    const body = { ready: true, redis: 'up', accounts: [ACCOUNT] };
    const well = [{ status: 'ok', detail: 'sender, without warnings' }];
    expect(await judge(body)).toEqual(well);
  });

  it('is of a version without warnings, and serves on all addresses', async () => {
    const account = { ...ACCOUNT, warnings: undefined };
    expect(await judge({ ready: true, redis: 'up', accounts: [account] }, '0.0.0.0')).toMatchObject([{ status: 'ok' }]);
  });

  it('refuses to send, and warns', async () => {
    const refused = { ...ACCOUNT, role: 'refused', reason: 'The journal is damaged.', warnings: ['One.', 'Two.'] };
    expect(await judge({ ready: false, redis: 'up', accounts: [refused] })).toMatchObject([
      { status: 'problem', platformId: 7, detail: 'must not send: The journal is damaged.' },
      { status: 'warning', platformId: 7, detail: 'One.' },
      { status: 'warning', platformId: 7, detail: 'Two.' },
    ]);
  });

  it('has no Redis, or stops', async () => {
    expect(await judge({ ready: false, redis: 'unavailable', accounts: [] })).toMatchObject([
      { status: 'problem', detail: 'not ready: Redis is unavailable to it' },
    ]);
    server?.close();
    const stopped = { ...ACCOUNT, role: 'stopped' };
    expect(await judge({ ready: false, redis: 'up', accounts: [stopped] })).toMatchObject([
      { status: 'problem', detail: 'not ready: it is stopping' },
    ]);
  });

  it('works for another account', async () => {
    expect(await judge({ ready: true, redis: 'up', accounts: [{ ...ACCOUNT, platformId: 8 }] })).toMatchObject([
      { status: 'warning', detail: 'it works for other accounts, not for 7' },
    ]);
  });

  it('is no worker, or is not there', async () => {
    expect(await judge('<html>')).toMatchObject([{ status: 'warning', detail: expect.stringContaining('no worker') }]);
    const none = await checkWorker('127.0.0.1', await findFreePort(), [7]);
    expect(none).toMatchObject([
      { status: 'warning', detail: expect.stringMatching(/no worker responds at .*ECONNREFUSED/) },
    ]);
  });
});
