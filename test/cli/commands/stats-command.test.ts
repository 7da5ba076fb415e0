import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts stats', () => {
  it('prints the fields that programs rely on', async () => {
    await account.enqueue('p-1');
    const { code, stdout } = await account.runProcess('stats', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      queued: 1,
      sending: 0,
      in_progress: 0,
      completed: 0,
      failed: 0,
      rejected: 0,
      unknown: 0,
      cancelled: 0,
      paused: false,
      pausedReason: null,
      sender: null,
    });
  });

  it('shows counts, pause and sender as text', async () => {
    await account.enqueue('p-1');
    await account.run('pause', '--reason', 'maintenance', '--by', 'ann');
    const { stdout } = await account.run('stats');
    expect(stdout).toMatch(
      /^Account \d+: Paused\npaused: maintenance\. .*\n {2}payouts resume --account \d+ --reason WHY\n/,
    );
    expect(stdout).toMatch(/paused by +ann, .* UTC\n +sender +none: no process holds the lease\n/);
    expect(stdout).toMatch(/ {3}queued +1 {2}oldest for \d+ s/);
    expect(await account.run('stats', '--batch', 'none')).toMatchObject({ code: 3 });
  });

  it('shows rate, expected end, balance and sums by currency', async () => {
    await account.enqueue('p-1');
    const { connection } = account.ledger;
    const { redis, keys } = connection;
    const now = Date.now();
    const minute = Math.floor(now / 60_000);
    const sum = (amount: string, count = 1) => ({ paymentId: 6, count, amount });
    await redis.hset(keys.statistics, {
      [`hour:${Math.floor(minute / 60)}`]: JSON.stringify([
        [minute - 3, 0, null, null, 0, 0, 0, 90],
        [minute - 2, 50, 1_010, 2_000, 9, 0, 0, 40],
        [minute - 1, 40, 1_010, 2_000, 9, 0, 0, 1],
      ]),
      sums: JSON.stringify({ queued: [sum('100.5')], completed: [sum('77', 12)] }),
      today: JSON.stringify({ day: Math.floor(now / 86_400_000), sent: [sum('12.25', 3)] }),
      lastSendAt: String(now - 5_000),
      pace: '[1100,1100,3600000,1100]',
      position: `"${now}-0"`,
    });
    await redis.hset(keys.gateway, {
      currencies: JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }], currenciesAt: now }),
      balance: JSON.stringify({ balance: [{ paymentId: 6, amount: '99' }], balanceAt: now - 65_000 }),
      failure: JSON.stringify({ failure: '/balance: no route', failureAt: now }),
    });
    const stopped = (await account.run('stats')).stdout;
    expect(stopped).toMatch(/backlog +1 queued, no estimate of its end: no worker sends/);
    expect(stopped).toMatch(/last send +\d+ s ago/);
    expect(stopped).toMatch(/balance +99 USDT \(TRC-20\), 100\.5 queued: NOT ENOUGH \(1 min ago\)/);
    expect(stopped).toMatch(/query failed \d s ago: \/balance: no route/);
    expect(stopped).toMatch(/By currency \(events up to \S+ [\d:]{8} UTC\)\n +queued +1 +100\.5 USDT \(TRC-20\)/);
    expect(stopped).toMatch(/Today \(UTC\)\n +sent +3 +12\.25 USDT \(TRC-20\)/);

    await redis.hset(keys.sender, { owner: 'host:1:abc', epoch: 4, beat: 17, released: 0 });
    const beating = setInterval(() => void redis.hincrby(keys.sender, 'beat', 1), 300);
    try {
      expect((await account.run('stats')).stdout).toMatch(/backlog +1 queued, sent in about 1 s \(.* UTC\)\n/);
    } finally {
      clearInterval(beating);
    }
    const json = JSON.parse((await account.run('stats', '--json')).stdout) as Record<string, unknown>;
    expect(json).toMatchObject({
      balance: [{ currency: 'USDT (TRC-20)', balance: '99', queued: '100.5', isEnough: false }],
      gatewayFailure: '/balance: no route',
      sums: { completed: [{ count: 12, amount: '77' }] },
      today: { sent: [{ amount: '12.25' }], failed: [] },
    });
    expect(json['ratePerMinute']).toBeGreaterThan(25);
    await account.run('pause', '--reason', 'maintenance', '--by', 'ann');
    expect((await account.run('stats')).stdout).toMatch(
      /backlog +1 queued, no estimate of its end: the account is paused\n/,
    );
  });

  it('calls a sender alive only when its heartbeat rises', async () => {
    const { redis, keys } = account.ledger.connection;
    const key = keys.sender;
    await redis.hset(key, { owner: 'host:1:abc', epoch: 4, beat: 17, released: 0 });
    expect((await account.run('stats')).stdout).toMatch(
      /: Sender without heartbeat\nNo heartbeat for \d s: it has ended or hangs.*\n[\s\S]*sender +host:1:abc, no heartbeat\n/,
    );
    const beating = setInterval(() => void redis.hincrby(key, 'beat', 1), 300);
    try {
      expect((await account.run('stats')).stdout).toMatch(/sender +host:1:abc, alive\n/);
    } finally {
      clearInterval(beating);
    }
  });
});
