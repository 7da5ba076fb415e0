import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

let account: AccountCli;

beforeEach(() => {
  account = openAccountCli();
});

afterEach(async () => {
  await account.close();
});

describe('payouts events', () => {
  it('shows what happened, from the beginning, a time or an event on', async () => {
    await account.enqueue('p-1');
    await account.run('pause', '--reason', 'maintenance', '--by', 'ann');
    await account.run('cancel', 'p-1', '--by', 'ann', '--reason', 'paid by hand');
    const text = await account.runProcess('events');
    expect(text.stdout).toMatch(
      / p-1 {2}queued\n.* account {2}paused {2}by ann: maintenance\n.* p-1 {2}queued → cancelled {2}by ann: paid by hand\n$/,
    );
    const { stdout } = await account.run('events', '--json');
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { eventId: string });
    expect(events).toMatchObject([
      { type: 'state', payoutId: 'p-1', to: 'queued' },
      { type: 'paused', by: 'ann', reason: 'maintenance' },
      { type: 'state', payoutId: 'p-1', from: 'queued', to: 'cancelled' },
    ]);
    const rest = await account.run('events', '--json', '--since', events[1]?.eventId ?? '');
    expect(JSON.parse(rest.stdout)).toEqual(events[2]);
    const future = new Date(Date.now() + 60_000).toISOString();
    expect(await account.run('events', '--since', future)).toMatchObject({ code: 0, stdout: '' });
    expect(await account.run('events', '--since', 'yesterday')).toMatchObject({ code: 2 });
  });

  it('follows what happens next until it is stopped', async () => {
    await account.enqueue('p-1');
    const following = account.start('events', '--follow', '--since', '2020-01-01T00:00:00Z');
    await following.waitForOutput(/p-1/);
    await account.enqueue('p-2');
    await following.waitForOutput(/p-2 {2}queued/);
    following.kill('SIGTERM');
    expect(await following.result).toMatchObject({ code: 0, signal: null, stderr: '' });
  });
});
