import { afterAll, beforeAll, expect, it } from '@jest/globals';
import express from 'express';
import { createBoard } from '../../src/dashboard/board.js';
import { openDashboard, serve, type RunningDashboard } from './support/running-dashboard.js';
import { fillAccount, openSampleAccount, type SampleAccount } from './support/sample-account.js';

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

let account: SampleAccount;
let dashboard: RunningDashboard;

beforeAll(async () => {
  account = await openSampleAccount();
  await fillAccount(account);
  dashboard = await openDashboard(account);
});

afterAll(async () => {
  await dashboard.close();
  await account.close();
});

async function write(base: string, request: string): Promise<Response> {
  const [method = '', path = ''] = request.split(' ');
  return fetch(base + path, { method, body: BODY, headers: { 'content-type': 'application/json' } });
}

it('the board refuses every write, and changes nothing in Redis, also without the guard in front of it', async () => {
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

it("a job shows its payout's present state, amount, currency, shortened address and error, and nothing else", async () => {
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
