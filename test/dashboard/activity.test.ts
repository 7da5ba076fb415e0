import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { addApproval } from '../../src/control/operator/store-approval.js';
import type { PayoutState } from '../../src/ledger/states.js';
import { PAYMENT } from '../control/support/signed.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { idsOf, nextPage, openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { openSampleAccount, type SampleAccount } from './support/sample-account.js';

/** The page of what people did: one line for one act, with its number and a list of its payouts. */

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

const IDS = Array.from({ length: 500 }, (_, index) => `p-${index}`);
const ANN = { by: 'ann', reason: 'ticket 812' };

/** As one command that signs each. */
async function approve(payoutIds: readonly string[], by: string, source?: string) {
  const { ledger, clock } = account;
  for (const payoutId of payoutIds) {
    const at = new Date(clock.wallNow()).toISOString();
    const expiresAt = new Date(clock.wallNow() + 86_400_000).toISOString();
    const about = { audience: 'test', payoutId, intent: 'ab'.repeat(32), ...PAYMENT };
    const said = { decision: 'approve', reason: 'ticket 9', by } as const;
    await addApproval(ledger, { ...about, ...said, at, expiresAt, signature: 's' }, { source });
    clock.advance(100);
  }
}

/** As one command that changes 50 at a time. */
async function cancel(from: PayoutState, payoutIds: readonly string[], source: string) {
  for (let start = 0; start < payoutIds.length; start += 50) {
    const payouts = payoutIds.slice(start, start + 50).map((payoutId) => ({ payoutId }));
    await account.ledger.changeMany({ from, to: 'cancelled', ...ANN, isOneAct: true, source, payouts });
    account.clock.advance(100);
  }
}

const lines = async (path = '/activity') => (await dashboard.read(path)).match(/<tr\b[^]*?<\/tr>/g)?.slice(1) ?? [];
const actLink = (line: string) => /href="(\/act\?[^"]+)"/.exec(line)?.[1]?.replaceAll('&amp;', '&') ?? '';

it('has one line for 500 approvals by one command, with a list of all of them', async () => {
  await account.ledger.enqueue(IDS.map((payoutId) => aPayout(payoutId, { batch: 'june' })));
  await account.ledger.pause('zoe', 'before');
  await approve(IDS, 'ann', 'batch june');
  await approve(['p-7'], 'bob');
  const [bobs, anns, zoes, ...more] = await lines();
  expect(more).toEqual([]);
  expect(bobs).toMatch(/bob[^]*approved with a signature[^]*href="\/payouts\/p-7">p-7<\/a>/);
  expect(anns).toMatch(
    /ann[^]*approved with a signature[^]*>500 payouts<\/a>[^]*of <bdi>batch june<\/bdi>[^]*ticket 9/,
  );
  expect(zoes).toMatch(/zoe[^]*the account/);
  expect((await dashboard.readIds(actLink(anns ?? ''))).flat()).toEqual(IDS);
  // Each record stays, for the audit.
  expect(await account.redis.xlen(account.connection.keys.activity)).toBe(502);
});

it('does not join what is a minute apart, of another person, or for another reason', async () => {
  await account.ledger.enqueue(IDS.slice(0, 6).map((payoutId) => aPayout(payoutId)));
  await approve(['p-0', 'p-1'], 'ann');
  account.clock.advance(60_001);
  await approve(['p-2'], 'ann');
  await approve(['p-3'], 'bob');
  expect((await lines()).map((line) => /(\d+ payouts|p-\d)<\/a>/.exec(line)?.[1])).toEqual(['p-3', 'p-2', '2 payouts']);
});

it('has one line for a bulk change, with what its payouts were chosen by and a list of them', async () => {
  await account.ledger.enqueue(IDS.map((payoutId) => aPayout(payoutId, { batch: 'june' })));
  const held = IDS.slice(0, 7);
  const hold = { kind: 'policy', reason: 'wait', message: 'full', isTampering: false } as const;
  for (const payoutId of held) await account.sender.holdPayout(payoutId, 0, hold);
  // Of the two states, as `payouts cancel --batch` does.
  await cancel('held', held, 'batch june');
  await cancel('queued', IDS.slice(7, 493), 'batch june');
  await cancel('queued', IDS.slice(493), 'file wrong.csv');
  const [ofFile, ofBatch, ...more] = await lines();
  expect(more).toEqual([]);
  expect(ofFile).toMatch(/>7 payouts<\/a>[^]*of <bdi>file wrong\.csv<\/bdi>/);
  expect(ofBatch).toMatch(/ann[^]*cancelled[^]*>493 payouts<\/a>[^]*of <bdi>batch june<\/bdi>[^]*ticket 812/);
  expect((await dashboard.readIds(actLink(ofBatch ?? ''))).flat()).toEqual(IDS.slice(0, 493));
  const page = await dashboard.readText(actLink(ofFile ?? ''));
  expect(page).toMatch(/ann cancelled of file wrong\.csv · ticket 812/);
  // Its events are not kept for as long as the act.
  await account.redis.del(account.connection.keys.events);
  expect(await dashboard.readText(actLink(ofBatch ?? ''))).toContain('no longer kept');
  for (const query of ['', '?id=x', '?id=1-1', `?id=1-1&offset=x`]) {
    expect((await dashboard.ask(`/act${query}`)).status).toBe(404);
  }
});

it('goes on where a page of 50 lines ends, without a line twice', async () => {
  const ids = IDS.slice(0, 120);
  await account.ledger.enqueue(ids.map((payoutId) => aPayout(payoutId)));
  for (const [index, payoutId] of ids.entries()) {
    await approve([payoutId, ids[(index + 1) % ids.length] ?? ''], index % 2 === 0 ? 'ann' : 'bob');
    account.clock.advance(61_000);
  }
  const first = await dashboard.read('/activity');
  const second = nextPage(first) ?? '';
  const third = nextPage(await dashboard.read(second)) ?? '';
  const all = [...(await lines()), ...(await lines(second)), ...(await lines(third))];
  expect(all).toHaveLength(120);
  expect(new Set(all.map(actLink)).size).toBe(120);
  expect(idsOf(await dashboard.read(actLink(all[0] ?? '')))).toEqual(['p-119', 'p-0']);
  expect(nextPage(await dashboard.read(third))).toBeUndefined();
});
