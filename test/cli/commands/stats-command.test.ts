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
      /sending +STOPPED: paused: maintenance \(by ann, .* UTC\)\. .* `payouts resume --account \d+ --reason WHY`/,
    );
    expect(stdout).toMatch(/sender +nobody/);
    expect(stdout).toMatch(/ {3}queued +1 {2}oldest for \d+ s/);
    expect(await account.run('stats', '--batch', 'none')).toMatchObject({ code: 3 });
  });

  it('calls a sender alive only when its heartbeat rises', async () => {
    const { redis, keys } = account.ledger.connection;
    const key = keys.sender;
    await redis.hset(key, { owner: 'host:1:abc', epoch: 4, beat: 17, released: 0 });
    expect((await account.run('stats')).stdout).toMatch(
      /sender +host:1:abc \(epoch 4\): NO HEARTBEAT for 2\.\d s\. It has ended or hangs/,
    );
    const beating = setInterval(() => void redis.hincrby(key, 'beat', 1), 300);
    try {
      expect((await account.run('stats')).stdout).toMatch(/sender +host:1:abc \(epoch 4\), alive\n/);
    } finally {
      clearInterval(beating);
    }
  });
});
