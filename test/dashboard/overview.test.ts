import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { picturesSection } from '../../src/dashboard/overview/charts.js';
import { type MinuteStatistics, toHourFields } from '../../src/ledger/reads/statistics.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { until } from '../support/until.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount, writeSampleWorker } from './support/sample-account.js';

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

async function untilText(text: RegExp): Promise<void> {
  await until(String(text), async () => text.test(await dashboard.readText('/payouts')), 5_000);
}

/** While the sender's heart beats. */
async function whileAlive(work: () => Promise<void>): Promise<void> {
  const beating = setInterval(() => void account.redis.hincrby(account.connection.keys.sender, 'beat', 1), 300);
  try {
    await work();
  } finally {
    clearInterval(beating);
  }
}

describe('the overview', () => {
  it('is the first page, with counts, sender, and what needs an operator', async () => {
    const response = await dashboard.ask('/');
    expect([response.status, response.headers.get('location')]).toEqual([302, '/payouts']);
    await fillAccount(account);
    const reconciliation = { balances: [{ amount: '5', drop: { amount: '1250.5', since: 1, at: 2 } }] };
    await account.redis.hset(account.connection.keys.gateway, 'reconciliation', JSON.stringify({ reconciliation }));
    const page = await dashboard.read('/payouts');
    const tiles = [...page.matchAll(/<b>(\d+)<\/b>\s*<span>([a-z ]+)<\/span>/g)];
    expect(tiles.map(([, count, state]) => `${count} ${state}`)).toEqual([
      ...['3 queued', '1 held', '1 sending', '1 in progress', '1 completed', '1 failed', '1 rejected', '1 unknown'],
      '1 cancelled',
    ]);
    const text = await dashboard.readText('/payouts');
    for (const part of [
      ...['no response within 60000 ms', 'Insufficient balance', 'the gateway reported a failure', HOLD.message],
      ...['worker-a:4711', '1 unknown the oldest for 2 min', '1 failed the last 3 min ago', '1,250.5 USD is missing'],
    ])
      expect(text).toContain(part);
  });

  it('says first what stops the account, and on every other page', async () => {
    await account.ledger.pause('ann', 'maintenance');
    const page = await dashboard.read('/payouts');
    expect(page).toMatch(new RegExp(`<title>Paused · Payouts ${account.platformId}</title>`));
    expect(page.indexOf('<bdi>maintenance</bdi>')).toBeLessThan(page.indexOf('class="figures"'));
    expect(page).toMatch(/<bdi>ann<\/bdi>, since\s+<time class="utc" datetime="2030-01-01T00:0/);
    const other = await dashboard.read('/payouts?state=queued');
    expect(other).toMatch(/<title>Paused · [^]*<aside class="alarm" aria-label="Alarm"><a href="\/payouts">Paused</);
  });

  it('shows every worker with its role and why, and no next try while paused', async () => {
    const lastError = { lastError: 'No connection', lastErrorCode: 'GATEWAY_UNAVAILABLE', failedAttempts: 3 };
    const now = Number((await account.redis.time())[0]) * 1_000;
    await account.redis.hset(account.connection.keys.sender, 'owner', 'worker-a:4711:abc');
    await writeSampleWorker(account, 'worker-a:4711', { role: 'sender', ...lastError, nextRetryAt: now });
    await writeSampleWorker(account, 'worker-b:5', { role: 'refused', reason: 'its journal is damaged' });
    await writeSampleWorker(account, 'worker-c:6', { at: now - 600_000 });
    const text = await dashboard.readText('/diagnostics');
    expect(text).toContain('worker-b:5 refused its journal is damaged');
    expect(text).toMatch(/worker-c:6 silent no sign of life for 10 min/);
    await whileAlive(async () => untilText(/Gateway down The last 3 attempts .*: No connection.*, alive/));
    await account.ledger.pause('ann', 'maintenance');
    await untilText(/Paused .*Last attempt failed: No connection/);
    expect(await dashboard.readText('/payouts')).not.toContain('next try');
    await account.redis.del(account.connection.keys.sender);
    await untilText(/no process holds the lease/);
  });

  it('has one count of the backlog everywhere, and keeps itself up to date', async () => {
    const now = account.clock.wallNow();
    const minute = { at: now - 60_000, sent: 58, smallestGapMs: 1_012, largestGapMs: 2_500, backlog: 3 };
    const usdt = { paymentId: 6, symbol: 'USD' };
    const sums = { queued: [{ ...usdt, count: 1_216, amount: '92710.5' }] };
    const sent = [{ ...usdt, count: 8_211, amount: '640214.77' }];
    const today = {
      day: Math.floor(now / 86_400_000),
      sent,
      completed: sent,
      rejected: [{ ...usdt, count: 3, amount: '9' }],
    };
    await account.redis.hset(account.connection.keys.statistics, {
      ...toHourFields([{ ...minute, completed: 58, rejected: 0, unknown: 0 }]),
      ...{ sums: JSON.stringify(sums), today: JSON.stringify(today), lastSendAt: JSON.stringify(now - 96_000) },
      pace: JSON.stringify([1_020, 1_021]),
    });
    for (const payoutId of ['q-1', 'q-2', 'q-3']) await account.enqueue(payoutId);
    const page = await dashboard.read('/payouts?range=day');
    for (const path of ['/payouts/q-1', '/batches'])
      expect(await dashboard.read(path)).toMatch(/<main\s[^>]*data-live=/);
    for (const part of [
      ...[/No payout needs an operator\./, /<h3>Backlog<\/h3>\s*<b>3 queued<\/b>/, /The last 24 hours/],
      ...[/<desc id="backlog-desc">[^<]* 3 now\.<\/desc>/, /<p class="figure"><b>3<\/b> queued<\/p>/],
      ...[/the sums are of 1,216 payouts/, /<noscript><meta http-equiv="refresh" content="5" \/><\/noscript>/],
      /<main\s[^>]*data-live="1000"/,
    ])
      expect(page).toMatch(part);
    expect((await dashboard.ask('/live.js')).headers.get('content-type')).toContain('javascript');
  });

  it('says why a ledger of a newer format is not shown', async () => {
    await account.redis.hset(account.connection.keys.ledger, 'format', '5');
    const response = await dashboard.ask('/payouts');
    expect(response.status).toBe(500);
    expect(await response.text()).toMatch(/Ledger of another version[^]*has format 5; /);
  });

  it.each(['gone', 'hung'])('responds 503 within a second while Redis is %s, and recovers by itself', async (kind) => {
    const redis = await startLocalRedis();
    const onIt = await openDashboard(account, { redisUrl: redis.url });
    let again: Awaited<ReturnType<typeof startLocalRedis>> | undefined;
    try {
      expect((await onIt.ask('/payouts')).status).toBe(200);
      if (kind === 'gone') await redis.stop();
      else process.kill(redis.pid, 'SIGSTOP');
      for (const path of ['/payouts', '/payouts/x', '/payouts?state=queued', '/payouts.csv?state=queued']) {
        const startedAt = performance.now();
        const response = await onIt.ask(path);
        expect([path, response.status]).toEqual([path, 503]);
        expect(performance.now() - startedAt).toBeLessThan(1_300);
        expect(response.headers.get('retry-after')).toBe('5');
        expect(await response.text()).toContain('Redis does not respond');
      }
      expect((await onIt.ask('/board/')).status).toBe(200);
      expect((await onIt.ask('/board/api/queues')).status).toBe(503);
      if (kind === 'gone') again = await startLocalRedis({ port: redis.port });
      else process.kill(redis.pid, 'SIGCONT');
      await until('recovered', async () => (await onIt.ask('/payouts')).status === 200, 10_000);
    } finally {
      if (kind === 'hung') process.kill(redis.pid, 'SIGCONT');
      await onIt.close();
      await again?.stop();
      await redis.stop();
    }
  });
});

describe('the pictures', () => {
  const NOW = Date.parse('2030-01-01T12:30:20Z');
  const minute = (age: number, given: Partial<MinuteStatistics> = {}): MinuteStatistics => ({
    ...{ at: Math.floor(NOW / 60_000) * 60_000 - age * 60_000, sent: 58, smallestGapMs: 1_012, largestGapMs: 2_500 },
    ...{ completed: 0, rejected: 0, unknown: 0, backlog: 10, ...given },
  });
  const draw = (...minutes: readonly MinuteStatistics[]): string =>
    picturesSection({ minutes }, minutes.at(-1)?.backlog ?? 0, 'hour', '/payouts', NOW).text;

  it('have a description and a table, and mark a gap below a second', () => {
    const page = draw(minute(3), minute(2), minute(0));
    expect(page.match(/<svg\s+role="img"/g)).toHaveLength(3);
    expect(page).toMatch(
      /<desc id="sends-desc">174 sends in the last hour, 58 a minute at most\.[^]*1\.012 s at least/,
    );
    expect(page).toMatch(/<th scope="row">12:25<\/th>\s*<td class="number">\s*116\s*<\/td>/);
    expect(page).not.toMatch(/style=|NaN|undefined|bar tone-bad/);
    expect(draw()).toContain('0 sends in the last hour');
    expect(draw()).not.toMatch(/NaN|Infinity|undefined/);
    expect(draw(minute(1, { smallestGapMs: 950 }))).toContain('class="bar tone-bad"');
  });
});
