import { describe, expect, it } from '@jest/globals';
import { begin, NO_BREAKER, OBJECTION, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

/** What the ledger keeps of an operator's signed acts. */
const RETRY = { payoutId: 'p', from: 'rejected', to: 'queued', by: 'ann', reason: 'ticket 812' } as const;

const reject = async (): Promise<void> => {
  if ((await ledger.readPayout('p')) === undefined) await rig.enqueue('p');
  const attempt = await begin(ledger, await takeLease(ledger, 'one'), 'p');
  await ledger.finishSend(attempt, { kind: 'rejected', message: 'no funds' }, NO_BREAKER, 0);
};

describe('a signed act', () => {
  it('stands in the payout that it sends again, until the next one', async () => {
    await reject();
    expect((await ledger.readPayout('p'))?.act).toBeUndefined();
    await rig.change({ ...RETRY, act: 'first' });
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'queued', act: 'first' });
    await reject();
    expect((await ledger.readPayout('p'))?.act).toBe('first');
    await rig.change({ ...RETRY, act: 'second' });
    expect((await ledger.readPayout('p'))?.act).toBe('second');
  });

  it('is kept where the same change was made before without one', async () => {
    await reject();
    await rig.change(RETRY);
    expect(await rig.change({ ...RETRY, act: 'late' })).toBe('done');
    expect(await ledger.readPayout('p')).toMatchObject({ state: 'queued', requeueCount: 1, act: 'late' });
  });

  it('is not kept where the change is refused', async () => {
    await reject();
    expect(await rig.change({ ...RETRY, from: 'unknown', act: 'wrong' })).toBe('state');
    expect(await rig.change({ ...RETRY, attempt: 2, act: 'wrong' })).toBe('attempt');
    expect((await ledger.readPayout('p'))?.act).toBeUndefined();
  });

  it('of a resume is shown to the sender, also where the ledger knows of no pause', async () => {
    expect((await ledger.readSender()).resumeAct).toBeUndefined();
    await rig.pause('look');
    expect(await rig.resume('first')).toBe(true);
    expect((await ledger.readSender()).resumeAct).toBe('first');
    expect(await rig.resume('second')).toBe(false);
    expect((await ledger.readSender()).resumeAct).toBe('second');
    await rig.resume();
    expect((await ledger.readSender()).resumeAct).toBe('second');
  });

  it('of a resume is not kept while a journal objects', async () => {
    await ledger.object(OBJECTION);
    expect(await rig.resume('early')).toBe('objected');
    expect((await ledger.readSender()).resumeAct).toBeUndefined();
  });

  it('of an adoption is shown to the sender', async () => {
    await rig.adoptLedger({ epoch: 1, sendCount: 1 });
    expect((await ledger.readSender()).adoptAct).toBeUndefined();
    await rig.adoptLedger({ epoch: 1, sendCount: 1 }, undefined, 'signed');
    expect(await ledger.readSender()).toMatchObject({ sendCount: 3, adoptAct: 'signed' });
  });
});
