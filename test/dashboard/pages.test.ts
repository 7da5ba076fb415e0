import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findHeld, type HeldFilter, type HeldPage } from '../../src/dashboard/held/held-query.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { writePolicyReport, type PolicyReport } from '../../src/ledger/reads/policy-report.js';
import { removePayouts } from '../../src/ledger/remove-payouts.js';
import { PAYOUT_STATES, STATE_TONE } from '../../src/ledger/states.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { ESCAPED, idsOf, injectedIn, INJECTION, nextPage } from './support/running-dashboard.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** Lists, payouts, batches, activity and policy: what is found, and what each page must have. */

const ADDRESS = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';

let account: SampleAccount;
let dashboard: RunningDashboard;

async function close(): Promise<void> {
  await dashboard.close();
  await account.close();
}

async function open(): Promise<void> {
  account = await openSampleAccount();
  dashboard = await openDashboard(account);
}

const statusOf = async (path: string): Promise<number> => (await dashboard.ask(path)).status;

async function search(text: string): Promise<{ status: number; location: string | null; page: string }> {
  const response = await dashboard.ask(`/payouts?q=${encodeURIComponent(text)}`);
  return { status: response.status, location: response.headers.get('location'), page: await response.text() };
}

describe('payouts that are looked for', () => {
  beforeAll(async () => {
    account = await openSampleAccount();
    const explorers = new Map([[7, 'https://explorer.example/#/tx/{txhash}?x=1']]);
    dashboard = await openDashboard(account, { explorers });
    const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
    await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
    const june = { amount: '77', batch: 'june' };
    await account.sendAs('paid', { kind: 'accepted', txhash: '0xABC$&' }, { ...june, reference: 'Rent' });
    await account.sendAs('refused', { kind: 'rejected', message: 'Insufficient balance' }, june);
    await account.sendAs('lost', { kind: 'unknown', reason: 'no response' }, { ...june, amount: '5', paymentId: 12 });
    await account.enqueue('tagged', { addressTo: `${ADDRESS}:4711`, notBefore: '2031-05-06T07:08:09Z' });
    await account.enqueue('september', { batch: 'june' });
    await account.ledger.pause('ann', 'ticket 812');
  });
  afterAll(close);

  it.each([
    ['a payoutId', 'paid', '/payouts/paid'],
    ['a txhash', ' 0xABC$& ', '/payouts/paid'],
    ['a batch', 'june', '/batch?name=june'],
    ['a payoutId before a batch of the same name', ' september ', '/payouts/september'],
  ])('are opened by %s', async (_, text, location) => {
    expect(await search(text)).toMatchObject({ status: 302, location });
  });

  it.each([
    ['an amount', '77', ['refused', 'paid']],
    ['an amount with zeros', '77.00', ['refused', 'paid']],
    ['an amount as the pages show it', '77 USDT (TRC-20)', ['refused', 'paid']],
    ['a day', '2030-01-01', ['september', 'tagged', 'lost', 'refused', 'paid']],
    ['a state', 'unknown', ['lost']],
    ['an address without its tag', ADDRESS, ['tagged']],
    ['an address with its tag', `${ADDRESS}:4711`, ['tagged']],
    ['a part of a reference', 'rEN', ['paid']],
  ])('are listed by %s', async (_, text, payoutIds) => {
    const { status, page } = await search(text);
    expect([status, idsOf(page)]).toEqual([200, payoutIds]);
  });

  it('are none: the page says what it took the text for, and what else it can be', async () => {
    const { status, page } = await search('nobody-has-this-one-here');
    expect(status).toBe(404);
    expect(page).toContain('searched as address');
    // On a phone an open form would hide what was found.
    expect(page).toMatch(/<details class="card filter"\s*>/);
    expect(page).toContain('href="/payouts?state=&amp;reference=nobody-has-this-one-here"');
    expect(page).toContain('value="nobody-has-this-one-here"');
  });

  it.each([
    ['state=', ['september', 'tagged', 'lost', 'refused', 'paid']],
    ['state=&amount=77&reference=rent', ['paid']],
    ['state=rejected&batch=june', ['refused']],
    ['batch=june', ['paid', 'refused', 'lost', 'september']],
    ['state=&since=2030-01-02&until=', []],
    ['state=&since=2029-12-31&until=2030-01-01', ['september', 'tagged', 'lost', 'refused', 'paid']],
  ])('meet the fields ?%s', async (query, payoutIds) => {
    expect(await dashboard.readIds(`/payouts?${query}`)).toEqual([payoutIds]);
  });

  it('have txhash, currency by its name, and scheduled time', async () => {
    const page = await dashboard.read('/payouts?state=');
    for (const part of [
      ...['77 USDT (TRC-20)', '5 (payment_id 12)', 'href="https://explorer.example/#/tx/0xABC%24%26?x=1"'],
      ...['data-copy="0xABC$&amp;"', `data-copy="${ADDRESS}:4711"`],
    ])
      expect(page).toContain(part);
    expect(page).toMatch(/<time class="utc" datetime="2031-05-06T07:08:09.000Z"\s*>2031-05-06 07:08:09 UTC/);
  });

  it('are none where a field is wrong, and the page says so at the field', async () => {
    const response = await dashboard.ask('/payouts?state=&amount=12x&since=2030-02-31&batch=a+b');
    const page = await response.text();
    expect(response.status).toBe(400);
    expect(page.match(/aria-invalid="true"/g)).toHaveLength(3);
    expect(page).toContain('must be a day that exists');
    expect(idsOf(page)).toEqual([]);
  });

  it('are a batch with its progress, exact sums, messages and commands', async () => {
    const page = await dashboard.readText('/batch?name=june');
    expect(page).toContain('0 % paid: 0 of 4, 1 failed or rejected, 3 left');
    expect(page).toMatch(/queued 1 12\.5 USDT \(TRC-20\).*unknown 1 5 \(payment_id 12\).*no response unknown 1/);
    expect(page).toContain('Insufficient balance rejected 1');
    for (const verb of ['retry', 'cancel'])
      expect(page).toContain(`payouts ${verb} --account ${account.platformId} --batch june --reason WHY`);
  });

  it('have an activity that says who did what, when and why', async () => {
    const decision = { payoutId: 'refused', from: 'rejected', to: 'queued', by: 'bob', reason: 'topped up' } as const;
    await account.ledger.change(decision);
    const page = await dashboard.readText('/activity');
    expect(page).toMatch(/UTC bob queued again .* refused topped up.*UTC ann paused .* ticket 812/);
  });

  it.each([
    ...['/payouts?state=paid', '/payouts?state=queued&after=x', '/payouts?state=queued&after=1&after=2', '/none'],
    ...['/batch', '/batch?name=', '/batch?name=none', '/batch?name=a&name=b', '/batch?name=%00'],
    ...['x', '1', '1-', 'event ', '1-1&before=2-2', '$'].map((before) => `/activity?before=${before}`),
  ])('are not at %s', async (path) => {
    expect([await statusOf(path), await statusOf('/payouts/%ff')]).toEqual([404, 400]);
  });

  it.each(['.', '..', 'a/b', 'a+b=c'])('may be in a batch called %s', async (batch) => {
    await account.enqueue(`in ${batch}`.replace(/[^a-z]/g, '-') + String(batch.length), { batch });
    expect(await statusOf((await search(batch)).location ?? '')).toBe(200);
  });

  it('keep their filter from page to page, newest first', async () => {
    const ids = Array.from({ length: 120 }, (_, index) => `many-${index}`);
    await account.ledger.enqueue(ids.map((payoutId) => aPayout(payoutId, { reference: 'many of them' })));
    const pages = await dashboard.readIds('/payouts?state=&reference=many+of+them');
    expect(pages.flat()).toEqual(ids.toReversed());
  });
});

describe('pages', () => {
  const IDS = Array.from({ length: 230 }, (_, index) => `h-${index}`);
  const isRare = (payoutId: string): boolean => Number(payoutId.slice(2)) % 100 === 99;

  beforeAll(async () => {
    await open();
    await account.ledger.enqueue(IDS.map((payoutId) => aPayout(payoutId)));
  });
  afterAll(close);

  it('list all queued payouts, oldest first, and final ones newest first', async () => {
    const pages = await dashboard.readIds('/payouts?state=queued');
    expect(pages.map(({ length }) => length)).toEqual([50, 50, 50, 50, 30]);
    expect(pages.flat()).toEqual(IDS);
    for (const payoutId of ['f-1', 'f-2']) {
      await account.sendAs(payoutId, { kind: 'accepted', txhash: payoutId });
      await account.ledger.change({ payoutId, from: 'in_progress', to: 'failed' });
    }
    expect(await dashboard.readIds('/payouts?state=failed')).toEqual([['f-2', 'f-1']]);
  });

  it('of held payouts lead from one to the next, and end when their time is over', async () => {
    for (const payoutId of IDS)
      await account.sender.holdPayout(payoutId, 0, {
        ...HOLD,
        kind: 'policy',
        rule: isRare(payoutId) ? 'rare' : 'day',
      });
    const readAll = async (filter: HeldFilter, searchMs?: number): Promise<HeldPage[]> => {
      const pages: HeldPage[] = [];
      let after: string | undefined;
      do {
        pages.push(await findHeld(account.connection, { filter, after }, searchMs));
        after = pages.at(-1)?.next;
      } while (after !== undefined);
      return pages;
    };
    const found = (pages: readonly HeldPage[]) => pages.flatMap(({ payouts }) => payouts.map((each) => each.payoutId));
    const [rare, hurried] = [await readAll({ rule: 'rare' }), await readAll({ rule: 'rare' }, 0)];
    for (const pages of [rare, hurried]) expect(found(pages)).toEqual(IDS.filter(isRare));
    expect([rare, hurried].map((pages) => pages.map(({ searched }) => searched))).toEqual([[230], [100, 100, 30]]);
    expect((await dashboard.readIds('/held')).flat()).toEqual(IDS);
  });

  it('of the activity are read to the first', async () => {
    for (let index = 0; index < 60; index += 1) {
      await account.ledger.resume('carl', `resumed ${index}`);
      await account.ledger.pause('carl', `paused ${index}`);
    }
    const reasons: (string | undefined)[] = [];
    for (let path: string | undefined = '/activity'; path !== undefined;) {
      const page: string = await dashboard.read(path);
      reasons.push(...[...page.matchAll(/<bdi>((?:resumed|paused) \d+)<\/bdi>/g)].map(([, reason]) => reason));
      path = nextPage(page);
    }
    expect([reasons.length, new Set(reasons).size]).toEqual([119, 119]);
    expect(reasons.slice(0, 2)).toEqual(['paused 59', 'resumed 59']);
  });
});

describe('one payout', () => {
  beforeAll(open);
  afterAll(close);

  it('shows all its data, its history and the commands that an operator can run', async () => {
    const given = { amount: '9000', reference: 'Affiliates', batch: 'september', metadata: { invoice: 77 } };
    await account.sendAs('rich', { kind: 'rejected', message: 'Insufficient balance' }, given);
    const page = (await dashboard.read('/payouts/rich')).replace(/<\/?span>/g, '');
    for (const text of [
      ...['9,000', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf', 'Affiliates', 'september', '&quot;invoice&quot;: 77'],
      `payouts retry --account ${account.platformId} rich --reason WHY`,
    ])
      expect(page).toContain(text);
    const history = [...page.matchAll(/<li class="(\w+) tone-\w+">/g)].map(([, state]) => state);
    expect(history).toEqual(['queued', 'sending', 'rejected']);
  });

  it('says why it is held, beside what was said of an earlier attempt, and what to do', async () => {
    await account.sendAs('kept', { kind: 'rejected', message: 'Insufficient balance' }, { batch: 'september' });
    await account.ledger.change({ payoutId: 'kept', from: 'rejected', to: 'queued', by: 'ann', reason: 'topped up' });
    await account.sender.holdPayout('kept', 1, HOLD);
    const page = await dashboard.readText('/payouts/kept');
    expect(page).toMatch(/Why it is held the signature expired signature: expired.*Last message Insufficient balance/);
    for (const verb of ['release', 'cancel'])
      expect(page).toContain(`payouts ${verb} --account ${account.platformId} kept --reason WHY`);
    const list = await dashboard.read('/payouts?state=held');
    expect(list).toContain('the signature expired');
    expect(list).not.toContain('Insufficient balance');
    expect(await dashboard.read('/payouts?batch=september')).toContain('the signature expired');
  });

  it.each(['a/b', 'a:b', 'a+b', 'a=b', '/', '//', '.', '..', '../x', 'a/../b', '-x', 'a,b'])(
    'has a link and is found by search with the id %s',
    async (payoutId) => {
      await account.enqueue(payoutId, { reference: `the one called ${payoutId}` });
      const { status, location } = await search(payoutId);
      expect(status).toBe(302);
      expect(await dashboard.read(location ?? '')).toContain(`the one called ${payoutId}`);
      expect(await dashboard.read('/payouts?state=queued')).toContain(`href="${location ?? ''}"`);
    },
  );

  it('that retention removed is not found, and the page says where it may be', async () => {
    await account.enqueue('removed-1');
    await account.ledger.change({ payoutId: 'removed-1', from: 'queued', to: 'cancelled' });
    const { connection } = account.ledger;
    expect(await removePayouts(connection, 'cancelled', connection.clock.wallNow() + 1, 100)).not.toEqual([]);
    const response = await dashboard.ask('/payouts/removed-1');
    expect(response.status).toBe(404);
    expect(await response.text()).toMatch(/PAYOUT_RETENTION_DAYS.*payouts get .*--account \d+/);
  });
});

describe('every text of others', () => {
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

  const publish = async (at: number): Promise<void> => {
    const rule = { unit: 'usd', limit: '1000.00', withinMs: 86_400_000, unknown: null } as const;
    const report: PolicyReport = {
      ...{ hash: 'f'.repeat(64), at, ratesAt: at - 30_000, ratesMissingSince: null },
      rules: [
        {
          ...rule,
          rule: 'day',
          per: null,
          buckets: [{ bucket: '', spent: '905.50', wanted: '200.00', ratio: 0.9055 }],
        },
        {
          ...rule,
          rule: 'wallet',
          per: 'address',
          buckets: [{ bucket: '<b>', spent: '10', wanted: '0', ratio: 0.01 }],
        },
      ],
      held: [{ rule: 'day', reason: 'wait', count: 2 }],
    };
    await writePolicyReport(account.connection, report);
  };

  it('is none where no worker tells of one, or someone put something else in its place', async () => {
    expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
    await account.redis.set(account.connection.keys.policy, '{"rules":"<script>"}');
    expect(await dashboard.read('/policy')).toContain('PAYOUT_POLICY_FILE');
  });

  it('shows how much of each window is used, what is held, and whether its worker has stopped', async () => {
    await publish(Date.now());
    const page = await dashboard.read('/policy');
    for (const part of ['aria-label="day: 91 % used"', '905.50 of 1,000.00 USD in 24 h', '200.00 USD', '&lt;b&gt;'])
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

  it.each(['/', '/payouts'])('are overviewed from %s', async (path) => {
    const response = await dashboard.ask(path);
    expect([response.status, response.headers.get('location')]).toEqual([302, '/accounts']);
    const page = await dashboard.read('/accounts');
    for (const { platformId } of [account, second]) expect(page).toContain(`href="/accounts/${platformId}/payouts"`);
  });

  it('have their own payouts only, with a switch to the other', async () => {
    const [first, other] = [account, second].map(({ platformId }) => `/accounts/${platformId}/payouts`);
    const page = await dashboard.read(`${first}?state=queued`);
    expect(page).toContain(`href="${first}/of-the-first"`);
    expect(page).not.toContain('of-the-second');
    expect(page).toContain(`href="${other}"`);
    const found = await dashboard.ask(`${other}?q=of-the-second`);
    expect(found.headers.get('location')).toBe(`${other}/of-the-second`);
    expect(await statusOf(`${other}/of-the-first`)).toBe(404);
    expect([await statusOf('/accounts/1/payouts'), await statusOf('/style.css')]).toEqual([404, 200]);
  });

  it('have a board each, with its files', async () => {
    const board = `/accounts/${second.platformId}/board`;
    expect(await dashboard.read(`${board}/`)).toContain(`<base href="${board}/"`);
    const logo = await dashboard.ask(`${board}/static/images/logo.svg`);
    expect(logo.status).toBe(200);
    expect(logo.headers.get('cache-control')).not.toContain('no-store');
    expect((await dashboard.ask(`${board}/api/queues/pause`, { method: 'PUT' })).status).toBe(405);
  });
});

it('has a CSS class for the tone of every state', () => {
  const css = readFileSync('src/dashboard/style.css', 'utf8');
  for (const state of PAYOUT_STATES)
    expect(css).toMatch(new RegExp(`^\\.tone-${STATE_TONE[state]} \\{\\n +--state:`, 'm'));
});
