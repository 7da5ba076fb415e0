import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openFormerAccounts, SIGNED, type FormerAccounts } from './support/former-accounts.js';

const STATES = {
  ...{ 'S-paid': 'completed', 'S-approved': 'completed', 'S-again': 'completed', 'S-paused': 'completed' },
  ...{
    'S-waiting': 'held',
    'S-rejected': 'held',
    'S-denied': 'held',
    'S-cash': 'completed',
    'S-followed': 'in_progress',
  },
  ...{ 'S-unknown': 'unknown', 'S-sending': 'unknown', 'S-cancelled': 'cancelled', 'S-queued': 'queued' },
  ...{ 'S-cash-known': 'queued', 'S-cash-new': 'queued', 'S-fits': 'queued', 'S-much': 'queued', 'S-more': 'queued' },
  ...{ 'S-ton-much': 'queued' },
};

interface Shown {
  readonly payoutId: string;
  readonly state: string;
  readonly addressTo: string;
  readonly amount: string;
  readonly held?: { readonly kind: string; readonly reason: string; readonly rule?: string; readonly until?: string };
}

let former: FormerAccounts;
beforeEach(async () => {
  former = await openFormerAccounts({ atItsTime: true });
});
afterEach(async () => former.close());

const show = async (payoutId: string): Promise<Shown> => former.read(SIGNED, 'get', payoutId);
const keyOf = (who: string): string[] => ['--key', join(former.control, `${who}.pem`)];

describe('an account with keys and a policy that the former version left', () => {
  it('is shown whole', async () => {
    for (const [payoutId, state] of Object.entries(STATES)) {
      expect(await show(payoutId)).toMatchObject({ payoutId, state });
    }
    for (const payoutId of ['S-paid', 'S-approved', 'S-again', 'S-cash']) {
      expect(await show(payoutId)).toMatchObject({ verified: true });
    }
    expect(await show('S-old')).toMatchObject({ state: 'completed', verified: true });
    expect(await former.read(SIGNED, 'stats')).toMatchObject({
      queued: 7,
      held: 3,
      pausedReason: 'before the upgrade',
    });
    await former.run(SIGNED, ['keys', 'check']);
    await former.run(SIGNED, ['policy', 'check']);
    expect((await former.run(SIGNED, ['approvals'])).stdout).toContain('S-waiting');
    expect((await former.run(SIGNED, ['policy', 'explain', 'S-waiting'])).stdout).toContain('four-eyes');
    expect((await former.run(SIGNED, ['policy', 'usage'])).stdout).toContain('day');
    expect(await former.read(SIGNED, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
    await former.run(SIGNED, ['keys', 'verify', 'S-queued']);
    const [held, page] = await former.readPages(SIGNED, [
      '/held',
      '/payouts/S-waiting',
      '/policy',
      '/audit',
      '/payouts',
    ]);
    expect(held).toContain('S-denied');
    expect(page).toContain('four-eyes');
  });

  it('stays paused until an operator signs, then sends what fits, once, and counts what was spent', async () => {
    const worker = former.startWorker(SIGNED);
    await former.untilStates(SIGNED, { 'S-followed': 'completed' });
    expect(former.sandbox.payments(SIGNED)).toEqual([]);
    await former.run(SIGNED, ['resume', ...keyOf('olga'), '--reason', 'upgraded']);
    await former.untilStates(SIGNED, {
      ...{ 'S-queued': 'completed', 'S-fits': 'completed', 'S-much': 'completed' },
      ...{
        'S-more': 'held',
        'S-ton-much': 'held',
        'S-cash-known': 'held',
        'S-cash-new': 'held',
        'S-denied': 'held',
        'S-rejected': 'held',
      },
      ...{ 'S-unknown': 'unknown', 'S-sending': 'unknown' },
    });
    expect((await show('S-more')).held).toMatchObject({ rule: 'day' });
    expect((await show('S-ton-much')).held).toMatchObject({ rule: 'address-day' });
    // The former version noted both as "bitcoincash". Since when one is known follows from its send.
    const [known, unknown] = await Promise.all(['S-cash-known', 'S-cash-new'].map(show));
    expect([known?.held, unknown?.held]).toMatchObject([{ rule: 'cool-down' }, { rule: 'cool-down' }]);
    expect(Date.parse(known?.held?.until ?? '')).toBeLessThan(Date.parse(unknown?.held?.until ?? ''));
    expect(former.sandbox.stats(SIGNED)).toMatchObject({ blocked: false, payments: 3, duplicatePayments: [] });
    // Ann's approval of the former version counts, and Bob's of this one.
    await former.run(SIGNED, ['approve', 'S-waiting', '--yes', ...keyOf('bob')]);
    await former.untilStates(SIGNED, { 'S-waiting': 'completed' });
    worker.kill('SIGTERM');
    await worker.result;
    expect(await former.read(SIGNED, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
  });

  it('is held where nobody says that its signatures count, until it is enqueued again, and is paid once', async () => {
    former.startWorker(SIGNED, { PAYOUT_ACCEPT_UNBOUND_UNTIL: '2000-01-01T00:00:00Z' });
    await former.run(SIGNED, ['resume', ...keyOf('olga'), '--reason', 'upgraded']);
    const queued = Object.entries(STATES).filter(([, state]) => state === 'queued');
    await former.untilStates(SIGNED, Object.fromEntries(queued.map(([payoutId]) => [payoutId, 'held'])));
    expect((await show('S-queued')).held).toMatchObject({ kind: 'signature', reason: 'no_audience' });
    for (const payoutId of ['S-queued', 'S-again']) {
      const { amount, addressTo } = await show(payoutId);
      const again = ['--payout-id', payoutId, '--payment-id', '4', '--amount', amount, '--address-to', addressTo];
      await former.run(SIGNED, ['enqueue', ...again]);
    }
    await former.untilStates(SIGNED, { 'S-queued': 'completed', 'S-again': 'completed', 'S-fits': 'held' });
    expect(await show('S-queued')).toMatchObject({ verified: true });
    expect(former.sandbox.stats(SIGNED)).toMatchObject({ blocked: false, payments: 1 });
  });
});
