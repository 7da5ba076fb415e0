import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createDashboard } from '../../src/dashboard/index.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

const INJECTION = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;`;
const ESCAPED = '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=alert(2)&gt;&amp;amp;';

/** The one script that a page may load is ours. */
function withoutOwnScript(page: string): string {
  return page.replace(/<script src="\/(page|live)\.js" defer><\/script>/g, '');
}

let account: SampleAccount;
let dashboard: RunningDashboard;

async function open(): Promise<void> {
  account = await openSampleAccount();
  dashboard = await openDashboard(account);
}

async function close(): Promise<void> {
  await dashboard.close();
  await account.close();
}

describe('a list of one state', () => {
  beforeAll(open);
  afterAll(close);

  it('lists all payouts page by page, oldest first', async () => {
    const payoutIds = Array.from({ length: 120 }, (_, index) => `q-${index}`);
    for (const payoutId of payoutIds) await account.enqueue(payoutId);
    const seen: string[] = [];
    let path: string | undefined = '/payouts?state=queued';
    let pages = 0;
    while (path !== undefined) {
      const page = await dashboard.read(path);
      seen.push(
        ...[...page.matchAll(/<th scope="row" class="id">\s*<a href="\/payouts\/([^"]+)"/g)].map(
          ([, payoutId = '']) => payoutId,
        ),
      );
      path = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
      pages += 1;
    }
    expect(seen).toEqual(payoutIds);
    expect(pages).toBe(3);
  });

  it('lists final payouts newest first', async () => {
    for (const payoutId of ['f-1', 'f-2']) {
      await account.sendAs(payoutId, { kind: 'accepted', txhash: payoutId });
      await account.ledger.change({ payoutId, from: 'in_progress', to: 'failed' });
    }
    const page = await dashboard.read('/payouts?state=failed');
    expect(page.indexOf('f-2')).toBeLessThan(page.indexOf('f-1'));
    expect(page.indexOf('f-2')).toBeGreaterThan(0);
  });

  it.each(['/payouts?state=paid', '/payouts?state=queued&after=x', '/payouts?state=queued&after=1&after=2'])(
    'responds 404 to %s',
    async (path) => {
      expect((await dashboard.ask(path)).status).toBe(404);
    },
  );
});

describe('one payout', () => {
  beforeAll(open);
  afterAll(close);

  it('shows all its data, its history and the commands that an operator can run', async () => {
    await account.sendAs(
      'rich',
      { kind: 'rejected', message: 'Insufficient balance' },
      {
        amount: '9000',
        reference: 'Affiliates',
        batch: 'september',
        priority: 3,
        metadata: { invoice: 77 },
      },
    );
    const page = (await dashboard.read('/payouts/rich')).replace(/<\/?span>/g, '');
    for (const text of [
      '9,000',
      'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
      'Affiliates',
      'september',
      '&quot;invoice&quot;: 77',
    ]) {
      expect(page).toContain(text);
    }
    expect([...page.matchAll(/<li class="(\w+) tone-\w+">/g)].map(([, state]) => state)).toEqual([
      'queued',
      'sending',
      'rejected',
    ]);
    expect(page).toContain(`payouts retry --account ${account.platformId} rich --reason WHY`);
  });

  it('says why a payout is held, beside what was said of an earlier attempt, and what to do', async () => {
    await account.sendAs('kept', { kind: 'rejected', message: 'Insufficient balance' }, { batch: 'september' });
    await account.ledger.change({ payoutId: 'kept', from: 'rejected', to: 'queued', by: 'ann', reason: 'topped up' });
    await account.sender.holdPayout('kept', 1, HOLD);
    const page = (await dashboard.read('/payouts/kept')).replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    expect(page).toContain('Why it is held the signature expired signature: expired');
    expect(page).toContain('Last message Insufficient balance');
    expect(page).toContain(`payouts release --account ${account.platformId} kept --reason WHY`);
    expect(page).toContain(`payouts cancel --account ${account.platformId} kept --reason WHY`);
    const list = await dashboard.read('/payouts?state=held');
    expect(list).toContain('the signature expired');
    expect(list).not.toContain('Insufficient balance');
    const batch = await dashboard.read('/payouts?batch=september');
    expect(batch).toContain('the signature expired');
  });

  it.each(['a/b', 'a:b', 'a+b', 'a=b', '/', '//', '.', '..', '../x', 'a/../b', '-x', 'a,b'])(
    'has a link and is found by search with the id %s',
    async (payoutId) => {
      await account.enqueue(payoutId, { reference: `the one called ${payoutId}` });
      const search = await dashboard.ask(`/payouts?q=${encodeURIComponent(payoutId)}`);
      expect(search.status).toBe(302);
      const page = await dashboard.read(search.headers.get('location') ?? '');
      expect(page).toContain(`the one called ${payoutId}`);
      const list = await dashboard.read('/payouts?state=queued');
      expect(list).toContain(`href="${search.headers.get('location') ?? ''}"`);
    },
  );

  it('is found by its txhash', async () => {
    await account.sendAs('sent', { kind: 'accepted', txhash: '0xABC/1' });
    const found = await dashboard.ask(`/payouts?q=%20${encodeURIComponent('0xABC/1')}%20`);
    expect(found.headers.get('location')).toBe('/payouts/sent');
  });

  it('is reported as not found, with the id escaped', async () => {
    for (const path of ['/payouts?q=', '/payouts/', '/payouts?payoutId=']) {
      const response = await dashboard.ask(path + encodeURIComponent(INJECTION));
      const page = await response.text();
      expect(response.status).toBe(404);
      expect(page).toContain(ESCAPED);
      expect(withoutOwnScript(page)).not.toMatch(/<script|<img/);
    }
    expect((await dashboard.ask('/payouts/%ff')).status).toBe(400);
    expect((await dashboard.ask('/none')).status).toBe(404);
  });

  it('says of one that retention removed where it may be', async () => {
    await account.enqueue('removed-1');
    await account.ledger.change({ payoutId: 'removed-1', from: 'queued', to: 'cancelled' });
    const { connection } = account.ledger;
    expect(await removePayouts(connection, 'cancelled', connection.clock.wallNow() + 1, 100)).not.toEqual([]);
    const response = await dashboard.ask('/payouts/removed-1');
    expect(response.status).toBe(404);
    expect(await response.text()).toMatch(
      new RegExp(
        `was cancelled, and PAYOUT_RETENTION_DAYS removed it.*payouts get .*--account ${connection.platformId}`,
      ),
    );
  });

  it('escapes every text on every page', async () => {
    await account.sendAs(
      'evil',
      { kind: 'rejected', message: INJECTION },
      {
        reference: INJECTION,
        metadata: { [INJECTION]: INJECTION },
        addressTo: `wallet:${INJECTION}`,
      },
    );
    await account.ledger.change({ payoutId: 'evil', from: 'rejected', to: 'queued', by: INJECTION, reason: INJECTION });
    await account.sendAs('evil-2', { kind: 'unknown', reason: INJECTION }, { reference: INJECTION });
    await account.redis.hset(account.connection.keys.sender, 'owner', INJECTION);
    for (const path of [
      '/payouts',
      '/payouts/evil',
      '/payouts/evil-2',
      '/payouts?state=unknown',
      '/payouts?state=queued',
    ]) {
      const page = await dashboard.read(path);
      expect(page).toContain(ESCAPED);
      expect(withoutOwnScript(page)).not.toMatch(/<script|<img/);
    }
  });
});

describe('a dashboard that is mounted in an application', () => {
  beforeAll(open);
  afterAll(close);

  it('works under its path', async () => {
    await account.enqueue('a/b');
    const mounted = createDashboard({ platformId: account.platformId, redisUrl: process.env['REDIS_URL'] ?? '' });
    const server = createServer(express().use('/admin/pay', mounted.router));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/pay`;
    expect((await fetch(url)).url).toBe(`${url}/payouts`);
    expect(await (await fetch(`${url}/payouts?state=queued`)).text()).toContain('href="/admin/pay/payouts/a%2Fb"');
    expect(await (await fetch(`${url}/board`)).text()).toContain('<base href="/admin/pay/board/"');
    expect((await fetch(`${url}/style.css`)).status).toBe(200);
    expect((await fetch(`${url}/board/api/queues/pause`, { method: 'PUT' })).status).toBe(405);
    server.close();
    await mounted.close();
    await mounted.close();
  });
});
