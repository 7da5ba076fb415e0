import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openFormerAccounts, SIGNED, type FormerAccounts } from './support/former-accounts.js';

const statesOf = (ids: string, state: string): Record<string, string> =>
  Object.fromEntries(ids.split(' ').map((id) => [`S-${id}`, state]));
const STATES = {
  ...statesOf('paid approved again paused cash', 'completed'),
  ...statesOf('waiting rejected denied', 'held'),
  ...statesOf('unknown sending', 'unknown'),
  ...{ 'S-followed': 'in_progress', 'S-cancelled': 'cancelled' },
  ...statesOf('queued cash-known cash-new fits much more ton-much', 'queued'),
};

interface Shown {
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
const said = async (...args: string[]): Promise<string> => (await former.run(SIGNED, args)).stdout;
const keyOf = (who: string): string[] => ['--key', join(former.control, `${who}.pem`)];

describe('an account with keys and a policy that the former version left', () => {
  it('is shown whole, and verified', async () => {
    for (const [payoutId, state] of Object.entries({ ...STATES, 'S-old': 'completed' })) {
      const verified = state === 'completed' ? { verified: true } : {};
      expect(await show(payoutId)).toMatchObject({ payoutId, state, ...verified });
    }
    const stats = { queued: 7, held: 3, pausedReason: 'before the upgrade' };
    expect(await former.read(SIGNED, 'stats')).toMatchObject(stats);
    await said('keys', 'verify', 'S-queued');
    expect(await said('policy', 'explain', 'S-waiting')).toContain('four-eyes');
    expect(await former.read(SIGNED, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
  });

  it('stays paused until an operator signs, then sends what fits, once', async () => {
    const worker = former.startWorker(SIGNED);
    await former.untilStates(SIGNED, { 'S-followed': 'completed' });
    expect(former.sandbox.payments(SIGNED)).toEqual([]);
    await said('resume', ...keyOf('olga'), '--reason', 'upgraded');
    await former.untilStates(SIGNED, {
      ...statesOf('queued fits much', 'completed'),
      ...statesOf('more ton-much cash-known cash-new denied rejected', 'held'),
      ...statesOf('unknown sending', 'unknown'),
    });
    expect((await show('S-more')).held).toMatchObject({ rule: 'day' });
    expect((await show('S-ton-much')).held).toMatchObject({ rule: 'address-day' });
    // The former version noted both as "bitcoincash". Since when one is known follows from its send.
    const [known, unknown] = await Promise.all(['S-cash-known', 'S-cash-new'].map(show));
    expect([known?.held, unknown?.held]).toMatchObject([{ rule: 'cool-down' }, { rule: 'cool-down' }]);
    expect(Date.parse(known?.held?.until ?? '')).toBeLessThan(Date.parse(unknown?.held?.until ?? ''));
    expect(former.sandbox.stats(SIGNED)).toMatchObject({ blocked: false, payments: 3, duplicatePayments: [] });
    // Ann's approval of the former version counts, and Bob's of this one.
    await said('approve', 'S-waiting', '--yes', ...keyOf('bob'));
    await former.untilStates(SIGNED, { 'S-waiting': 'completed' });
    worker.kill('SIGTERM');
    await worker.result;
    expect(await former.read(SIGNED, 'audit', 'verify')).toMatchObject({ faults: [], findings: [] });
  });
});
