import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

let first: SampleAccount;
let second: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  first = await openSampleAccount();
  second = await openSampleAccount();
  await first.enqueue('of-the-first');
  await second.enqueue('of-the-second');
  dashboard = await openDashboard({ ...first, platformId: [first.platformId, second.platformId] });
});

afterAll(async () => {
  await dashboard.close();
  await first.close();
  await second.close();
});

describe('a dashboard of several accounts', () => {
  it.each(['/', '/payouts'])('leads from %s to the overview over all', async (path) => {
    const response = await dashboard.ask(path);
    expect([response.status, response.headers.get('location')]).toEqual([302, '/accounts']);
    const page = await dashboard.read('/accounts');
    for (const { platformId } of [first, second]) expect(page).toContain(`href="/accounts/${platformId}/payouts"`);
  });

  it('shows each account its own payouts only, with a switch to the other', async () => {
    const page = await dashboard.read(`/accounts/${first.platformId}/payouts?state=queued`);
    expect(page).toContain(`href="/accounts/${first.platformId}/payouts/of-the-first"`);
    expect(page).not.toContain('of-the-second');
    expect(page).toContain(`href="/accounts/${second.platformId}/payouts"`);
    const search = await dashboard.ask(`/accounts/${second.platformId}/payouts?q=of-the-second`);
    expect(search.headers.get('location')).toBe(`/accounts/${second.platformId}/payouts/of-the-second`);
    expect((await dashboard.ask(`/accounts/${second.platformId}/payouts/of-the-first`)).status).toBe(404);
  });

  it('has a board for each, with its files', async () => {
    const board = `/accounts/${second.platformId}/board`;
    expect(await dashboard.read(`${board}/`)).toContain(`<base href="${board}/"`);
    const logo = await dashboard.ask(`${board}/static/images/logo.svg`);
    expect([logo.status, logo.headers.get('cache-control')]).not.toContain('no-store');
    expect((await dashboard.ask(`${board}/api/queues/pause`, { method: 'PUT' })).status).toBe(405);
  });

  it('responds 404 to accounts that it does not show', async () => {
    expect((await dashboard.ask('/accounts/1/payouts')).status).toBe(404);
    expect((await dashboard.ask('/style.css')).status).toBe(200);
  });

  it('refuses an account twice, or none', async () => {
    await expect(openDashboard({ ...first, platformId: [7, 7] })).rejects.toThrow(
      'at least one account, and each once',
    );
    await expect(openDashboard({ ...first, platformId: [] })).rejects.toThrow('at least one account, and each once');
  });
});
