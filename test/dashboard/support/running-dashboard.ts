import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startDashboard, type DashboardServerOptions } from '../../../src/dashboard/index.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import type { TestAccount } from '../../ledger/support/test-account.js';

export type RunningDashboard = Awaited<ReturnType<typeof openDashboard>>;

export async function openDashboard(
  account: Pick<TestAccount, 'clock'> & Pick<DashboardServerOptions, 'platformId'>,
  options: Partial<DashboardServerOptions> = {},
) {
  const { user = 'payouts', password } = options;
  const platformIds = [options.platformId ?? account.platformId].flat();
  const server = await startDashboard({
    ...{ platformId: account.platformId, clock: account.clock, redisUrl: process.env['REDIS_URL'] ?? '' },
    ...{ host: '127.0.0.1', port: 0, audiences: new Map(platformIds.map((id) => [id, TEST_AUDIENCE])) },
    ...options,
  });
  const headers = password === undefined ? {} : { authorization: basicAuth(user, password) };
  /** Requests a path, signed in where there is a password; redirects are not followed. */
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(server.url + path.replace(/^\//, ''), { headers, redirect: 'manual', ...init });
  const read = async (path: string) => (await ask(path)).text();
  return {
    ...{ url: server.url, ask, read },
    /** What a reader sees of the page, in one line. */
    readText: async (path: string) => textOf(await read(path)),
    /** The ids in the table of the page, and of each page after it. */
    async readIds(path: string): Promise<string[][]> {
      const pages: string[][] = [];
      for (let next: string | undefined = path; next !== undefined;) {
        const page = await read(next);
        pages.push(idsOf(page));
        next = nextPage(page);
      }
      return pages;
    },
    close: () => server.close(),
  };
}

export function basicAuth(user: string, password: string) {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

export function idsOf(page: string) {
  return [...page.matchAll(/<th [^>]*scope="row" class="id">\s*<a href="[^"]*\/payouts\/([^"]+)"/g)].map(
    ([, id = '']) => id,
  );
}

export function nextPage(page: string): string | undefined {
  return /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
}

function textOf(page: string) {
  const [, main = page] = /<main[^]*?>([^]*)<\/main>/.exec(page) ?? [];
  const shown = main.replace(/<caption[^]*?<\/caption>/g, '').replace(/<[^>]+>/g, ' ');
  return shown.replace(/&lt;/g, '<').replace(/\s+/g, ' ');
}

/** What a page has of the text that would run. The one script that it may load is ours. */
export function injectedIn(page: string): RegExpExecArray | null {
  return /<script|<img/.exec(page.replace(/<script src="[\w/]*\/(page|live)\.js" defer><\/script>/g, ''));
}

export async function serve(listener: RequestListener): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
