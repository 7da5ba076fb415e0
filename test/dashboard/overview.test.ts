import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PICTURE_SLOTS, picturesSection, toTimeSlots } from '../../src/dashboard/overview/charts.js';
import type { MinuteStatistics } from '../../src/ledger/reads/statistics.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { until } from '../support/until.js';
import { SENDER, writeSampleStatistics, writeSampleWorker } from './support/live-account.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

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

async function untilText(text: string | RegExp): Promise<void> {
  let shown = '';
  const isShown = async (): Promise<boolean> => {
    shown = await dashboard.readText('/payouts');
    return typeof text === 'string' ? shown.includes(text) : text.test(shown);
  };
  await until(() => `${String(text)}, but: ${shown}`, isShown, 5_000);
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

const commandsOf = (page: string): string => page.replace(/<\/?span>/g, '');

describe('the overview', () => {
  it('is the first page, and shows the counts, the sender, and what needs an operator', async () => {
    const response = await dashboard.ask('/');
    expect([response.status, response.headers.get('location')]).toEqual([302, '/payouts']);
    await fillAccount(account);
    const page = await dashboard.read('/payouts');
    const tiles = [...page.matchAll(/<b>(\d+)<\/b>\s*<span>([a-z ]+)<\/span>/g)];
    expect(tiles.map(([, count, state]) => `${count} ${state}`)).toEqual([
      ...['3 queued', '1 held', '1 sending', '1 in progress', '1 completed', '1 failed', '1 rejected', '1 unknown'],
      '1 cancelled',
    ]);
    const text = await dashboard.readText('/payouts');
    for (const part of [
      ...['no response within 60000 ms', 'Insufficient balance', 'the gateway reported a failure', HOLD.message],
      ...['worker-a:4711', '1 unknown the oldest for 2 min', '1 rejected the oldest for 1 min'],
      ...['1 failed the last 3 min ago', '1 held the oldest for '],
    ])
      expect(text).toContain(part);
  });

  it('says what stops the account before everything else, and on every other page, too', async () => {
    await account.ledger.pause('ann', 'maintenance');
    const page = await dashboard.read('/payouts');
    expect(page).toMatch(new RegExp(`<title>Paused · Payouts ${account.platformId}</title>`));
    expect(page.indexOf('<bdi>maintenance</bdi>')).toBeLessThan(page.indexOf('class="figures"'));
    expect(page).toMatch(/<bdi>ann<\/bdi>, since\s+<time class="utc" datetime="2030-01-01T00:0/);
    expect(commandsOf(page)).toContain(`payouts resume --account ${account.platformId} --reason WHY`);
    const other = await dashboard.read('/payouts?state=queued');
    expect(other).toMatch(/<title>Paused · [^]*<aside class="alarm" aria-label="Alarm"><a href="\/payouts">Paused</);
  });

  it('shows a sender as alive only while its heartbeat rises', async () => {
    await whileAlive(async () => untilText('Idle Nothing waits to be sent now.'));
    await fillAccount(account);
    await untilText('Sender without heartbeat');
    const startedAt = performance.now();
    expect(await dashboard.read('/payouts')).toMatch(/class="pulse bad".*\n.*Sender without heartbeat<\/h1>/);
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    await whileAlive(async () => untilText(', alive (epoch 1)'));
    await account.redis.hset(account.connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
    await writeSampleWorker(account, SENDER, { role: 'sender' });
    await untilText(/Sender without heartbeat.*Last attempt no result is known/);
    await account.redis.del(account.connection.keys.sender);
    await untilText('no process holds the lease');
  });

  it('does not say that nothing failed, nor when it tries again, under a block', async () => {
    await account.redis.hset(account.connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
    for (const report of [{ role: 'sender' }, { role: 'refused', reason: 'its journal is damaged' }] as const) {
      await writeSampleWorker(account, SENDER, report);
      await untilText(/heartbeat|refuses/);
      expect(await dashboard.readText('/payouts')).not.toContain('Last attempt');
    }
    const failure = { lastError: 'No connection', nextRetryAt: account.clock.wallNow() };
    await writeSampleWorker(account, SENDER, { role: 'sender', ...failure });
    await account.ledger.pause('ann', 'maintenance');
    await untilText(/Paused .*Last attempt failed: No connection/);
    expect(await dashboard.readText('/payouts')).not.toContain('next try');
  });

  it('shows every worker with its role and why', async () => {
    const lastError = { lastError: 'No connection', lastErrorCode: 'GATEWAY_UNAVAILABLE', failedAttempts: 3 };
    const now = Number((await account.redis.time())[0]) * 1_000;
    await writeSampleWorker(account, 'worker-a:4711', { role: 'sender', ...lastError });
    await writeSampleWorker(account, 'worker-b:5', { role: 'refused', reason: 'its journal is damaged' });
    await writeSampleWorker(account, 'worker-c:6', { at: now - 600_000 });
    await account.redis.hset(account.connection.keys.sender, 'owner', 'worker-a:4711:abc');
    const text = await dashboard.readText('/diagnostics');
    expect(text).toContain('worker-b:5 refused its journal is damaged');
    expect(text).toMatch(/worker-c:6 silent no sign of life for 10 min/);
    await whileAlive(async () => untilText(/Gateway down The last 3 attempts .*: No connection/));
  });

  it('has one count of the backlog in its card, its picture and its strip, and keeps itself up to date', async () => {
    await writeSampleStatistics(account);
    for (const payoutId of ['q-1', 'q-2', 'q-3']) await account.enqueue(payoutId);
    const page = await dashboard.read('/payouts?range=day');
    for (const part of [
      /No payout needs an operator\./,
      /<h3>Backlog<\/h3>\s*<b>3 queued<\/b>/,
      /<desc id="backlog-desc">[^<]* 3 now\.<\/desc>/,
      /<p class="figure"><b>3<\/b> queued<\/p>/,
      /<b>3<\/b> <span>queued<\/span>/,
      /the sums are of 1,216 payouts/,
      /The last 24 hours/,
      /<noscript><meta http-equiv="refresh" content="5" \/><\/noscript>/,
      /<main\s[^>]*data-live="1000"/,
    ])
      expect(page).toMatch(part);
    expect((await dashboard.ask('/live.js')).headers.get('content-type')).toContain('javascript');
  });

  it('shows five payouts that need an operator, with links to all, and what is missing of the balance', async () => {
    for (let index = 0; index < 4; index += 1) {
      await account.sendAs(`u-${index}`, { kind: 'unknown', reason: 'no response' });
      await account.sendAs(`r-${index}`, { kind: 'rejected', message: 'Invalid address' });
    }
    const reconciliation = { balances: [{ amount: '5', drop: { amount: '1250.5', since: 1, at: 2 } }] };
    await account.redis.hset(account.connection.keys.gateway, 'reconciliation', JSON.stringify({ reconciliation }));
    expect(await dashboard.readIds('/payouts')).toEqual([['u-0', 'u-1', 'u-2', 'u-3', 'r-0']]);
    const page = await dashboard.read('/payouts');
    expect(page).toMatch(/<a href="\/payouts\?state=unknown"\s*>all 4 unknown</);
    expect(page).toMatch(/<a href="\/payouts\?state=rejected"\s*>all 4 rejected</);
    expect(page).toContain('1,250.5 USD is missing');
    expect(commandsOf(page)).toContain(`payouts reconcile --account ${account.platformId}`);
  });

  it.each(['/payouts', '/payouts?state=queued'])(
    '%s says why a ledger of a newer format is not shown',
    async (path) => {
      await account.redis.hset(account.connection.keys.ledger, 'format', '5');
      const response = await dashboard.ask(path);
      expect(response.status).toBe(500);
      expect(await response.text()).toMatch(/Ledger of another version[^]*has format 5; /);
    },
  );

  it.each(['gone', 'hung'])('responds 503 within a second while Redis is %s, and recovers by itself', async (kind) => {
    const redis = await startLocalRedis();
    const onIt = await openDashboard(account, { redisUrl: redis.url });
    let again: Awaited<ReturnType<typeof startLocalRedis>> | undefined;
    try {
      expect((await onIt.ask('/payouts')).status).toBe(200);
      if (kind === 'gone') await redis.stop();
      else process.kill(redis.pid, 'SIGSTOP');
      if (kind === 'gone') expect((await onIt.ask('/payouts.csv?state=queued')).status).toBe(503);
      for (const path of ['/payouts', '/payouts/x', '/payouts?q=x', '/payouts?state=queued']) {
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

  it('have as many slots as asked for, and carry the backlog on where nothing happened', () => {
    const slots = toTimeSlots([minute(90, { backlog: 7 }), minute(2, { backlog: 40 })], PICTURE_SLOTS.hour, NOW);
    expect(slots).toHaveLength(60);
    expect([slots[0], slots.at(-3), slots.at(-1)].map((slot) => [slot?.backlog, slot?.sent])).toEqual([
      [7, 0],
      [40, 58],
      [40, 0],
    ]);
  });

  it('of a day sum up their minutes, with the smallest and the largest gap', () => {
    const minutes = [minute(1, { smallestGapMs: 1_020, largestGapMs: 9_000 }), minute(0)];
    expect(toTimeSlots(minutes, PICTURE_SLOTS.day, NOW).slice(-2)).toMatchObject([
      { sent: 58, largestGapMs: 9_000 },
      { sent: 58, smallestGapMs: 1_012 },
    ]);
  });

  it('have a name, a description, a table that says the same, and no inline style', () => {
    const page = draw(minute(3), minute(2), minute(0));
    expect(page.match(/<svg\s+role="img"/g)).toHaveLength(3);
    expect(page).toMatch(
      /<desc id="sends-desc">174 sends in the last hour, 58 a minute at most\.[^]*1\.012 s at least/,
    );
    expect(page).toMatch(/<th scope="row">12:25<\/th>\s*<td class="number">\s*116\s*<\/td>/);
    expect(page).not.toMatch(/style=|NaN|undefined/);
    expect(draw()).toContain('0 sends in the last hour');
    expect(draw()).not.toMatch(/NaN|Infinity|undefined/);
  });

  it('mark a gap below a second', () => {
    expect(draw(minute(1, { smallestGapMs: 950 }))).toContain('class="bar tone-bad"');
    expect(draw(minute(1))).not.toContain('bar tone-bad');
  });
});
