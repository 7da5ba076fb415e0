import { describe, expect, it } from '@jest/globals';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { ANN, begun, beginOne, change, enqueue, finish, read, REJECTED, rig, sender } from '../support/use-account.js';
import { HOLD, nextBegin, OBJECTION, takeLease } from './ledger-rig.js';

/** What the ledger keeps of what persons signed. It verifies nothing: who reads it does. */

describe('approvals are kept for what may still be sent: approve', () => {
  const SAID: SignedApproval = {
    ...{ payoutId: 'p', intent: '0'.repeat(64), decision: 'approve', by: 'ann-1', signature: 's'.repeat(86) },
    ...{ at: '2030-01-01T00:00:00.000Z', expiresAt: '2030-01-02T00:00:00.000Z' },
  };
  const LATER = { at: '2030-01-01T01:00:00.000Z' };
  const kept = async () => (await read())?.approvals ?? [];
  const say = async (more: Partial<SignedApproval> = {}) => rig.approve({ ...SAID, ...more });
  const permitted = async () => nextBegin(sender, await takeLease(sender, 'one'), 'p');

  it('keeps one of each key, of a payout that is queued or held, for the worker to judge again', async () => {
    await enqueue('p', 'other');
    expect(await say()).toBe('kept');
    await sender.holdPayout('p', 0, HOLD);
    expect(await say({ by: 'bob-1', ...LATER })).toBe('kept');
    expect(await say({ ...LATER, decision: 'reject' })).toBe('kept');
    expect(await kept()).toHaveLength(2);
    expect(await kept()).toContainEqual({ ...SAID, ...LATER, decision: 'reject' });
    expect(await rig.marked()).toEqual(['p']);
  });

  it('keeps no approval in the place of a rejection of the same key', async () => {
    await enqueue('p');
    await say({ decision: 'reject' });
    expect(await say(LATER)).toBe('refused');
    expect(await kept()).toEqual([{ ...SAID, decision: 'reject' }]);
  });

  it('keeps none of a payout that is being sent, or is not there', async () => {
    await begun();
    expect([await say(), await say({ payoutId: 'nobody' })]).toEqual(['refused', 'not_found']);
    expect([await kept(), await rig.marked()]).toEqual([[], []]);
  });

  it.each(['approve', 'reject'] as const)(
    'that came since a send was permitted does not let it begin (%s)',
    async (decision) => {
      await enqueue('p');
      await say({ by: 'bob-1' });
      const asked = await permitted();
      await say({ decision });
      const refused = { kind: 'wrong_state', state: 'queued', attempt: 0 };
      expect(await sender.beginSend(asked)).toEqual(refused);
      // The same key says another thing: their number is the same.
      await say({ ...LATER, decision: 'reject' });
      expect(await sender.beginSend({ ...asked, decisions: asked.decisions + 1 })).toEqual(refused);
      const begin = await sender.beginSend({ ...asked, decisions: asked.decisions + 2 });
      expect(begin).toMatchObject({ kind: 'begun' });
    },
  );

  it('that is there already, and comes again, refuses no send that was permitted with it', async () => {
    await enqueue('p');
    await say();
    const asked = await permitted();
    expect(await say()).toBe('kept');
    expect(await sender.beginSend(asked)).toMatchObject({ kind: 'begun' });
  });

  it('keeps those of forty keys at the most', async () => {
    await enqueue('p');
    for (let key = 0; key < 40; key += 1) await say({ by: `key-${key}` });
    expect([await say({ by: 'one-more' }), await say({ by: 'key-7', ...LATER })]).toEqual(['refused', 'kept']);
    expect(await kept()).toHaveLength(40);
  });
});

describe('a signed act', () => {
  const reject = async (): Promise<void> => {
    if ((await read()) === undefined) await enqueue('p');
    await finish(await beginOne('p'), REJECTED);
  };
  const retry = async (act?: string) => change('p', 'rejected', 'queued', { ...ANN, act });
  const actOf = async () => (await read())?.act;
  const resumeAct = async () => (await sender.readSender()).resumeAct;

  it('stands in the payout that it sends again, until the next one', async () => {
    await reject();
    expect(await actOf()).toBeUndefined();
    await retry('first');
    expect(await read()).toMatchObject({ state: 'queued', act: 'first' });
    await reject();
    expect(await actOf()).toBe('first');
    await retry('second');
    expect(await actOf()).toBe('second');
  });

  it('is kept where the same change was made before without one', async () => {
    await reject();
    await retry();
    await retry('late');
    expect(await read()).toMatchObject({ state: 'queued', requeueCount: 1, act: 'late' });
  });

  it('is not kept where the change is refused', async () => {
    await reject();
    const wrong = { payoutId: 'p', to: 'queued', act: 'wrong' } as const;
    expect(await rig.change({ ...wrong, from: 'unknown' })).toBe('state');
    expect(await rig.change({ ...wrong, from: 'rejected', attempt: 2 })).toBe('attempt');
    expect(await actOf()).toBeUndefined();
  });

  it('of a resume is shown to the sender, also where there is no pause, but not while a journal objects', async () => {
    expect(await resumeAct()).toBeUndefined();
    await rig.pause('look');
    expect([await rig.resume('first'), await resumeAct()]).toEqual([true, 'first']);
    expect([await rig.resume('second'), await resumeAct()]).toEqual([false, 'second']);
    await sender.object(OBJECTION);
    expect([await rig.resume('early'), await resumeAct()]).toEqual(['objected', 'second']);
    await rig.adoptLedger({ epoch: 1, sendCount: 1 }, { read: [], givenUp: [OBJECTION.journalId] });
    await rig.resume();
    expect(await resumeAct()).toBe('second');
  });

  it('of an adoption is shown to the sender', async () => {
    await rig.adoptLedger({ epoch: 1, sendCount: 1 });
    expect((await sender.readSender()).adoptAct).toBeUndefined();
    await rig.adoptLedger({ epoch: 1, sendCount: 1 }, undefined, 'signed');
    expect(await sender.readSender()).toMatchObject({ sendCount: 3, adoptAct: 'signed' });
  });
});
