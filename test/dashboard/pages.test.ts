import { setTimeout as delay } from 'node:timers/promises';
import { quoteFormula, unquoteFormula } from '../../src/ledger/payout-csv.js';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import express from 'express';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { sendCsv } from '../../src/dashboard/payouts/find-pages.js';
import { readListQuery } from '../../src/dashboard/payouts/list-query.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { until } from '../support/until.js';
import {
  idsOf,
  injectedIn,
  nextPage,
  openDashboard,
  serve,
  type RunningDashboard,
} from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** Lists, payouts, batches, activity and files: what is found, and what each page must have. */

const ADDRESS = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';

let account: SampleAccount;
let dashboard: RunningDashboard;

async function open(options?: Parameters<typeof openDashboard>[1]) {
  account = await openSampleAccount();
  dashboard = await openDashboard(account, options);
}

async function close() {
  await dashboard.close();
  await account.close();
}

const statusOf = async (path: string) => (await dashboard.ask(path)).status;
const search = async (text: string): Promise<Response> => dashboard.ask(`/payouts?q=${encodeURIComponent(text)}`);

describe('payouts that are looked for', () => {
  beforeAll(async () => {
    await open({ explorers: new Map([[7, 'https://explorer.example/#/tx/{txhash}?x=1']]) });
    const currencies = [{ paymentId: 7, name: 'USDT (TRC-20)', usdRate: '1' }];
    await writeGatewayFacts(account.connection, { currencies, currenciesAt: 1 });
    const june = { amount: '77', batch: 'june' };
    const refused = { kind: 'rejected', message: 'Insufficient balance' } as const;
    await account.sendAs(
      'paid',
      { kind: 'accepted', gatewayId: '0xABC$&', txhash: '0xABC$&' },
      { ...june, reference: 'Rent' },
    );
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
    ['gatewayId', ' 0xABC$& ', '/payouts/paid'],
    ['batch', 'june', '/batch?name=june'],
    ['amount as the pages show it', '77.00 USDT (TRC-20)', ['refused', 'paid']],
    ['day', '2030-01-01', ['kept', 'september', 'tagged', 'lost', 'refused', 'paid']],
    ['state', 'unknown', ['lost']],
    ['address without its tag', ADDRESS, ['tagged']],
    ['part of a reference', 'rENt', ['paid']],
    ['the beginning of a payoutId', 'Re', ['refused']],
    ['the beginning of several', 'ta', ['tagged']],
  ])('are found by %s', async (_, text, found) => {
    const response = await search(text);
    expect(response.headers.get('location') ?? idsOf(await response.text())).toEqual(found);
  });

  it.each([
    ['state=&amount=77&reference=rent', ['paid']],
    ['batch=june', ['paid', 'refused', 'lost', 'september']],
    ['state=&since=2030-01-02&until=', []],
    [`state=&since=2029-12-31&until=2030-01-01&address=${ADDRESS}`, ['tagged']],
  ])('meet the fields ?%s', async (query, payoutIds) => {
    expect(await dashboard.readIds(`/payouts?${query}`)).toEqual([payoutIds]);
  });

  it('are all listed at /payouts, and by the beginning of their id without reading the others', async () => {
    const all = ['kept', 'september', 'tagged', 'lost', 'refused', 'paid'];
    expect(await dashboard.readIds('/payouts')).toEqual([all]);
    const { redis, connection } = account;
    const [key, kept] = [connection.keys.payout('paid'), `${connection.keys.prefix}:kept`];
    await redis.rename(key, kept);
    await redis.set(key, 'a record that nobody can read');
    expect(await dashboard.readText('/payouts?id=LO')).toMatch(/ For lost 5 /);
    expect(await dashboard.read('/payouts?id=LO')).not.toContain('cannot be read');
    expect(await dashboard.read('/payouts?id=pa')).toContain('cannot be read');
    await redis.rename(kept, key);
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
    for (const path of [
      ...['/payouts?state=paid', '/payouts?state=queued&after=x', '/payouts?state=queued&after=1&after=2', '/none'],
      ...['/batch', '/batch?name=none', '/batch?name=a&name=b', '/batch?name=%00', '/activity?before=x'],
      ...['/payouts.csv?state=paid', '/payouts.csv?state=&amount=x', '/payouts.csv?after=x'],
    ])
      expect([path, await statusOf(path)]).toEqual([path, 404]);
    expect(await statusOf('/payouts/%ff')).toBe(400);
  });

  it.each([
    [
      '/payouts?state=',
      [/tagged .* 2031-05-06 07:08:09 UTC/, /lost unknown 5 \(payment_id 12\)/, /77 USDT \(TRC-20\)/],
    ],
    ['/payouts?state=held', [/kept .*the signature expired/]],
    [
      '/payouts/refused',
      [
        /not checked: the network of USDT \(TRC-20\) is not known/,
        /Insufficient balance .*retry ID.*77 USDT.*invoice&quot;: 77.*queued .*sending .*rejected/,
      ],
    ],
    ['/payouts/kept', [/Why it is held the signature expired .*Last message Insufficient/, /release ID/, /cancel ID/]],
    ['/batch?name=june', [/0 % paid: 0 of 4, 1 failed or rejected, 3 left/, /unknown 1 5 \(payment_id 12\)/]],
    ['/activity', [/UTC ann paused .* ticket 812.*UTC bob queued again .* kept topped up/]],
  ])('%s says what it is for', async (path, words) => {
    const own = `--account ${account.platformId} ${path.split('/').at(-1) ?? ''} --reason WHY`;
    const text = (await dashboard.readText(path)).replaceAll(` ${own}`, ' ID');
    for (const each of words) expect(text).toMatch(each);
  });

  it.each(['a+b=c', '..x/y', '-x'])('may have the id %s', async (payoutId) => {
    await account.enqueue(payoutId, { reference: `the one called ${payoutId}`, batch: './+' });
    const location = (await search(payoutId)).headers.get('location') ?? '';
    expect(await dashboard.read(location)).toContain(`the one called ${payoutId}`);
    expect(await dashboard.read('/payouts?state=queued')).toContain(`href="${location}"`);
    expect(await statusOf((await search('./+')).headers.get('location') ?? '')).toBe(200);
  });
});

it('pages list queued payouts oldest first, others newest first, and lead to the last', async () => {
  await open();
  const ids = Array.from({ length: 230 }, (_, index) => `h-${index}`);
  const isRare = (payoutId: string) => Number(payoutId.slice(2)) % 100 === 99;
  await account.ledger.enqueue(ids.map((payoutId) => aPayout(payoutId, { reference: 'many of them' })));
  const pages = await dashboard.readIds('/payouts?state=queued');
  expect(pages.map(({ length }) => length)).toEqual([50, 50, 50, 50, 30]);
  expect(pages.flat()).toEqual(ids);
  expect((await dashboard.readIds('/payouts?state=&reference=many+of+them')).flat()).toEqual(ids.toReversed());
  for (const payoutId of ids) {
    const rule = isRare(payoutId) ? 'rare' : 'day';
    await account.sender.holdPayout(payoutId, 0, { ...HOLD, kind: 'policy', rule });
  }
  expect(await dashboard.readIds('/held?rule=rare')).toEqual([ids.filter(isRare)]);
  expect((await dashboard.readIds('/held')).flat()).toEqual(ids);
  for (let index = 0; index < 60; index += 1) {
    await account.ledger[index % 2 === 0 ? 'pause' : 'resume']('carl', `act ${index}`);
  }
  const next = nextPage(await dashboard.read('/activity')) ?? '';
  expect((await dashboard.read(next)).match(/<bdi>act \d+<\/bdi>/g)).toContain('<bdi>act 0</bdi>');
  await close();
});

it('a sum of amounts with a symbol says that they may be in it', async () => {
  await open();
  await account.enqueue('in-usd', { amount: '400', symbol: 'USD', batch: 'usd' });
  await account.enqueue('in-eur', { amount: '7', symbol: 'EUR', batch: 'usd' });
  const text = await dashboard.readText('/batch?name=usd');
  expect(text).toMatch(/ 7 \(payment_id \d+\) perhaps in EUR 400 \(payment_id \d+\) perhaps in USD /);
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
    await account.sendAs('evil-2', { kind: 'accepted', gatewayId: `"><img/src=x>` }, given);
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
    ...['/payouts', '/payouts?state=', '/activity', '/payouts/evil', '/payouts/evil-2', '/payouts/evil-3'],
    '/payouts/evil-4',
    `/payouts?state=&reference=${encoded}&address=${encoded}&amount=${encoded}&batch=${encoded}&since=${encoded}`,
    ...[`/payouts?q=${encoded}`, `/payouts/${encoded}`, `/batch?name=${encoded}`, '/batch?name=evil'],
  ])('is escaped on %s', async (path) => {
    const page = await dashboard.read(path);
    expect(page).toContain(ESCAPED);
    expect(injectedIn(page)).toBeNull();
  });
});

describe('a CSV file', () => {
  const IDS = Array.from({ length: 2_600 }, (_, index) => `many-${index}`);
  const rowsOf = (text: string): Record<string, string>[] => parse(text, { columns: true });
  const download = async (query: string) => rowsOf(await dashboard.read(`/payouts.csv?${query}`));
  const idsIn = (rows: readonly Record<string, string>[]): unknown[] => rows.map((row) => row['payout_id']);

  beforeAll(async () => open());
  afterAll(close);

  it('is saved under a name of its own, and no text in it is a formula', async () => {
    const reference = '=cmd/"x"';
    await account.enqueue('-2+3', { reference });
    await account.sendAs('+1', { kind: 'rejected', message: '@SUM(A1)' }, { reference });
    const path = `/payouts.csv?state=queued&reference=${encodeURIComponent(reference)}`;
    for (const method of ['GET', 'HEAD']) {
      expect(Object.fromEntries((await dashboard.ask(path, { method })).headers)).toMatchObject({
        ...{ 'content-type': 'text/csv; charset=utf-8', 'cache-control': 'no-store' },
        'content-disposition': `attachment; filename=payouts-${account.platformId}-queued-_cmd_x_-2030-01-01.csv`,
      });
    }
    const given = { reference: `'${reference}` };
    expect(await download('state=')).toMatchObject([
      { payout_id: "'+1", ...given },
      { payout_id: "'-2+3", ...given },
    ]);
    await account.ledger.change({ payoutId: '-2+3', from: 'queued', to: 'cancelled' });
    expect(await download('state=')).toMatchObject([
      { state: 'cancelled', final: 'true' },
      { state: 'rejected', final: 'false' },
    ]);
  });

  it.each([';=1+1', '; =1', 'a;=1', '\uff1d1+1', 'a\t=1', "';=1", ' =1'])('quotes %j, and reads it again', (text) => {
    const quoted = quoteFormula(text);
    expect([quoted, unquoteFormula(quoted)]).toEqual([`'${text}`, text]);
  });

  it.each(['a=b', 'a - b', 'INV;2', "it's", 'a ; b'])('leaves %j as it is', (text) => {
    expect(quoteFormula(text)).toBe(text);
  });

  it('has all rows in the order of the list; a large batch is counted beside its page', async () => {
    const given = (index: number) => ({ batch: 'large', reference: index % 2 === 0 ? 'even, "quoted"' : 'odd' });
    await account.ledger.enqueue(IDS.map((payoutId, index) => aPayout(payoutId, given(index))));
    expect(idsIn(await download('batch=large'))).toEqual(IDS);
    const even = await download('state=&reference=EVEN');
    expect(idsIn(even)).toEqual(IDS.filter((_, index) => index % 2 === 0).toReversed());
    expect(even[0]).toMatchObject({ reference: 'even, "quoted"', state: 'queued' });
    expect(await dashboard.read('/batch?name=large')).toContain('Being counted');
    await until('counted', async () => (await dashboard.read('/batch?name=large')).includes('0 of 2,600, 2,600 left'));
  });

  type Write = (chunk: string) => boolean;

  /**
   * Downloads the queued payouts from a server that tells of each write.
   * @returns the text, or why there is none
   */
  async function downloadWatched(
    onWrite: (chunk: string, response: express.Response, write: Write, redis: RedisClient) => boolean,
  ): Promise<string> {
    const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
    const connection = connectLedger(redis, account.platformId);
    const query = readListQuery({ state: 'queued' });
    // Else Express prints errors.
    const app = express().set('env', 'test');
    let sent: Promise<void> = Promise.resolve();
    app.get('/list.csv', async (_, response) => {
      const write = response.write.bind(response) as Write;
      response.write = (chunk: string) => onWrite(chunk, response, write, redis);
      if (query !== undefined) await (sent = sendCsv(response, connection, query, false));
    });
    const server = await serve(app);
    try {
      const response = await fetch(`${server.url}/list.csv`);
      const text = await response.text().catch((error: unknown) => (error as Error).message);
      const ended = sent.catch(() => undefined);
      expect(await Promise.race([ended, delay(3_000, 'has not ended', { ref: false })])).toBeUndefined();
      return text;
    } finally {
      await server.close();
      await closeRedis(redis);
    }
  }

  it('waits for a slow reader, and stops reading when the reader has gone', async () => {
    const state = { isFull: false, early: 0, chunks: 0 };
    const text = await downloadWatched((chunk, response, write) => {
      if (state.isFull) state.early += 1;
      state.isFull = true;
      setTimeout(() => {
        state.isFull = false;
        write(chunk);
        response.emit('drain');
      }, 50);
      return false;
    });
    expect(state.early).toBe(0);
    expect(idsIn(rowsOf(text))).toEqual(IDS);
    await downloadWatched((chunk, response, write) => {
      state.chunks += 1;
      if (state.chunks === 3) response.destroy();
      return write(chunk);
    });
    expect(state.chunks).toBe(3);
  });

  it('breaks off when the reader goes while rows are read, or Redis half-way', async () => {
    const left = await downloadWatched((chunk, response, write) => {
      if (chunk.includes('many-0')) setImmediate(() => response.destroy());
      return write(chunk);
    });
    const cut = await downloadWatched((chunk, _, write, redis) => {
      if (chunk.includes('many-600')) redis.disconnect();
      return write(chunk);
    });
    expect([left, cut]).toEqual(['terminated', 'terminated']);
  });
});
