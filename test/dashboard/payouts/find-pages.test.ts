import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { openDashboard, type RunningDashboard } from '../support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from '../support/sample-account.js';

const INJECTION = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;`;
const ESCAPED = '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=alert(2)&gt;&amp;amp;';
const ADDRESS = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  account = await openSampleAccount();
  const explorers = new Map([[7, 'https://explorer.example/#/tx/{txhash}?x=1']]);
  dashboard = await openDashboard(account, { explorers });
  const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
  await account.sendAs(
    'paid',
    { kind: 'accepted', txhash: '0xABC$&' },
    { amount: '77', batch: 'june', reference: 'Rent' },
  );
  await account.sendAs(
    'refused',
    { kind: 'rejected', message: 'Insufficient balance' },
    { amount: '77', batch: 'june' },
  );
  await account.sendAs(
    'lost',
    { kind: 'unknown', reason: 'no response' },
    { amount: '5', batch: 'june', paymentId: 12 },
  );
  await account.enqueue('tagged', { addressTo: `${ADDRESS}:4711`, notBefore: '2031-05-06T07:08:09Z' });
  await account.enqueue('september', { batch: 'june' });
  await account.ledger.pause('ann', 'ticket 812');
});

afterAll(async () => {
  await dashboard.close();
  await account.close();
});

/** The payoutIds of a page's table. */
function listed(page: string): string[] {
  return [...page.matchAll(/<th scope="row" class="id">\s*<a href="[^"]*\/payouts\/([^"]+)"/g)].map(
    ([, id = '']) => id,
  );
}

async function search(text: string): Promise<{ status: number; location: string | null; page: string }> {
  const response = await dashboard.ask(`/payouts?q=${encodeURIComponent(text)}`);
  return { status: response.status, location: response.headers.get('location'), page: await response.text() };
}

describe('the search field', () => {
  it.each([
    ['a payoutId', 'paid', '/payouts/paid'],
    ['a txhash', '0xABC$&', '/payouts/paid'],
    ['a batch', 'june', '/batch?name=june'],
    ['a payoutId before a batch of the same name', ' september ', '/payouts/september'],
  ])('opens %s', async (_, text, location) => {
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
  ])('lists what has %s', async (_, text, payoutIds) => {
    const { status, page } = await search(text);
    expect([status, listed(page)]).toEqual([200, payoutIds]);
  });

  it('says what it took the text for, and what else it can be', async () => {
    const { status, page } = await search('nobody-has-this-one-here');
    expect(status).toBe(404);
    expect(page).toContain('searched as address');
    // On a phone an open form would hide what was found.
    expect(page).toMatch(/<details class="card filter"\s*>/);
    expect(page).toContain('href="/payouts?state=&amp;reference=nobody-has-this-one-here"');
    expect(page).toContain('value="nobody-has-this-one-here"');
  });
});

describe('a list', () => {
  it('meets every field of the form', async () => {
    const list = async (query: string): Promise<string[]> => listed(await dashboard.read(`/payouts?${query}`));
    expect(await list('state=')).toEqual(['september', 'tagged', 'lost', 'refused', 'paid']);
    expect(await list('state=&amount=77&reference=rent')).toEqual(['paid']);
    expect(await list('state=rejected&batch=june')).toEqual(['refused']);
    expect(await list('batch=june')).toEqual(['paid', 'refused', 'lost', 'september']);
    expect(await list('state=&since=2030-01-02&until=')).toEqual([]);
    expect(await list('state=&since=2029-12-31&until=2030-01-01')).toHaveLength(5);
  });

  it('has the columns that are looked for: txhash, currency by its name, scheduled time', async () => {
    const page = await dashboard.read('/payouts?state=');
    expect(page).toContain('77 USDT (TRC-20)');
    expect(page).toContain('5 (payment_id 12)');
    expect(page).toMatch(/<time class="utc" datetime="2031-05-06T07:08:09.000Z"\s*>2031-05-06 07:08:09 UTC/);
    expect(page).toContain('href="https://explorer.example/#/tx/0xABC%24%26?x=1"');
    expect(page).toContain('data-copy="0xABC$&amp;"');
    expect(page).toContain(`data-copy="${ADDRESS}:4711"`);
  });

  it('keeps the filter from page to page', async () => {
    for (let index = 0; index < 120; index += 1) await account.enqueue(`many-${index}`, { reference: 'many of them' });
    const seen: string[] = [];
    let path: string | undefined = '/payouts?state=&reference=many+of+them';
    while (path !== undefined) {
      const page = await dashboard.read(path);
      seen.push(...listed(page));
      path = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen).toEqual(Array.from({ length: 120 }, (_, index) => `many-${119 - index}`));
  });

  it('says at the field what is wrong with it, and shows nothing', async () => {
    const response = await dashboard.ask('/payouts?state=&amount=12x&since=2030-02-31&batch=a+b');
    const page = await response.text();
    expect(response.status).toBe(400);
    expect(page.match(/aria-invalid="true"/g)).toHaveLength(3);
    expect(page).toContain('must be a day that exists');
    expect(listed(page)).toEqual([]);
  });
});

describe('a batch', () => {
  it('shows its progress, exact sums, messages and commands', async () => {
    const page = (await dashboard.read('/batch?name=june')).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    expect(page).toContain('0 % paid: 0 of 4, 1 failed or rejected, 3 left');
    expect(page).toMatch(/queued 1 12.5 USDT \(TRC-20\) accepted, not sent/);
    expect(page).toMatch(/unknown 1 5 \(payment_id 12\) sent, [^:]+: an operator must check/);
    expect(page).toContain('no response unknown 1');
    expect(page).toContain('Insufficient balance rejected 1');
    expect(page).toContain(`payouts retry --account ${account.platformId} --batch june --reason WHY`);
    expect(page).toContain(`payouts cancel --account ${account.platformId} --batch june --reason WHY`);
  });

  it('is not found where no payout is in it', async () => {
    for (const path of ['/batch', '/batch?name=', '/batch?name=none', '/batch?name=a&name=b', '/batch?name=%00']) {
      expect([path, (await dashboard.ask(path)).status]).toEqual([path, 404]);
    }
  });

  it.each(['.', '..', 'a/b', 'a+b=c'])('may be called %s', async (batch) => {
    await account.enqueue(`in ${batch}`.replace(/[^a-z]/g, '-') + String(batch.length), { batch });
    const { location } = await search(batch);
    expect((await dashboard.ask(location ?? '')).status).toBe(200);
  });
});

describe('the activity', () => {
  it('shows who did what, when and why', async () => {
    await account.ledger.change({
      payoutId: 'refused',
      from: 'rejected',
      to: 'queued',
      by: 'bob',
      reason: 'topped up',
    });
    const page = (await dashboard.read('/activity')).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    expect(page).toMatch(/UTC bob queued again after a rejection refused topped up/);
    expect(page).toMatch(/UTC ann paused the account the account ticket 812/);
  });

  it('has pages', async () => {
    for (let index = 0; index < 60; index += 1) {
      await account.ledger.resume('carl', `resumed ${index}`);
      await account.ledger.pause('carl', `paused ${index}`);
    }
    const reasons: string[] = [];
    let path: string | undefined = '/activity';
    while (path !== undefined) {
      const page = await dashboard.read(path);
      reasons.push(...[...page.matchAll(/<bdi>((?:resumed|paused) \d+)<\/bdi>/g)].map(([, reason = '']) => reason));
      path = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(reasons).toHaveLength(120);
    expect(reasons.slice(0, 2)).toEqual(['paused 59', 'resumed 59']);
  });

  it.each(['x', '1', '1-', 'event ', '1-1&before=2-2', '$'])('responds 404 to the page %s', async (before) => {
    expect((await dashboard.ask(`/activity?before=${before}`)).status).toBe(404);
  });
});

it('escapes every text on every new page', async () => {
  const given = {
    reference: INJECTION,
    batch: 'evil',
    addressTo: `wallet:${INJECTION}`,
    metadata: { [INJECTION]: INJECTION },
  };
  await account.ledger.resume('ann', 'to send');
  await account.sendAs('evil', { kind: 'rejected', message: INJECTION }, given);
  await account.sendAs('evil-2', { kind: 'accepted', txhash: `"><img/src=x>` }, given);
  await account.ledger.pause(INJECTION, INJECTION);
  const currencies = [{ paymentId: 7, name: INJECTION, usdRate: '1' }];
  await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
  const encoded = encodeURIComponent(INJECTION);
  for (const path of [
    '/payouts?state=',
    '/payouts?state=&batch=evil',
    `/payouts?state=&reference=${encoded}&address=${encoded}&amount=${encoded}&batch=${encoded}&since=${encoded}`,
    `/payouts?q=${encoded}`,
    `/batch?name=${encoded}`,
    '/batch?name=evil',
    '/activity',
    '/payouts/evil',
    '/payouts/evil-2',
  ]) {
    const page = (await dashboard.read(path)).replaceAll(/<script src="\/(?:page|live)\.js" defer><\/script>/g, '');
    expect(page).toContain(ESCAPED);
    expect([path, /<script|<img/.exec(page)]).toEqual([path, null]);
  }
});
