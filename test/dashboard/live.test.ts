import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, signSample, type SampleAccount } from './support/sample-account.js';

/** What the server gives to a page that refreshes itself; the browser's part is in browser.slow.test.ts. */

let account: SampleAccount;
let dashboard: RunningDashboard;
const ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  account = await openSampleAccount();
  const signed = await signSample(account);
  await fillAccount(account);
  await account.ledger.pause('ann', 'ticket 812');
  dashboard = await openDashboard(account, signed.options);
  for (const each of [dashboard, account, signed]) ends.push(async () => each.close());
});
afterAll(async () => {
  for (const end of ends) await end();
});

const FORMS = ['/payouts', '/payouts?state=held', '/payouts?amount=12.5', '/held', '/held?kind=policy'];
const LISTS = ['/activity', '/audit', '/batches', '/payouts/order:2041', '/overview'];
const mainOf = (page: string) => /<main[^]*<\/main>/.exec(page)?.[0] ?? '';

it.each([...FORMS, ...LISTS])('%s is live, and the same again while nothing changed', async (path) => {
  const page = await dashboard.read(path);
  expect(page).toMatch(/<main[^>]*data-live="\d{4,5}"/);
  expect(page).toContain('<script src="/live.js" defer></script>');
  // Each difference would be a change on the screen.
  if (path !== '/overview') expect(mainOf(await dashboard.read(path))).toBe(mainOf(page));
});

it('without scripts a page with check boxes or a filter does not reload, which would lose them, and says so', async () => {
  for (const path of FORMS) {
    const page = await dashboard.read(path);
    expect(page).not.toContain('http-equiv="refresh"');
    expect(page).toContain('<noscript> · not live without scripts: <a href="">Reload</a></noscript>');
  }
  for (const path of LISTS) expect(await dashboard.read(path)).toContain('<noscript><meta http-equiv="refresh"');
});

it('commands for what was selected stay as they were read', async () => {
  for (const path of ['/payouts?state=held&all=1', '/held?all=1', '/payouts?state=held&pick=order:2051']) {
    const page = await dashboard.read(path);
    expect(page).toContain('id="selected"');
    expect(page).not.toMatch(/data-live|live\.js/);
  }
  // Nor a page that says what is wrong with its filter.
  expect(await dashboard.read('/payouts?amount=12x')).not.toMatch(/data-live|live\.js/);
});

it('each row has a name of its own, by which it is found again when others come', async () => {
  for (const path of [...FORMS, ...LISTS.slice(0, 3)]) {
    const [, body = ''] = /<tbody>([^]*?)<\/tbody>/.exec(await dashboard.read(path)) ?? [];
    const keys = [...body.matchAll(/<tr[^>]* data-key="([^"]+)"/g)].map(([, key]) => key);
    if (path !== '/batches' && !path.includes('12.5')) expect(keys).not.toEqual([]);
    expect(keys).toHaveLength(body.match(/<tr/g)?.length ?? 0);
    expect(new Set(keys).size).toBe(keys.length);
  }
});

it('only the overview goes on in a hidden tab, because its title is an alarm', async () => {
  expect(await dashboard.read('/overview')).toMatch(/<main[^>]*data-pulse/);
  for (const path of [...FORMS, ...LISTS.slice(0, 4)]) expect(await dashboard.read(path)).not.toContain('data-pulse');
});
