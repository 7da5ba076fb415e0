import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import { createBoard } from '../../src/dashboard/board.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { writePolicyReport } from '../../src/ledger/reads/policy-report.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import {
  idsOf,
  injectedIn,
  nextPage,
  openDashboard,
  serve,
  type RunningDashboard,
} from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** Lists, payouts, batches, activity and policy: what is found, and what each page must have. */

const ADDRESS = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';

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

const statusOf = async (path: string): Promise<number> => (await dashboard.ask(path)).status;
const search = async (text: string): Promise<Response> => dashboard.ask(`/payouts?q=${encodeURIComponent(text)}`);

describe('payouts that are looked for', () => {
  beforeAll(async () => {
    account = await openSampleAccount();
    const explorers = new Map([[7, 'https://explorer.example/#/tx/{txhash}?x=1']]);
    dashboard = await openDashboard(account, { explorers });
    const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
    await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
    const june = { amount: '77', batch: 'june' };
    const refused = { kind: 'rejected', message: 'Insufficient balance' } as const;
    await account.sendAs('paid', { kind: 'accepted', txhash: '0xABC$&' }, { ...june, reference: 'Rent' });
    await account.sendAs('refused', refused, { ...june, metadata: { invoice: 77 } });
    await account.sendAs('lost', { kind: 'unknown', reason: 'no response' }, { ...june, amount: '5', paymentId: 12 });
    await account.enqueue('tagged', { addressTo: `${ADDRESS}:4711`, notBefore: '2031-05-06T07:08:09Z' });
    await account.enqueue('september', { batch: 'june' });
    await account.sendAs('kept', refused);
    await account.ledger.change({ payoutId: 'kept', from: 'rejected', to: 'queued', by: 'bob', reason: 'topped up' });
    await account.sender.holdPayout('kept', 1, HOLD);
    await account.ledger.pause('ann', 'ticket 812');
  });
  afterAll(close);

  it.each<[string, string, string | string[]]>([
    ['payoutId', 'paid', '/payouts/paid'],
    ['txhash', ' 0xABC$& ', '/payouts/paid'],
    ['batch', 'june', '/batch?name=june'],
    ['amount as the pages show it', '77.00 USDT (TRC-20)', ['refused', 'paid']],
    ['day', '2030-01-01', ['kept', 'september', 'tagged', 'lost', 'refused', 'paid']],
    ['state', 'unknown', ['lost']],
    ['address without its tag', ADDRESS, ['tagged']],
    ['part of a reference', 'rEN', ['paid']],
  ])('are found by %s', async (_, text, found) => {
    const response = await search(text);
    expect(response.headers.get('location') ?? idsOf(await response.text())).toEqual(found);
  });

  it.each([
    ['state=&amount=77&reference=rent', ['paid']],
    ['batch=june', ['paid', 'refused', 'lost', 'september']],
    ['state=&since=2030-01-02&until=', []],
    ['state=&since=2029-12-31&until=2030-01-01&address=rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', ['tagged']],
  ])('meet the fields ?%s', async (query, payoutIds) => {
    expect(await dashboard.readIds(`/payouts?${query}`)).toEqual([payoutIds]);
  });

  it('link to an explorer with a txhash that is escaped, and copy it whole', async () => {
    const page = await dashboard.read('/payouts?state=');
    expect(page).toContain('href="https://explorer.example/#/tx/0xABC%24%26?x=1"');
    expect(page).toContain('data-copy="0xABC$&amp;"');
  });

  it('are none: the page says what it looked for, and what is wrong', async () => {
    const none = await search('nobody-has-this-one-here');
    expect([none.status, await none.text()]).toEqual([404, expect.stringContaining('searched as address')]);
    const wrong = await dashboard.ask('/payouts?state=&amount=12x&since=2030-02-31&batch=a+b');
    expect(wrong.status).toBe(400);
    expect((await wrong.text()).match(/aria-invalid="true"/g)).toHaveLength(3);
  });

  it.each([
    [
      '/payouts?state=',
      [/tagged .* 2031-05-06 07:08:09 UTC/, /lost unknown 5 \(payment_id 12\)/, /77 USDT \(TRC-20\)/],
    ],
    ['/payouts?state=held', [/kept .*the signature expired/]],
    ['/payouts/refused', [/Insufficient balance .*retry ID.*77 USDT.*invoice&quot;: 77.*queued .*sending .*rejected/]],
    ['/payouts/kept', [/Why it is held the signature expired .*Last message Insufficient/, /release ID/, /cancel ID/]],
    ['/batch?name=june', [/0 % paid: 0 of 4, 1 failed or rejected, 3 left/, /unknown 1 5 \(payment_id 12\)/]],
    ['/activity', [/UTC ann paused .* ticket 812.*UTC bob queued again .* kept topped up/]],
  ])('%s says what it is for', async (path, words) => {
    const own = `--account ${account.platformId} ${path.split('/').at(-1) ?? ''} --reason WHY`;
    const text = (await dashboard.readText(path)).replaceAll(` ${own}`, ' ID');
    for (const each of words) expect(text).toMatch(each);
  });

  it('are not where the query means nothing', async () => {
    for (const path of [
      ...['/payouts?state=paid', '/payouts?state=queued&after=x', '/payouts?state=queued&after=1&after=2', '/none'],
      ...['/batch', '/batch?name=none', '/batch?name=a&name=b', '/batch?name=%00', '/activity?before=x'],
    ])
      expect([path, await statusOf(path)]).toEqual([path, 404]);
    expect(await statusOf('/payouts/%ff')).toBe(400);
  });

  it.each(['a+b=c', '../x', '-x'])('may have the id %s', async (payoutId) => {
    await account.enqueue(payoutId, { reference: `the one called ${payoutId}`, batch: './+' });
    const location = (await search(payoutId)).headers.get('location') ?? '';
    expect(await dashboard.read(location)).toContain(`the one called ${payoutId}`);
    expect(await dashboard.read('/payouts?state=queued')).toContain(`href="${location}"`);
    expect(await statusOf((await search('./+')).headers.get('location') ?? '')).toBe(200);
  });

  it('are gone once retention removed them: the page says where to look', async () => {
    await account.enqueue('removed-1');
    await account.ledger.change({ payoutId: 'removed-1', from: 'queued', to: 'cancelled' });
    const { connection } = account.ledger;
    await removePayouts(connection, 'cancelled', connection.clock.wallNow() + 1, 100);
    const response = await dashboard.ask('/payouts/removed-1');
    expect(response.status).toBe(404);
    expect(await response.text()).toMatch(/PAYOUT_RETENTION_DAYS.*payouts get .*--account \d+/);
  });
});

describe('pages', () => {
  const IDS = Array.from({ length: 230 }, (_, index) => `h-${index}`);
  const isRare = (payoutId: string): boolean => Number(payoutId.slice(2)) % 100 === 99;

  beforeAll(async () => {
    await open();
    await account.ledger.enqueue(IDS.map((payoutId) => aPayout(payoutId, { reference: 'many of them' })));
  });
  afterAll(close);

  it('list queued payouts oldest first, others newest first', async () => {
    const pages = await dashboard.readIds('/payouts?state=queued');
    expect(pages.map(({ length }) => length)).toEqual([50, 50, 50, 50, 30]);
    expect(pages.flat()).toEqual(IDS);
    expect((await dashboard.readIds('/payouts?state=&reference=many+of+them')).flat()).toEqual(IDS.toReversed());
    for (const payoutId of ['f-1', 'f-2']) {
      await account.sendAs(payoutId, { kind: 'accepted', txhash: payoutId });
      await account.ledger.change({ payoutId, from: 'in_progress', to: 'failed' });
    }
    expect(await dashboard.readIds('/payouts?state=failed')).toEqual([['f-2', 'f-1']]);
  });

  it('of held payouts lead from one to the next, and end when their time is over', async () => {
    for (const payoutId of IDS) {
      const rule = isRare(payoutId) ? 'rare' : 'day';
      await account.sender.holdPayout(payoutId, 0, { ...HOLD, kind: 'policy', rule });
    }
    expect(await dashboard.readIds('/held?rule=rare')).toEqual([IDS.filter(isRare)]);
    expect((await dashboard.readIds('/held')).flat()).toEqual(IDS);
  });
});

it('a page of activities leads to the earlier ones', async () => {
  await open();
  for (let index = 0; index < 60; index += 1) {
    if (index % 2 === 0) await account.ledger.pause('carl', `act ${index}`);
    else await account.ledger.resume('carl', `act ${index}`);
  }
  const next = nextPage(await dashboard.read('/activity')) ?? '';
  expect((await dashboard.read(next)).match(/<bdi>act \d+<\/bdi>/g)?.at(-1)).toBe('<bdi>act 0</bdi>');
  await close();
});

describe('every text of others', () => {
  const INJECTION = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;`;
  const ESCAPED = '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=alert(2)&gt;&amp;amp;';
  const encoded = encodeURIComponent(INJECTION);

  beforeAll(async () => {
    await open();
    const batch = { reference: INJECTION, batch: 'evil', metadata: { [INJECTION]: INJECTION } };
    const given = { ...batch, addressTo: `wallet:${INJECTION}` };
    await account.sendAs('evil', { kind: 'rejected', message: INJECTION }, given);
    await account.sendAs('evil-2', { kind: 'accepted', txhash: `"><img/src=x>` }, given);
    await account.sendAs('evil-3', { kind: 'unknown', reason: INJECTION }, given);
    await account.sendAs('evil-4', { kind: 'rejected', message: INJECTION }, given);
    const decided = { by: INJECTION, reason: INJECTION } as const;
    await account.ledger.change({ payoutId: 'evil-4', from: 'rejected', to: 'queued', ...decided });
    await account.ledger.pause(INJECTION, INJECTION);
    await account.redis.hset(account.connection.keys.sender, 'owner', INJECTION);
    const currencies = [{ paymentId: 7, name: INJECTION, usdRate: '1' }];
    await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
  });
  afterAll(close);

  it.each([
    ...['/payouts', '/payouts?state=', '/payouts?state=unknown', '/payouts?state=queued', '/activity'],
    ...['/payouts/evil', '/payouts/evil-2', '/payouts/evil-3', '/payouts/evil-4', '/payouts?state=&batch=evil'],
    `/payouts?state=&reference=${encoded}&address=${encoded}&amount=${encoded}&batch=${encoded}&since=${encoded}`,
    ...[`/payouts?q=${encoded}`, `/payouts/${encoded}`, `/batch?name=${encoded}`, '/batch?name=evil'],
  ])('is escaped on %s', async (path) => {
    const page = await dashboard.read(path);
    expect(page).toContain(ESCAPED);
    expect(injectedIn(page)).toBeNull();
  });
});

describe('the policy', () => {
  beforeAll(open);
  afterAll(close);

  async function publish(at: number): Promise<void> {
    const rule = { rule: 'day', unit: 'usd', limit: '1000.00', withinMs: 86_400_000, unknown: null } as const;
    const buckets = [{ bucket: '<b>', spent: '905.50', wanted: '200.00', ratio: 0.9055 }];
    await writePolicyReport(account.connection, {
      ...{ hash: 'f'.repeat(64), at, ratesAt: at - 30_000, ratesMissingSince: null },
      rules: [{ ...rule, per: 'address', buckets }],
      held: [{ rule: 'day', reason: 'wait', count: 2 }],
    });
  }

  it('shows the use of each window, what is held, and a stopped worker', async () => {
    expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
    // As where someone put something else in its place.
    await account.redis.set(account.connection.keys.policy, '{"rules":"<script>"}');
    expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
    await publish(Date.now());
    const page = await dashboard.read('/policy');
    for (const part of ['91 % used', '905.50 of 1,000.00 USD in 24 h', '200.00 USD', '&lt;b&gt;'])
      expect(page).toContain(part);
    expect(page).not.toContain('<b>');
    expect(page).toMatch(/href="\/held\?kind=policy&amp;rule=day&amp;reason=wait"\s*>2 payouts<\/a\s*>\s*by day/);
    const stopped = 'no worker with a policy sends now';
    expect(page).not.toContain(stopped);
    await publish(Date.now() - 120_000);
    expect(await dashboard.read('/policy')).toContain(stopped);
  });
});

describe('several accounts', () => {
  let second: SampleAccount;

  beforeAll(async () => {
    account = await openSampleAccount();
    second = await openSampleAccount();
    await account.enqueue('of-the-first');
    await second.enqueue('of-the-second');
    dashboard = await openDashboard({ ...account, platformId: [account.platformId, second.platformId] });
  });
  afterAll(async () => {
    await close();
    await second.close();
  });

  it('have their own payouts only, an overview and a switch', async () => {
    const [first = '', other = ''] = [account, second].map(({ platformId }) => `/accounts/${platformId}/payouts`);
    for (const path of ['/', '/payouts']) expect((await dashboard.ask(path)).headers.get('location')).toBe('/accounts');
    const overview = await dashboard.read('/accounts');
    for (const path of [first, other]) expect(overview).toContain(`href="${path}"`);
    const page = await dashboard.read(`${first}?state=queued`);
    expect(page).toContain(`href="${first}/of-the-first"`);
    expect(page).not.toContain('of-the-second');
    expect(page).toContain(`href="${other}"`);
    const found = await dashboard.ask(`${other}?q=of-the-second`);
    expect(found.headers.get('location')).toBe(`${other}/of-the-second`);
    expect(await statusOf(`${other}/of-the-first`)).toBe(404);
    expect(await statusOf('/accounts/1/payouts')).toBe(404);
  });

  it('have a board each, with its files', async () => {
    const board = `/accounts/${second.platformId}/board`;
    expect(await dashboard.read(`${board}/`)).toContain(`<base href="${board}/"`);
    const logo = await dashboard.ask(`${board}/static/images/logo.svg`);
    expect([logo.status, logo.headers.get('cache-control')]).toEqual([200, expect.not.stringContaining('no-store')]);
    expect((await dashboard.ask(`${board}/api/queues/pause`, { method: 'PUT' })).status).toBe(405);
  });
});

describe('the board', () => {
  const API = '/board/api/queues';
  const JOB = `${API}/withdraw/${encodeURIComponent(encodeURIComponent('order:2045~0'))}`;

  const READS = [
    ...['waiting', 'active', 'completed', 'failed', 'delayed', 'prioritized', 'paused', 'latest'].map(
      (status) => `${API}?activeQueue=withdraw&page=1&jobsPerPage=50&status=${status}`,
    ),
    ...[JOB, `${JOB}/logs`, '/board/api/redis/stats', '/board/queue/withdraw'],
  ];
  /** Bull Board's own. */
  const WRITES = [
    ...['retry', 'promote', 'clean', 'update-data'].map((what) => `PUT ${JOB}/${what}`),
    ...['retry/failed', 'clean/failed', 'promote', 'pause', 'resume', 'empty', 'obliterate'].map(
      (what) => `PUT ${API}/withdraw/${what}`,
    ),
    ...[`PUT ${API}/pause`, `PUT ${API}/resume`, `POST ${API}/withdraw/add`, `PATCH ${JOB}/update-data`],
    ...[`DELETE ${API}`, `OPTIONS ${API}`],
  ];

  /** A body that is right for whichever write it is sent with. */
  const BODY = JSON.stringify({
    ...{ name: 'withdraw', queue: 'withdraw', options: {}, force: true },
    ...{ data: { payoutId: 'order:2047' }, jobData: { payoutId: 'order:2047' } },
  });

  beforeAll(async () => {
    await open();
    await fillAccount(account);
  });
  afterAll(close);

  async function write(base: string, request: string): Promise<Response> {
    const [method = '', path = ''] = request.split(' ');
    return fetch(base + path, { method, body: BODY, headers: { 'content-type': 'application/json' } });
  }

  it('refuses every write, also without the guard in front of it', async () => {
    const boardOnly = await serve(express().use('/board', createBoard(account.ledger, account.queues)));
    const before = await account.dump();
    const unguarded = new Set<number>();
    for (const request of WRITES) {
      const { status, headers } = await write(dashboard.url.slice(0, -1), request);
      expect([request, status, headers.get('allow')]).toEqual([request, 405, 'GET, HEAD']);
      unguarded.add((await write(boardOnly.url, request)).status);
    }
    for (const path of READS) expect([200, 404]).toContain((await dashboard.ask(path)).status);
    expect(await account.dump()).toEqual(before);
    // Pausing all queues responds 200 and skips those that are read-only; others have no route here.
    expect([...unguarded].sort()).toEqual([200, 404, 405]);
    await boardOnly.close();
  });

  it("shows of a job its payout's present state, and no secret", async () => {
    const { job } = (await (await dashboard.ask(JOB)).json()) as { job: object };
    expect(job).toMatchObject({
      name: 'order:2045 · 9000 of 7/USD · rejected',
      externalUrl: { href: '../payouts/order%3A2045' },
    });
    expect((job as { data: unknown }).data).toEqual({
      ...{ payoutId: 'order:2045', state: 'rejected', amount: '9000', currency: '7/USD' },
      ...{ addressTo: 'TXYZop…VkAeBf', error: 'Insufficient balance' },
    });
    const data = { payoutId: 'stray', paymentId: 1, amount: '1', addressTo: 'w', secretKey: 'sesame' };
    await account.queues.transactionstatus.add('transactionstatus', data, { jobId: 'stray~0' });
    const list = '/board/api/queues?activeQueue=transactionstatus&status=latest&page=1&jobsPerPage=20';
    const shown = await dashboard.read(list);
    expect(shown).toContain('stray · 1 of 1 · not in the ledger');
    expect(shown).not.toContain('sesame');
  });
});
