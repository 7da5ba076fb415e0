import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../src/base/errors.js';
import { peekSenderView } from '../../src/ledger/sender-view.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import { ANN, openOperatorRig, type OperatorRig } from './support/operator-rig.js';

let rig: OperatorRig;
beforeEach(async () => {
  rig = await openOperatorRig();
});
afterEach(async () => rig.close());

describe('declareNew', () => {
  it('leaves the lease as one that was given back, once, and records who and why', async () => {
    const { connection } = rig.account;
    expect(await rig.operator.declareNew(ANN)).toBe(true);
    expect((await peekSenderView(connection)).lease).toEqual({ owner: '', epoch: 0, heartbeat: 0, released: true });
    expect(await rig.operator.declareNew(ANN)).toBe(false);
    const { activities } = await readActivity(connection, 5);
    expect(activities).toMatchObject([{ what: 'declared_new', ...ANN }]);
  });

  it('is answered beforehand by the same rule, which records nothing; refuses where a payout was sent', async () => {
    const { ledger, connection } = rig.account;
    await rig.bring('waits', 'queued');
    expect(await ledger.findSenderTrace()).toBeUndefined();
    expect((await peekSenderView(connection)).lease).toBeUndefined();
    expect((await readActivity(connection, 5)).activities).toEqual([]);
    expect(await rig.operator.declareNew(ANN)).toBe(true);
    await rig.bring('sent', 'in_progress');
    expect(await ledger.findSenderTrace()).toMatch(/right to send|is in_progress/);
    await expect(rig.operator.declareNew(ANN)).rejects.toThrow(ConflictError);
  });

  it.each([
    ['a lease', async ({ sender }: { sender: string }) => rig.account.redis.hset(sender, 'epoch', 1), /right to send/],
    ['a journal', async ({ journals }: { journals: string }) => rig.account.redis.hset(journals, 'j', '{}'), /journal/],
    [
      'an objection',
      async ({ objections }: { objections: string }) => rig.account.redis.hset(objections, 'j', '{}'),
      /journal/,
    ],
    ['a rejected payout', async () => rig.bring('p', 'rejected'), /a payout is rejected/],
  ])('refuses an account with %s', async (_, prepare, words) => {
    await prepare(rig.account.connection.keys);
    await expect(rig.operator.declareNew(ANN)).rejects.toThrow(words);
  });
});
