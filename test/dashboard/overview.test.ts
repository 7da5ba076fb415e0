import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
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

/** The text between tags, in one line. */
async function readText(path = '/payouts'): Promise<string> {
  return (await dashboard.read(path)).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}

describe('the overview', () => {
  it('is the first page of the dashboard', async () => {
    const response = await dashboard.ask('/');
    expect([response.status, response.headers.get('location')]).toEqual([302, '/payouts']);
  });

  it('shows the counts, the sender, and what needs an operator, with age and last message', async () => {
    await fillAccount(account);
    const page = await dashboard.read('/payouts');
    const tiles = [...page.matchAll(/<b>(\d+)<\/b>\s*<span>([a-z ]+)<\/span>/g)].map(
      ([, count, state]) => `${state}: ${count}`,
    );
    expect(tiles).toEqual([
      'queued: 3',
      'held: 1',
      'sending: 1',
      'in progress: 1',
      'completed: 1',
      'failed: 1',
      'rejected: 1',
      'unknown: 1',
      'cancelled: 1',
    ]);
    for (const message of [
      'no response within 60000 ms',
      'Insufficient balance',
      'the gateway reported a failure',
      HOLD.message,
    ]) {
      expect(page).toContain(message);
    }
    const text = await readText();
    expect(text).toContain('worker-a:4711');
    expect(text).toContain('1 unknown the oldest for 2 min');
    expect(text).toContain('1 rejected the oldest for 1 min');
    expect(text).toContain('1 failed the last 3 min ago');
    expect(text).toMatch(/1 held the oldest for \d+ s remove the cause, then release or cancel each/);
  });

  it('says what stops the account before everything else, and in the title', async () => {
    await fillAccount(account);
    await account.ledger.pause('ann', 'maintenance');
    const page = await dashboard.read('/payouts');
    expect(page).toMatch(new RegExp(`<title>Paused · Payouts ${account.platformId}</title>`));
    expect(page.indexOf('<bdi>maintenance</bdi>')).toBeLessThan(page.indexOf('class="figures"'));
    expect(page).toMatch(/<bdi>ann<\/bdi>, since\s+<time class="utc" datetime="2030-01-01T00:0/);
    expect(page.replace(/<\/?span>/g, '')).toContain(`payouts resume --account ${account.platformId} --reason WHY`);
  });

  it('says on every other page, too, that nothing is sent', async () => {
    await account.ledger.pause('ann', 'maintenance');
    const page = await dashboard.read('/payouts?state=queued');
    expect(page).toMatch(/<title>Paused · /);
    expect(page).toContain('<aside class="alarm" aria-label="Alarm"><a href="/payouts">Paused</a></aside>');
  });

  it('shows a sender as alive only while its heartbeat rises', async () => {
    await fillAccount(account);
    const startedAt = performance.now();
    expect(await dashboard.read('/payouts')).toMatch(/class="pulse bad".*\n.*Sender without heartbeat<\/h1>/);
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    const beating = setInterval(() => void account.redis.hincrby(account.connection.keys.sender, 'beat', 1), 300);
    try {
      await until('alive', async () => /class="pulse (good|warn)"/.test(await dashboard.read('/payouts')), 5_000);
      expect(await readText()).toContain(', alive (epoch 1)');
    } finally {
      clearInterval(beating);
    }
    await until('silent', async () => (await readText()).includes('Sender without heartbeat'), 5_000);
  });

  it('says that nothing waits rather than a pace of zero, and claims no attempt of a dead sender', async () => {
    const { sender } = account.connection.keys;
    const beating = setInterval(() => void account.redis.hincrby(sender, 'beat', 1), 300);
    try {
      await until('idle', async () => (await readText()).includes('Idle Nothing waits to be sent now.'), 5_000);
    } finally {
      clearInterval(beating);
    }
    await fillAccount(account);
    await account.redis.hset(account.connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
    await writeSampleWorker(account, SENDER, { role: 'sender' });
    await until('silent', async () => (await readText()).includes('Sender without heartbeat'), 5_000);
    expect(await readText()).toContain('Last attempt no result is known');
  });

  it('does not say that nothing failed, nor when it tries again, under a block', async () => {
    await account.redis.hset(account.connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
    for (const report of [{ role: 'sender' }, { role: 'refused', reason: 'its journal is damaged' }] as const) {
      await writeSampleWorker(account, SENDER, report);
      await until('the sender is stopped', async () => /heartbeat|refuses/.test(await readText()), 5_000);
      expect(await readText()).not.toContain('Last attempt');
    }
    const failure = { lastError: 'No connection', nextRetryAt: account.clock.wallNow() };
    await writeSampleWorker(account, SENDER, { role: 'sender', ...failure });
    await account.ledger.pause('ann', 'maintenance');
    await until(
      'both are seen',
      async () => /Paused .*Last attempt failed: No connection/.test(await readText()),
      5_000,
    );
    expect(await readText()).not.toContain('next try');
  });

  it('shows that no worker runs, and that no payout needs an operator', async () => {
    await account.redis.del(account.connection.keys.sender);
    const text = await readText();
    expect(text).toContain('No worker process holds the sender lease');
    expect(text).toContain('No payout needs an operator.');
  });

  it('shows every worker with its role and why', async () => {
    const { redis, connection } = account;
    const [seconds] = await redis.time();
    const common = { at: Number(seconds) * 1_000, startedAt: Number(seconds) * 1_000 - 60_000, version: '1.2.3' };
    const reports = {
      'worker-a:4711': {
        ...common,
        role: 'sender',
        lastError: 'No connection to the gateway',
        lastErrorCode: 'GATEWAY_UNAVAILABLE',
        failedAttempts: 3,
      },
      'worker-b:5': { ...common, role: 'refused', reason: 'its journal is damaged' },
      'worker-c:6': { ...common, role: 'standby', at: common.at - 600_000 },
    };
    for (const [name, report] of Object.entries(reports)) {
      await redis.hset(connection.keys.workers, name, JSON.stringify(report));
    }
    await redis.hset(connection.keys.sender, 'owner', 'worker-a:4711:abc');
    const text = await readText('/diagnostics');
    expect(text).toContain('worker-b:5 refused its journal is damaged');
    expect(text).toMatch(/worker-c:6 silent no sign of life for 10 min/);
    const headline = 'Gateway down The last 3 attempts ended before anything was sent: No connection to the gateway.';
    const beating = setInterval(() => void redis.hincrby(connection.keys.sender, 'beat', 1), 300);
    try {
      await until('the pulse names the cause', async () => (await readText()).includes(headline), 5_000);
    } finally {
      clearInterval(beating);
    }
  });

  it('has one count of the backlog in its card, its picture and its strip, and says that the sums are older', async () => {
    await writeSampleStatistics(account);
    for (const payoutId of ['q-1', 'q-2', 'q-3']) await account.enqueue(payoutId);
    const page = await dashboard.read('/payouts');
    expect(page).toMatch(/<h3>Backlog<\/h3>\s*<b>3 queued<\/b>/);
    expect(page).toMatch(/<desc id="backlog-desc">[^<]* 3 now\.<\/desc>/);
    expect(page).toMatch(/<p class="figure"><b>3<\/b> queued<\/p>/);
    expect(page).toMatch(/<b>3<\/b> <span>queued<\/span>/);
    expect(page).toContain('the sums are of 1,216 payouts');
  });

  it('shows five payouts that need an operator, with links to all, and what is missing of the balance', async () => {
    for (let index = 0; index < 4; index += 1) {
      await account.sendAs(`u-${index}`, { kind: 'unknown', reason: 'no response' });
      await account.sendAs(`r-${index}`, { kind: 'rejected', message: 'Invalid address' });
    }
    const drop = { amount: '1250.5', since: 1, at: 2 };
    const reconciliation = { balances: [{ amount: '5', drop }] };
    await account.redis.hset(account.connection.keys.gateway, 'reconciliation', JSON.stringify({ reconciliation }));
    const page = await dashboard.read('/payouts');
    const listed = [...page.matchAll(/<th scope="row" class="id"><a href="\/payouts\/([^"]+)"/g)].map(([, id]) => id);
    expect(listed).toEqual(['u-0', 'u-1', 'u-2', 'u-3', 'r-0']);
    expect(page).toMatch(/<a href="\/payouts\?state=unknown"\s*>all 4 unknown</);
    expect(page).toMatch(/<a href="\/payouts\?state=rejected"\s*>all 4 rejected</);
    expect(page).toContain('1,250.5 USD is missing: the balance fell, and no payout explains it.');
    expect(page.replace(/<\/?span>/g, '')).toContain(`payouts reconcile --account ${account.platformId}`);
  });

  it('keeps itself up to date, without a script as well', async () => {
    const page = await dashboard.read('/payouts?range=day');
    expect(page).toContain('<noscript><meta http-equiv="refresh" content="5" /></noscript>');
    expect(page).toMatch(/<main\s[^>]*data-live="1000"/);
    expect((await dashboard.ask('/live.js')).headers.get('content-type')).toContain('javascript');
    expect(page).toContain('The last 24 hours');
  });
});

describe('a ledger of a newer format', () => {
  it('is not shown, and every page says why', async () => {
    await account.redis.hset(account.connection.keys.ledger, 'format', '5');
    for (const path of ['/payouts', '/payouts?state=queued']) {
      const response = await dashboard.ask(path);
      expect(response.status).toBe(500);
      expect(await response.text()).toMatch(
        /Ledger of another version[^]*has format 5; [^]*Run the version that wrote it/,
      );
    }
  });
});

describe('when Redis is unavailable', () => {
  it.each(['gone', 'hung'] as const)('and %s, responds 503 within a second, and recovers by itself', async (kind) => {
    const redis = await startLocalRedis();
    const onIt = await openDashboard(account, { redisUrl: redis.url });
    let again: Awaited<ReturnType<typeof startLocalRedis>> | undefined;
    try {
      expect((await onIt.ask('/payouts')).status).toBe(200);
      if (kind === 'gone') await redis.stop();
      else process.kill(redis.pid, 'SIGSTOP');
      for (const path of ['/payouts', '/payouts/x', '/payouts?q=x', '/payouts?state=queued']) {
        const startedAt = performance.now();
        const response = await onIt.ask(path);
        expect(response.status).toBe(503);
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
