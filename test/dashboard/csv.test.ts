import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import express from 'express';
import { closeRedis, connectRedis, type RedisClient } from '../../src/base/redis.js';
import { sendCsv } from '../../src/dashboard/payouts/find-pages.js';
import { readListQuery } from '../../src/dashboard/payouts/list-query.js';
import { connectLedger } from '../../src/ledger/ledger-connection.js';
import { until } from '../support/until.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openDashboard, serve, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

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

const rowsOf = (text: string): Record<string, string>[] => parse(text, { columns: true });
const download = async (query: string) => rowsOf(await dashboard.read(`/payouts.csv?${query}`));
const idsOf = (rows: readonly Record<string, string>[]): unknown[] => rows.map((row) => row['payout_id']);

it('is saved under a name of its own, and no text in it is a formula', async () => {
  await open();
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
  const rows = await download('state=');
  expect(idsOf(rows)).toEqual(["'+1", "'-2+3"]);
  for (const row of rows) expect(row['reference']).toBe(`'${reference}`);
  for (const query of ['state=paid', 'state=&amount=x', 'after=x'])
    expect([query, (await dashboard.ask(`/payouts.csv?${query}`)).status]).toEqual([query, 404]);
  await close();
});

describe('a file of many payouts', () => {
  const IDS = Array.from({ length: 2_600 }, (_, index) => `many-${index}`);

  beforeAll(async () => {
    await open();
    const given = (index: number) => ({ batch: 'large', reference: index % 2 === 0 ? 'even, "quoted"' : 'odd' });
    await account.ledger.enqueue(IDS.map((payoutId, index) => aPayout(payoutId, given(index))));
  });
  afterAll(close);

  it('has all rows of the list, in its order', async () => {
    expect(idsOf(await download('batch=large'))).toEqual(IDS);
    const even = await download('state=&reference=EVEN');
    expect(idsOf(even)).toEqual(IDS.filter((_, index) => index % 2 === 0).toReversed());
    expect(even[0]).toMatchObject({ reference: 'even, "quoted"', state: 'queued' });
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
    expect(idsOf(rowsOf(text))).toEqual(IDS);
    await downloadWatched((chunk, response, write) => {
      state.chunks += 1;
      if (state.chunks === 3) response.destroy();
      return write(chunk);
    });
    expect(state.chunks).toBe(3);
  });

  it('ends when the reader goes while the next rows are read', async () => {
    const end = await downloadWatched((chunk, response, write) => {
      if (chunk.includes('many-0')) setImmediate(() => response.destroy());
      return write(chunk);
    });
    expect(end).toBe('terminated');
  });

  it('breaks off when Redis becomes unavailable half-way', async () => {
    const end = await downloadWatched((chunk, _, write, redis) => {
      if (chunk.includes('many-600')) redis.disconnect();
      return write(chunk);
    });
    expect(end).toBe('terminated');
  });

  it('is of a batch that is counted beside its page, which says so', async () => {
    expect(await dashboard.read('/batch?name=large')).toContain('Being counted');
    const isCounted = async () => (await dashboard.read('/batch?name=large')).includes('0 of 2,600, 2,600 left');
    await until('counted', isCounted);
  });
});
