import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  account = await openSampleAccount();
  dashboard = await openDashboard(account);
  await account.ledger.pause('ann', 'ticket 812');
});
afterAll(async () => {
  await dashboard.close();
  await account.close();
});

const statusOf = async (path: string) => (await dashboard.ask(path)).status;

it('the headline links to its runbook, which the dashboard serves', async () => {
  const page = await dashboard.read('/overview');
  const [, href = ''] = /Runbook:\s*<a href="([^"]+)"/.exec(page) ?? [];
  expect(href).toBe('/runbooks/paused');
  const runbook = await dashboard.read(href);
  expect(runbook).toContain('<h1>The account is paused</h1>');
  expect(runbook).toMatch(/<strong>See:<\/strong>.*<code>PayoutsPaused<\/code>/s);
});

it('every runbook is served, and every link in one leads to another', async () => {
  const names = readdirSync(new URL('../../docs/runbooks/', import.meta.url)).map((file) => file.replace(/\.md$/, ''));
  const links = new Set(['/runbooks']);
  for (const name of names) {
    const page = await dashboard.read(`/runbooks/${name}`);
    const [, article = ''] = /<article[^>]*>(.*)<\/article>/s.exec(page) ?? [];
    expect([name, article]).toEqual([name, expect.stringContaining('<h1>')]);
    // Nothing of Markdown is left outside of commands.
    expect(article.replace(/<(code|pre)[^>]*>.*?<\/\1>/gs, '')).not.toMatch(/`|\*\*|\]\(/);
    for (const [, href = ''] of article.matchAll(/href="([^"]+)"/g)) links.add(href);
  }
  for (const link of links) expect([link, await statusOf(link)]).toEqual([link, 200]);
});

it.each(['/runbooks/none', '/runbooks/..%2f..%2fpackage', '/runbooks/README.md', '/runbooks/__proto__'])(
  'no runbook is at %s',
  async (path) => {
    expect(await statusOf(path)).toBe(404);
  },
);

it("a page's foot names account, Redis and gateway, and no password", async () => {
  const foot = async (each: RunningDashboard) => /<footer.*<\/footer>/s.exec(await each.read('/overview'))?.[0] ?? '';
  const { host } = new URL(process.env['REDIS_URL'] ?? '');
  expect(await foot(dashboard)).toContain(`Account ${account.platformId} · Redis ${host} · gateway not known`);
  await account.connection.redis.hset(account.connection.keys.ledger, 'audience', 'pay.example');
  const other = await openDashboard(account, { redisUrl: `redis://default:@${host}/0` });
  expect(await foot(other)).toContain(`Redis ${host} · gateway pay.example`);
  await other.close();
});
