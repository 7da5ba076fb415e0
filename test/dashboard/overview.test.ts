import { afterEach, beforeEach, expect, it } from '@jest/globals';
import express from 'express';
import { createBoard } from '../../src/dashboard/board.js';
import { picturesSection } from '../../src/dashboard/overview/charts.js';
import { adoptLedger } from '../../src/ledger/adopt-ledger.js';
import { writePolicyReport } from '../../src/ledger/reads/policy-report.js';
import { type MinuteStatistics, toHourFields } from '../../src/ledger/reads/statistics.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { NO_SENDS, saveReconciliation } from '../../src/ledger/reads/reconciliation.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { until } from '../support/until.js';
import { openDashboard, type RunningDashboard, serve } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount, writeSampleWorker } from './support/sample-account.js';

/** What an operator sees first: overview, accounts, policy, and the board of the queues. */

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeEach(async () => {
  account = await openSampleAccount();
  dashboard = await openDashboard(account);
});

afterEach(async () => {
  await dashboard.close();
  await account.close();
});

it('the overview is the first page, with counts, sender, and what needs an operator', async () => {
  const response = await dashboard.ask('/');
  expect([response.status, response.headers.get('location')]).toEqual([302, '/overview']);
  await fillAccount(account);
  await saveReconciliation(account.connection, {
    ...{ comparedAt: 2, followedSince: 1, followedTo: '0-0', fees: {}, rates: {} },
    balances: [
      {
        ...{ paymentId: undefined, symbol: undefined, amount: '5', baseline: undefined, decimalsSeen: 1 },
        ...{ settled: NO_SENDS, recent: NO_SENDS, open: NO_SENDS, unexplained: undefined, incomparable: undefined },
        ...{ isSuspected: false, reported: '1250.5', drop: { amount: '1250.5', since: 1, at: 2 } },
      },
    ],
  });
  const tiles = (await dashboard.read('/overview')).matchAll(/<b>(\d+)<\/b>\s*<span>([a-z ]+)<\/span>/g);
  expect([...tiles].map(([, count, state]) => `${count} ${state}`)).toEqual([
    ...['3 queued', '1 held', '1 sending', '1 in progress', '1 completed', '1 failed', '1 rejected', '1 unknown'],
    ...['1 cancelled', '1 written off'],
  ]);
  const text = await dashboard.readText('/overview');
  for (const part of [
    ...['no response within 60000 ms', 'Insufficient balance', 'the gateway reported a failure', HOLD.message],
    ...['worker-a:4711', '1 unknown the oldest for 2 min', '1 failed the last 3 min ago', '1,250.5 USD is missing'],
  ])
    expect(text).toContain(part);
});

it('every page says first what stops the account', async () => {
  await account.ledger.pause('ann', 'maintenance');
  const page = await dashboard.read('/overview');
  expect(page).toMatch(new RegExp(`<title>Paused · Payouts ${account.platformId}</title>`));
  expect(page.indexOf('<bdi>maintenance</bdi>')).toBeLessThan(page.indexOf('class="figures"'));
  expect(page).toMatch(/<bdi>ann<\/bdi>, since\s+<time class="utc" datetime="2030-01-01T00:0[^,]+, for 0 s\./);
  account.clock.advance(3_720_000);
  expect(await dashboard.readText('/overview')).toMatch(/UTC ?, for 1 h 2 min\./);
  account.clock.advance(-3_720_000);
  const other = await dashboard.read('/payouts?state=queued');
  expect(other).toMatch(/<title>Paused · [^]*<aside class="alarm" aria-label="Alarm"><a href="\/overview">Paused</);
});

it('after an adoption the overview lists what came back held or with a date, until the account is resumed', async () => {
  await fillAccount(account);
  await account.enqueue('later', { notBefore: '2031-05-06T07:08:09.000Z' });
  expect(await dashboard.readText('/overview')).not.toContain('What came back');
  const { connection, ledger } = account;
  const highest = { epoch: 1, sendCount: 1, acts: 0 };
  const journals = { read: [], givenUp: [] };
  await adoptLedger(connection, highest, { token: 't-1', inFlightMs: 0 }, journals, { by: 'ann', reason: 'restored' });
  const page = await dashboard.read('/overview');
  expect(page).toMatch(/What came back[^]*href="\/payouts\/order(:|%3A)2051"[^]*href="\/payouts\/later"/);
  const text = await dashboard.readText('/overview');
  expect(text).toMatch(new RegExp(`order:2051 ${HOLD.message} [^]* later 2031-05-06 07:08:09 UTC`));
  expect(text).toMatch(/cancellations that no worker had seen: look also through/);
  expect(text).not.toContain('its date has passed');
  account.clock.advance(2 * 365 * 86_400_000);
  expect(await dashboard.readText('/overview')).toContain(
    'its date has passed: it is sent once the account is resumed',
  );
  await ledger.resume('ann', 'looked at', '', 'adoption');
  expect(await dashboard.readText('/overview')).not.toContain('What came back');
});

it('the history of a payout says how long each state lasted, unless it is final', async () => {
  await account.sendAs('order:1', { kind: 'accepted', gatewayId: 'a7c1e4' });
  const historyOf = async () => (await dashboard.readText('/payouts/order:1')).replace(/^.* History /, '');
  expect(await historyOf()).toMatch(
    /^queued \S+ \S+ UTC for 0 s sending \S+ \S+ UTC for 1 s in progress .* UTC for 1 min/,
  );
  await account.ledger.change({ payoutId: 'order:1', from: 'in_progress', to: 'completed' });
  account.clock.advance(60_000);
  expect(await historyOf()).toMatch(/in progress \S+ \S+ UTC for 1 min completed \S+ \S+ UTC\s*$/);
});

it('every worker is shown with its role and why, and no next try while paused', async () => {
  const { redis, ledger, connection } = account;
  const untilText = async (text: RegExp): Promise<void> =>
    until(String(text), async () => text.test(await dashboard.readText('/overview')), 5_000);
  const lastError = { lastError: 'No connection', lastErrorCode: 'GATEWAY_UNAVAILABLE', failedAttempts: 3 };
  const now = Number((await redis.time())[0]) * 1_000;
  await redis.hset(connection.keys.sender, 'owner', 'worker-a:4711:abc');
  await writeSampleWorker(account, 'worker-a:4711', { role: 'sender', ...lastError, nextRetryAt: now });
  await writeSampleWorker(account, 'worker-b:5', { role: 'refused', reason: 'its journal is damaged' });
  await writeSampleWorker(account, 'worker-c:6', { at: now - 600_000 });
  const text = await dashboard.readText('/diagnostics');
  expect(text).toMatch(/worker-b:5 refused its journal is damaged.*worker-c:6 silent no sign of life for 10 min/);
  await ledger.pause('ann', 'maintenance');
  await untilText(/Paused .*Last attempt failed: No connection/);
  expect(await dashboard.readText('/overview')).not.toContain('next try');
});

it('the backlog has one count everywhere, and pages keep themselves up to date', async () => {
  const now = account.clock.wallNow();
  const minute = { at: now - 60_000, sent: 58, smallestGapMs: 1_012, largestGapMs: 2_500, backlog: 3 };
  const usdt = { paymentId: 6, symbol: 'USD' };
  await account.redis.hset(account.connection.keys.statistics, {
    ...toHourFields([{ ...minute, completed: 58, rejected: 0, unknown: 0 }]),
    sums: JSON.stringify({ queued: [{ ...usdt, count: 1_216, amount: '92710.5' }] }),
  });
  for (const payoutId of ['q-1', 'q-2', 'q-3']) await account.enqueue(payoutId);
  const page = await dashboard.read('/overview?range=day');
  for (const part of [
    ...[/<h3>Backlog<\/h3>\s*<b>3 queued<\/b>/, /<desc id="backlog-desc">[^<]* 3 now\.<\/desc>/],
    ...[/the sums are of 1,216 payouts/, /<noscript><meta http-equiv="refresh" content="5" \/><\/noscript>/],
  ])
    expect(page).toMatch(part);
});

it('a ledger of another format is not shown, with why', async () => {
  await account.redis.hset(account.connection.keys.ledger, 'format', '5');
  const response = await dashboard.ask('/overview');
  expect(response.status).toBe(500);
  expect(await response.text()).toMatch(
    /data-live[^]*class="pulse bad"[^]*Ledger of another version[^]*has format 5; /,
  );
});

it.each(['gone', 'hung'])('responds 503 within a second while Redis is %s, and recovers by itself', async (kind) => {
  const redis = await startLocalRedis();
  const onIt = await openDashboard(account, { redisUrl: redis.url });
  let again: Awaited<ReturnType<typeof startLocalRedis>> | undefined;
  try {
    expect((await onIt.ask('/overview')).status).toBe(200);
    if (kind === 'gone') await redis.stop();
    else process.kill(redis.pid, 'SIGSTOP');
    for (const path of ['/overview', '/payouts/x', '/payouts?state=queued', '/payouts.csv?state=queued']) {
      const startedAt = performance.now();
      const response = await onIt.ask(path);
      expect([path, response.status, response.headers.get('retry-after')]).toEqual([path, 503, '5']);
      expect(performance.now() - startedAt).toBeLessThan(1_300);
      expect(await response.text()).toContain('Redis does not respond');
    }
    expect((await onIt.ask('/board/')).status).toBe(200);
    expect((await onIt.ask('/board/api/queues')).status).toBe(503);
    if (kind === 'gone') again = await startLocalRedis({ port: redis.port });
    else process.kill(redis.pid, 'SIGCONT');
    await until('recovered', async () => (await onIt.ask('/overview')).status === 200, 10_000);
  } finally {
    if (kind === 'hung') process.kill(redis.pid, 'SIGCONT');
    await onIt.close();
    await again?.stop();
    await redis.stop();
  }
});

it('the pictures have a description and a table, and mark a gap below a second', () => {
  const now = Date.parse('2030-01-01T12:30:20Z');
  const minute = (age: number, smallestGapMs = 1_012): MinuteStatistics => ({
    ...{ at: Math.floor(now / 60_000) * 60_000 - age * 60_000, sent: 58, smallestGapMs, largestGapMs: 2_500 },
    ...{ completed: 0, rejected: 0, unknown: 0, backlog: 10 },
  });
  const draw = (...minutes: readonly MinuteStatistics[]) =>
    picturesSection({ minutes }, minutes.at(-1)?.backlog ?? 0, 'hour', '/overview', now).text;
  const page = draw(minute(3), minute(2), minute(0));
  expect(page.match(/<svg\s+role="img"/g)).toHaveLength(3);
  expect(page).toMatch(/<desc id="sends-desc">174 sends in the last hour, 58 a minute at most\.[^]*1\.012 s at least/);
  expect(page).not.toMatch(/style=|NaN|undefined|bar tone-bad/);
  expect(draw()).not.toMatch(/NaN|Infinity|undefined/);
  expect(draw(minute(1, 950))).toContain('class="bar tone-bad"');
});

it('the policy shows the use of each window, what is held, and a stopped worker', async () => {
  const publish = async (at: number) => {
    const rule = { rule: 'day', unit: 'usd', limit: '1000.00', withinMs: 86_400_000, unknown: null } as const;
    const buckets = [{ bucket: '<b>', spent: '905.50', wanted: '200.00', ratio: 0.9055 }];
    await writePolicyReport(account.connection, {
      ...{ hash: 'f'.repeat(64), at, ratesAt: at - 30_000, ratesMissingSince: null },
      rules: [{ ...rule, per: 'address', buckets }],
      held: [{ rule: 'day', reason: 'wait', count: 2 }],
    });
    return dashboard.read('/policy');
  };
  expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
  const page = await publish(Date.now());
  for (const part of ['91 % used', '905.50 of 1,000.00 USD in 24 h', '200.00 USD', '&lt;b&gt;'])
    expect(page).toContain(part);
  expect(page).toMatch(/href="\/held\?kind=policy&amp;rule=day&amp;reason=wait"\s*>2 payouts<\/a\s*>\s*by day/);
  expect(page).not.toMatch(/<b>|no worker with a policy sends now/);
  expect(await publish(Date.now() - 120_000)).toContain('no worker with a policy sends now');
});

it('several accounts have their own payouts only, an overview, a switch, and a board each', async () => {
  const second = await openSampleAccount();
  await account.enqueue('of-the-first');
  await second.enqueue('of-the-second');
  const several = await openDashboard({ ...account, platformId: [account.platformId, second.platformId] });
  const [first = '', other = ''] = [account, second].map(({ platformId }) => `/accounts/${platformId}/overview`);
  expect((await several.ask('/')).headers.get('location')).toBe('/accounts');
  const overview = await several.read('/accounts');
  for (const path of [first, other]) expect(overview).toContain(`href="${path}"`);
  const listed = first.replace('overview', 'payouts');
  const page = await several.read(`${listed}?state=queued`);
  for (const part of [`href="${listed}/of-the-first"`, `href="${other}"`]) expect(page).toContain(part);
  expect(page).not.toContain('of-the-second');
  for (const path of [`${other.replace('overview', 'payouts')}/of-the-first`, '/accounts/1/overview'])
    expect((await several.ask(path)).status).toBe(404);
  const board = `/accounts/${second.platformId}/board`;
  expect(await several.read(`${board}/`)).toContain(`<base href="${board}/"`);
  await several.close();
  await second.close();
});

const API = '/board/api/queues';
const JOB = `${API}/withdraw/${encodeURIComponent(encodeURIComponent('order:2045~0'))}`;

it('the board refuses every write, also without the guard in front of it', async () => {
  await fillAccount(account);
  const reads = [`${API}?activeQueue=withdraw&page=1&jobsPerPage=50&status=latest`, JOB, `${JOB}/logs`];
  const writes = [
    ...[`PUT ${JOB}/retry`, `PUT ${API}/withdraw/obliterate`, `PUT ${API}/pause`, `POST ${API}/withdraw/add`],
    ...[`PATCH ${JOB}/update-data`, `DELETE ${API}`],
  ];
  const body = JSON.stringify({
    ...{ name: 'withdraw', queue: 'withdraw', options: {}, force: true },
    ...{ data: { payoutId: 'order:2047' }, jobData: { payoutId: 'order:2047' } },
  });
  const write = async (base: string, request: string): Promise<Response> => {
    const [method = '', path = ''] = request.split(' ');
    return fetch(base + path, { method, body, headers: { 'content-type': 'application/json' } });
  };
  const boardOnly = await serve(express().use('/board', createBoard(account.ledger, account.queues)));
  const before = await account.dump();
  const unguarded = new Set<number>();
  for (const request of writes) {
    const { status, headers } = await write(dashboard.url.slice(0, -1), request);
    expect([request, status, headers.get('allow')]).toEqual([request, 405, 'GET, HEAD']);
    unguarded.add((await write(boardOnly.url, request)).status);
  }
  for (const path of reads) expect((await dashboard.ask(path)).status).toBe(200);
  expect(await account.dump()).toEqual(before);
  // Pausing all queues responds 200 and skips those that are read-only; others have no route here.
  expect([...unguarded].sort()).toEqual([200, 404, 405]);
  await boardOnly.close();
});

it("the board shows of a job its payout's present state, and no secret", async () => {
  await fillAccount(account);
  expect(await (await dashboard.ask(JOB)).json()).toMatchObject({
    job: {
      ...{ name: 'order:2045 · 9000 of 7/USD · rejected', externalUrl: { href: '../payouts/order%3A2045' } },
      data: { state: 'rejected', addressTo: 'TXYZop…VkAeBf', error: 'Insufficient balance' },
    },
  });
  const data = { payoutId: 'stray', paymentId: 1, amount: '1', addressTo: 'w', secretKey: 'sesame' };
  await account.queues.transactionstatus.add('transactionstatus', data, { jobId: 'stray~0' });
  const shown = await dashboard.read(`${API}?activeQueue=transactionstatus&status=latest&page=1&jobsPerPage=20`);
  expect(shown).toContain('stray · 1 of 1 · not in the ledger');
  expect(shown).not.toContain('sesame');
});
