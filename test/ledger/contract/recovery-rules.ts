import { describe, expect, it } from '@jest/globals';
import { begin, NO_BREAKER, send, takeLease, type GetRig } from './ledger-rig.js';

/** What a new holder finds, and what a person does with a ledger that came back older than it was. */
export function recoveryRules(rig: GetRig): void {
  describe('recovery', () => {
    it('turns what an earlier holder left in sending into unknown, and says why', async () => {
      await rig().enqueue('p');
      const attempt = await begin(rig().ledger, await takeLease(rig().ledger, 'one'), 'p');
      const lease = await takeLease(rig().ledger, 'two');
      expect(await rig().ledger.recoverSends(lease, 'the sender ended')).toEqual(['p']);
      expect(await rig().ledger.readPayout('p')).toMatchObject({
        state: 'unknown',
        attempt: attempt.attempt,
        message: 'the sender ended',
        history: [{}, {}, { from: 'sending', to: 'unknown', reason: 'the sender ended' }],
      });
      expect(await rig().ledger.recoverSends(lease, 'again')).toEqual([]);
    });

    it('does so with all of them', async () => {
      for (const payoutId of ['p', 'q', 'r']) {
        await rig().enqueue(payoutId);
        await rig().change({ payoutId, from: 'queued', to: 'sending' });
      }
      const lease = await takeLease(rig().ledger, 'two');
      expect(await rig().ledger.recoverSends(lease, 'the sender ended')).toEqual(['p', 'q', 'r']);
    });

    it('does so too when the lease was lost with its epoch, and knows that there was no answer', async () => {
      await takeLease(rig().ledger, 'one');
      const old = await takeLease(rig().ledger, 'one');
      await rig().enqueue('p');
      await begin(rig().ledger, old, 'p');
      await rig().loseSender();
      const lease = await takeLease(rig().ledger, 'two');
      expect(lease.epoch).toBeGreaterThan(old.epoch);
      expect(await rig().ledger.readSender()).toMatchObject({ unanswered: true });
      expect(await rig().ledger.recoverSends(lease, 'the sender ended')).toEqual(['p']);
    });

    it('leaves alone what the present holder is sending', async () => {
      const lease = await takeLease(rig().ledger, 'one');
      await rig().enqueue('p');
      await begin(rig().ledger, lease, 'p');
      const before = await rig().dump();
      expect(await rig().ledger.recoverSends(lease, 'r')).toEqual([]);
      expect(await rig().dump()).toEqual(before);
    });

    it('leaves payouts in other states alone', async () => {
      const old = await takeLease(rig().ledger, 'one');
      await send(rig(), old, { payoutId: 'accepted', result: { kind: 'accepted', txhash: 't' } });
      await send(rig(), old, { payoutId: 'rejected', result: { kind: 'rejected', message: 'm' } });
      await rig().enqueue('queued');
      const lease = await takeLease(rig().ledger, 'two');
      const before = await rig().dump();
      expect(await rig().ledger.recoverSends(lease, 'r')).toEqual([]);
      expect(await rig().dump()).toEqual(before);
    });

    it('is for the holder only', async () => {
      await rig().enqueue('p');
      const old = await takeLease(rig().ledger, 'one');
      await begin(rig().ledger, old, 'p');
      const lease = await takeLease(rig().ledger, 'two');
      const before = await rig().dump();
      for (const wrong of [old, { owner: 'one', epoch: lease.epoch }, { owner: 'two', epoch: 9 }]) {
        expect(await rig().ledger.recoverSends(wrong, 'r')).toBeUndefined();
      }
      expect(await rig().dump()).toEqual(before);
    });
  });

  describe('adoption of a send that the journal knows', () => {
    it('puts a payout that the ledger forgot in as unknown', async () => {
      expect(await rig().adoptSend({ payoutId: 'p', attempt: 2, epoch: 4 })).toBe(true);
      expect(await rig().ledger.readPayout('p')).toMatchObject({
        state: 'unknown',
        attempt: 2,
        amount: '12.5',
        message: 'forgotten',
        history: [{ to: 'unknown', by: 'ann', reason: 'forgotten' }],
      });
    });

    it.each(['queued', 'cancelled', 'rejected'] as const)('makes a payout unknown that is %s', async (state) => {
      await bring(state);
      expect(await rig().adoptSend({ payoutId: 'p', attempt: 7, epoch: 4 })).toBe(true);
      const payout = await rig().ledger.readPayout('p');
      expect(payout).toMatchObject({ state: 'unknown', attempt: 7, message: 'forgotten' });
      expect(payout?.history.at(-1)).toMatchObject({ from: state, to: 'unknown', by: 'ann', reason: 'forgotten' });
    });

    it('takes a number that an earlier lease used up for no send of a later one', async () => {
      await bring('queued');
      await rig().ledger.revertSend({ payoutId: 'p', attempt: 1, epoch: 1 }, 'its begin got no reply');
      const sent = { payoutId: 'p', attempt: 1, epoch: 3 };
      expect(await rig().ledger.findForgottenSends([{ ...sent, epoch: 1 }, sent])).toEqual([
        { send: sent, state: 'queued' },
      ]);
      expect(await rig().adoptSend(sent)).toBe(true);
      expect(await rig().ledger.findForgottenSends([sent])).toEqual([]);
      expect(await rig().ledger.readPayout('p')).toMatchObject({ state: 'unknown', attempt: 1 });
    });

    it('notes the attempt of a payout that was sent before, so that its late answer still counts', async () => {
      await bring('unknown');
      expect(await rig().adoptSend({ payoutId: 'p', attempt: 7, epoch: 4 })).toBe(false);
      expect(await rig().ledger.readPayout('p')).toMatchObject({ state: 'unknown', attempt: 7 });
      const late = { payoutId: 'p', attempt: 7, epoch: 4 };
      expect(await rig().ledger.finishSend(late, { kind: 'accepted', txhash: 't' }, NO_BREAKER)).toEqual({
        recorded: true,
      });
    });

    it.each(['sending', 'in_progress', 'rejected', 'unknown'] as const)(
      'changes nothing when the ledger knows of it: %s',
      async (state) => {
        await bring(state);
        const before = await rig().dump();
        expect(await rig().adoptSend({ payoutId: 'p', attempt: 1, epoch: 1 })).toBe(false);
        expect(await rig().dump()).toEqual(before);
      },
    );

    const bring = async (state: 'queued' | 'cancelled' | 'sending' | 'in_progress' | 'rejected' | 'unknown') => {
      const lease = await takeLease(rig().ledger, 'one');
      await rig().enqueue('p');
      if (state === 'queued') return;
      if (state === 'cancelled') {
        await rig().change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
        return;
      }
      const attempt = await begin(rig().ledger, lease, 'p');
      if (state === 'sending') return;
      const results = {
        in_progress: { kind: 'accepted', txhash: 't' },
        rejected: { kind: 'rejected', message: 'm' },
        unknown: { kind: 'unknown', reason: 'r' },
      } as const;
      await rig().ledger.finishSend(attempt, results[state], NO_BREAKER);
    };
  });

  describe('adoption of a ledger', () => {
    it('raises epoch and sends above the journal, ends the lease, and notes that a request may be on its way', async () => {
      const old = await takeLease(rig().ledger, 'one');
      expect(await rig().adoptLedger({ epoch: 5, sends: 9 })).toEqual({ epoch: 6, sends: 9 });
      expect(await rig().ledger.readSender()).toMatchObject({
        lease: { owner: '', epoch: 6, beat: 0, released: false },
        sends: 9,
        unanswered: true,
      });
      expect(await rig().ledger.beatLease(old)).toBe(false);
      expect(await takeLease(rig().ledger, 'two')).toEqual({ owner: 'two', epoch: 7 });
    });

    it('keeps the flag though an attempt of before is put back', async () => {
      await rig().enqueue('p');
      const attempt = await begin(rig().ledger, await takeLease(rig().ledger, 'one'), 'p');
      await rig().adoptLedger({ epoch: 5, sends: 9 });
      await rig().ledger.revertSend(attempt, 'it was not sent');
      expect((await rig().ledger.readPayout('p'))?.state).toBe('queued');
      expect((await rig().ledger.readSender()).unanswered).toBe(true);
    });

    it('never lowers what the ledger has', async () => {
      const lease = await takeLease(rig().ledger, 'one');
      await send(rig(), lease, { payoutId: 'p', result: { kind: 'accepted', txhash: 't' } });
      expect(await rig().adoptLedger({ epoch: 0, sends: 0 })).toEqual({ epoch: 2, sends: 1 });
    });

    it('works on an empty ledger, and the next send clears the flag', async () => {
      expect(await rig().adoptLedger({ epoch: 3, sends: 4 })).toEqual({ epoch: 4, sends: 4 });
      const lease = await takeLease(rig().ledger, 'one');
      await send(rig(), lease, { payoutId: 'p', result: { kind: 'accepted', txhash: 't' } });
      expect(await rig().ledger.readSender()).toMatchObject({ sends: 5, unanswered: false });
    });
  });
}
