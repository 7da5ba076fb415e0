import { startDashboard, type DashboardServerOptions } from '../../../src/dashboard/index.js';
import type { TestAccount } from '../../ledger/support/test-account.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';

/** A dashboard on a free port, with a client. */
export interface RunningDashboard {
  readonly url: string;
  /** Requests a path, signed in where there is a password; redirects are not followed. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** As `ask`, but the page's text. */
  read(path: string): Promise<string>;
  close(): Promise<void>;
}

export async function openDashboard(
  account: Pick<TestAccount, 'clock'> & Pick<DashboardServerOptions, 'platformId'>,
  options: Partial<DashboardServerOptions> = {},
): Promise<RunningDashboard> {
  const { user = 'payouts', password } = options;
  const server = await startDashboard({
    platformId: account.platformId,
    clock: account.clock,
    redisUrl: process.env['REDIS_URL'] ?? '',
    host: '127.0.0.1',
    port: 0,
    audiences: new Map(
      [options.platformId ?? account.platformId].flat().map((platformId) => [platformId, TEST_AUDIENCE]),
    ),
    ...options,
  });
  const headers = password === undefined ? {} : { authorization: basicAuth(user, password) };
  const ask: RunningDashboard['ask'] = async (path, init = {}) =>
    fetch(server.url + path.replace(/^\//, ''), { headers, redirect: 'manual', ...init });
  return {
    url: server.url,
    ask,
    read: async (path) => (await ask(path)).text(),
    close: () => server.close(),
  };
}

export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
