import { describe, expect, it } from '@jest/globals';
import type { SignedApproval } from '../../../src/ledger/control-record.js';
import { begin, HOLD, nextBegin, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

/** What a ledger keeps of what persons say. It verifies nothing: who reads it does. */
const SAID: SignedApproval = {
  ...{ payoutId: 'p', intent: '0'.repeat(64), decision: 'approve', by: 'ann-1', signature: 's'.repeat(86) },
  ...{ at: '2030-01-01T00:00:00.000Z', expiresAt: '2030-01-02T00:00:00.000Z' },
};

/** Approvals are kept for what may still be sent, one of each key, and none takes the place of its rejection. */
const kept = async (): Promise<readonly SignedApproval[]> => (await ledger.readPayout('p'))?.approvals ?? [];
const later = { at: '2030-01-01T01:00:00.000Z' };

describe('approve', () => {
  it('keeps one of each key, of a payout that is queued or held, which is to be judged again', async () => {
    await rig.enqueue('p');
    await rig.enqueue('other');
    expect(await rig.approve(SAID)).toBe('kept');
    await ledger.holdPayout('p', 0, HOLD);
    expect(await rig.approve({ ...SAID, by: 'bob-1', ...later })).toBe('kept');
    const again = { ...SAID, ...later, decision: 'reject' } as const;
    expect(await rig.approve(again)).toBe('kept');
    expect(await kept()).toHaveLength(2);
    expect(await kept()).toContainEqual(again);
    expect(await rig.marked()).toEqual(['p']);
  });

  it('keeps no approval in the place of a rejection of the same key', async () => {
    await rig.enqueue('p');
    const rejection = { ...SAID, decision: 'reject' } as const;
    await rig.approve(rejection);
    expect(await rig.approve({ ...SAID, ...later })).toBe('refused');
    expect(await kept()).toEqual([rejection]);
  });

  it('keeps none of a payout that is being sent, or is not there', async () => {
    await rig.enqueue('p');
    await begin(ledger, await takeLease(ledger, 'one'), 'p');
    expect(await rig.approve(SAID)).toBe('refused');
    expect(await rig.approve({ ...SAID, payoutId: 'nobody' })).toBe('not_found');
    expect([await kept(), await rig.marked()]).toEqual([[], []]);
  });

  it.each(['approve', 'reject'] as const)(
    'that came since a send was permitted does not let it begin (%s)',
    async (decision) => {
      await rig.enqueue('p');
      await rig.approve({ ...SAID, by: 'bob-1' });
      const permitted = await nextBegin(ledger, await takeLease(ledger, 'one'), 'p');
      await rig.approve({ ...SAID, decision });
      const refused = { kind: 'wrong_state', state: 'queued', attempt: 0 };
      expect(await ledger.beginSend(permitted)).toEqual(refused);
      // The same key says another thing: their number is the same.
      const again = { ...permitted, decisions: permitted.decisions + 1 };
      await rig.approve({ ...SAID, ...later, decision: 'reject' });
      expect(await ledger.beginSend(again)).toEqual(refused);
      expect(await ledger.beginSend({ ...permitted, decisions: permitted.decisions + 2 })).toMatchObject({
        kind: 'begun',
      });
    },
  );

  it('that is there already, and comes again, refuses no send that was permitted with it', async () => {
    await rig.enqueue('p');
    await rig.approve(SAID);
    const permitted = await nextBegin(ledger, await takeLease(ledger, 'one'), 'p');
    expect(await rig.approve(SAID)).toBe('kept');
    expect(await ledger.beginSend(permitted)).toMatchObject({ kind: 'begun' });
  });

  it('keeps those of forty keys at the most', async () => {
    await rig.enqueue('p');
    for (let key = 0; key < 40; key += 1) await rig.approve({ ...SAID, by: `key-${key}` });
    expect(await rig.approve({ ...SAID, by: 'one-more' })).toBe('refused');
    expect(await rig.approve({ ...SAID, by: 'key-7', ...later })).toBe('kept');
    expect(await kept()).toHaveLength(40);
  });
});
