import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse } from 'csv-parse/sync';
import express from 'express';
import { readListQuery } from '../../../src/dashboard/payouts/list-query.js';
import { sendCsv } from '../../../src/dashboard/payouts/find-pages.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openDashboard, type RunningDashboard } from '../support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from '../support/sample-account.js';

const MANY = 2_600;

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

async function enqueueMany(): Promise<string[]> {
  const payouts = Array.from({ length: MANY }, (_, index) =>
    aPayout(`many-${index}`, { batch: 'large', reference: index % 2 === 0 ? 'even, "quoted"' : 'odd' }),
  );
  await account.ledger.enqueue(payouts);
  return payouts.map(({ payoutId }) => payoutId);
}

async function download(path: string): Promise<Record<string, string>[]> {
  const text = await dashboard.read(path);
  return parse(text, { columns: true });
}

function idsOf(rows: readonly Record<string, string>[]): (string | undefined)[] {
  return rows.map((row) => row['payout_id']);
}

it('has all rows of the list, in its order', async () => {
  const payoutIds = await enqueueMany();
  expect(idsOf(await download('/payouts.csv?state=queued'))).toEqual(payoutIds);
  expect(idsOf(await download('/payouts.csv?batch=large'))).toEqual(payoutIds);
  const even = await download('/payouts.csv?state=&reference=EVEN');
  expect(idsOf(even)).toEqual(payoutIds.filter((_, index) => index % 2 === 0).toReversed());
  expect(even[0]).toMatchObject({ reference: 'even, "quoted"', state: 'queued' });
});

it('is a file to save, with a name that says what is in it', async () => {
  await account.enqueue('one', { reference: '../Rent "x"' });
  const path = `/payouts.csv?state=queued&reference=${encodeURIComponent('../Rent "x"')}`;
  for (const method of ['GET', 'HEAD']) {
    const response = await dashboard.ask(path, { method });
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const name = `payouts-${account.platformId}-queued-.._Rent_x_-2030-01-01.csv`;
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename=${name}`);
    expect(response.headers.get('cache-control')).toBe('no-store');
  }
});

it('is safe in a spreadsheet: no text is taken for a formula', async () => {
  await account.enqueue('-2+3', { reference: '=HYPERLINK("https://evil.example")' });
  await account.sendAs('+1', { kind: 'rejected', message: '@SUM(A1)' }, { reference: '+cmd' });
  const rows = await download('/payouts.csv?state=');
  expect(idsOf(rows)).toEqual(["'+1", "'-2+3"]);
  expect(rows.map((row) => row['reference'])).toEqual(["'+cmd", `'=HYPERLINK("https://evil.example")`]);
});

it.each(['state=paid', 'state=&amount=x', 'after=x'])('responds 404 to %s', async (query) => {
  expect((await dashboard.ask(`/payouts.csv?${query}`)).status).toBe(404);
});

/**
 * Downloads the queued payouts from a server that tells of each write.
 * @returns the text, or why there is none
 */
async function downloadWatched(
  onWrite: (
    chunk: string,
    response: express.Response,
    write: (chunk: string) => boolean,
    redis: RedisClient,
  ) => boolean,
): Promise<string> {
  const redis = connectRedis(process.env['REDIS_URL'] ?? '', 'commands');
  const connection = connectLedger(redis, account.platformId);
  const query = readListQuery({ state: 'queued' });
  // Else Express prints errors.
  const app = express().set('env', 'test');
  app.get('/list.csv', async (_, response) => {
    const write = response.write.bind(response) as (chunk: string) => boolean;
    response.write = (chunk: string) => onWrite(chunk, response, write, redis);
    if (query !== undefined) await sendCsv(response, connection, query, false);
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/list.csv`);
    return await response.text().catch((error: unknown) => (error as Error).message);
  } finally {
    await new Promise((resolve) => server.close(resolve));
    await closeRedis(redis);
  }
}

it('waits for a slow reader', async () => {
  const payoutIds = await enqueueMany();
  let isFull = false;
  let early = 0;
  const text = await downloadWatched((chunk, response, write) => {
    if (isFull) early += 1;
    isFull = true;
    setTimeout(() => {
      isFull = false;
      write(chunk);
      response.emit('drain');
    }, 200);
    return false;
  });
  expect(early).toBe(0);
  expect(idsOf(parse(text, { columns: true }))).toEqual(payoutIds);
});

it('stops reading when the reader has gone', async () => {
  await enqueueMany();
  let chunks = 0;
  await downloadWatched((chunk, response, write) => {
    chunks += 1;
    if (chunks === 3) response.destroy();
    return write(chunk);
  });
  expect(chunks).toBe(3);
});

it('breaks off when Redis becomes unavailable half-way, so that no file looks whole', async () => {
  await enqueueMany();
  const end = await downloadWatched((chunk, _, write, redis) => {
    if (chunk.includes('many-600')) redis.disconnect();
    return write(chunk);
  });
  expect(end).toBe('terminated');
});

it('responds 503 while Redis is unavailable', async () => {
  const redis = await startLocalRedis();
  const own = await openDashboard(account, { redisUrl: redis.url });
  try {
    expect((await own.ask('/payouts.csv?state=queued')).status).toBe(200);
    await redis.stop();
    expect((await own.ask('/payouts.csv?state=queued')).status).toBe(503);
  } finally {
    await own.close();
    await redis.stop();
  }
});
