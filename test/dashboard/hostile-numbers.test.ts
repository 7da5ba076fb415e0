import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { writePolicyReport } from '../../src/ledger/reads/policy-report.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { runInProcess } from '../cli/support/in-process.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount, writeSampleBatches } from './support/sample-account.js';

/** Every page, and every command that reads: how each shows amounts, counts, times and durations that are hard to read. */

const LONG = '2993031.152999999999999999';
const TINY = '0.000000000000000001';
const EXPONENT = '2.993031153e+06';
const ENDLESS = '9'.repeat(100_000);

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  account = await openSampleAccount();
  const { ledger, redis, connection, sender } = account;
  const { keys } = connection;
  const HOUR_AGO = Date.now() - 3_600_000;
  await account.sendAs('paid', { kind: 'accepted', gatewayId: 'aa' }, { amount: LONG, batch: 'b' });
  await ledger.change({ payoutId: 'paid', from: 'in_progress', to: 'completed', fee: '1' });
  await account.sendAs('lost', { kind: 'unknown', reason: 'no response' }, { amount: TINY, batch: 'b' });
  await account.enqueue('listed-fee', { amount: '1234567.5', batch: 'b' });
  for (const payoutId of ['held', 'exponent', 'endless']) await account.enqueue(payoutId, { amount: LONG, batch: 'b' });
  await sender.holdPayout('held', 0, HOLD);
  // The sums of Redis's own counters have been followed by then: who can write to Redis alters what is shown of one.
  await redis.hset(keys.payout('exponent'), 'amount', EXPONENT);
  await redis.hset(keys.payout('endless'), 'amount', ENDLESS);
  await writeSampleBatches(account, []);
  const currencies = [{ paymentId: 7, name: 'USDT', usdRate: '1.000000000000000001', fee: '0.1234' }];
  const balance = [
    { paymentId: 7, symbol: undefined, amount: LONG },
    { paymentId: undefined, symbol: 'USD', amount: TINY },
  ];
  await writeGatewayFacts(connection, { currencies, currenciesAt: Date.now() }, { balance, balanceAt: Date.now() });
  const compared = {
    ...{ paymentId: 7, amount: LONG, baseline: { amount: LONG, at: HOUR_AGO }, decimalsSeen: 18, isSuspected: false },
    ...{ settled: { count: 1, high: LONG }, recent: { count: 0, high: '0' }, open: { count: 1, high: LONG } },
    ...{ unexplained: LONG, reported: LONG, drop: { amount: LONG, since: HOUR_AGO, at: Date.now() } },
  };
  const times = { comparedAt: Date.now(), followedSince: HOUR_AGO, followedTo: '0-0' };
  const reconciliation = { ...times, fees: {}, rates: {}, balances: [compared] };
  await redis.hset(keys.gateway, 'reconciliation', JSON.stringify({ reconciliation }));
  const day = { rule: 'day', unit: 'amount', paymentId: 7, limit: EXPONENT, withinMs: 86_400_000, per: null } as const;
  await writePolicyReport(connection, {
    ...{ hash: 'c0de'.repeat(16), at: Date.now(), ratesAt: null, ratesMissingSince: null },
    rules: [{ ...day, unknown: null, buckets: [{ bucket: '', spent: LONG, wanted: TINY, ratio: 0.9 }] }],
    held: [{ rule: 'day', reason: 'wait', count: 12_345 }],
  });
  await ledger.pause('ann', 'ticket 812');
  account.clock.advance(4 * 3_600_000);
  dashboard = await openDashboard(account);
});

afterAll(async () => {
  await dashboard.close();
  await account.close();
});

/** What a reader sees: without times, and what is copied as it is, such as ids, commands and hashes. */
function proseOf(page: string): string {
  return page
    .replace(/<(script|style|head|select|svg)\b[^]*?<\/\1>/g, '')
    .replace(/<(time|code|bdi class="mono"|span class="mono"|td class="mono")\b[^]*?<\/(time|code|bdi|span|td)>/g, ' ')
    .replace(/<t[dh][^>]*class="(id|mono)"[^]*?<\/t[dh]>/g, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/\s+/g, ' ');
}

/** What no reading may have. */
const FORBIDDEN: readonly (readonly [what: string, form: RegExp])[] = [
  ['an exponent', /\d[eE][-+]?\d/],
  ['more than 8 places', /\.\d{9,}/],
  ['a number without separators', /(?<![\d.,:#-])\d{5,}(?![\d:]*-)/],
  ['a line of digits that fills the page', /\d{40}/],
  ['a time without its zone', /\d\d:\d\d:\d\d(?! UTC)/],
];

function expectForms(path: string, text: string, but: RegExp[] = []): void {
  const prose = but.reduce((left, exact) => left.replace(exact, ''), text);
  for (const [what, form] of FORBIDDEN) {
    const found = form.exec(prose);
    const around = found && prose.slice(Math.max(0, found.index - 60), found.index + 60);
    expect({ path, what, around }).toEqual({ path, what, around: null });
  }
}

/** Every page that a reader can come to, by the links of the others. Bull Board has pages of its own. */
async function crawl(): Promise<Map<string, string>> {
  const pages = new Map<string, string>();
  const open = ['/overview'];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (pages.has(path)) continue;
    const response = await dashboard.ask(path);
    const page = await response.text();
    expect([path, response.status]).toEqual([path, 200]);
    pages.set(path, page);
    for (const [, href = ''] of page.matchAll(/<a\b[^>]*?href="(\/[^"#]*)/g)) {
      const next = href.replaceAll('&amp;', '&');
      if (!/^\/(board|payouts\.csv|runbooks)/.test(next)) open.push(next);
    }
  }
  return pages;
}

describe('hard numbers', () => {
  it('are short, grouped and named on every page', async () => {
    const pages = await crawl();
    expect([...pages.keys()]).toEqual(
      expect.arrayContaining([
        ...['/overview', '/overview?range=day', '/payouts', '/held', '/batches', '/batch?name=b', '/activity'],
        ...['/policy', '/audit', '/diagnostics', '/payouts/paid', '/payouts/lost', '/payouts/endless'],
      ]),
    );
    const own = new RegExp(`(?<!\\d)${account.platformId}(?!\\d)`, 'g');
    // The page of a payout is what people compare with the gateway: its amount has every digit.
    const exact = [/2,993,031\.152999999999999999 USDT/, /0\.000000000000000001 USDT/];
    for (const [path, page] of pages) {
      expectForms(path, proseOf(page), [own, /9{30}…/g, ...(/^\/payouts\/./.test(path) ? exact : [])]);
    }
  });

  it.each([
    ['/overview', / ≈ 2,993,031\.153 USDT is missing: the balance fell/],
    ['/overview', /by ann , since .* UTC , for 4 h 0 min/],
    ['/payouts?state=', /paid completed ≈ 2,993,031\.153 USDT .* lost unknown < 0\.00000001 USDT /],
    ['/payouts?state=queued', / 2,993,031\.153 USDT .* 9{30}… \(100,000 characters\) USDT .* 1,234,567\.5 USDT/],
    ['/payouts/paid', /Amount 2,993,031\.152999999999999999 USDT .* Fee 1 USDT /],
    ['/payouts/paid', /in progress .* UTC for 1 min/],
    ['/payouts/lost', /Amount 0\.000000000000000001 USDT .* Fee 0\.1234 USDT in the gateway's list/],
    ['/policy', /≈ 2,993,031\.153 of 2,993,031\.153 USDT in 24 h < 0\.00000001 USDT/],
    ['/policy', /12,345 payouts/],
  ])('are on %s in the form %s', async (path, form) => {
    const text = (await dashboard.readText(path)).replaceAll('&#39;', "'");
    // Lists are in the order of the last change.
    const isList = path.includes('?state=');
    const parts = isList ? form.source.split(' .* ').map((part) => new RegExp(part)) : [form];
    for (const part of parts) expect(text).toMatch(part);
  });

  it.each<[string[], RegExp]>([
    [['get', 'paid'], /amount +2,993,031\.152999999999999999 USDT\n[^]* fee +1 USDT\n[^]* in_progress +for 1 min/],
    [['list', '--state', 'completed'], /≈ 2,993,031\.153 USDT/],
    [['list', '--state', 'unknown'], /< 0\.00000001 USDT/],
    [['stats'], /Balance fell\n[^]* paused by +ann, .* UTC, for \d[^]* balance +≈ 2,993,031\.153 USDT/],
    [['reconcile'], /REPORTED +≈ 2,993,031\.153 USDT missing, since .* UTC\n/],
    [['policy', 'usage'], /≈ 2,993,031\.153 of 2,993,031\.153 USDT in 24 h +< 0\.00000001 USDT wanted/],
    [['activity'], / UTC +ann +paused the account +ticket 812/],
  ])('are printed by `payouts %p`', async (args, form) => {
    const { stdout } = await runInProcess(args, { GATEWAY_PLATFORM_ID: String(account.platformId) });
    expect(stdout).toMatch(form);
    // Columns of times name their zone in the head.
    const own = [new RegExp(String(account.platformId), 'g'), /(?<=\n.*)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?! UTC)/g];
    const exact = [/2,993,031\.152999999999999999/];
    expectForms(args.join(' '), stdout, [...own, ...(args[0] === 'get' ? exact : [])]);
  });
});
