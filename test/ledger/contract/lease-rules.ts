import { describe, expect, it } from '@jest/globals';
import type { LeaseView } from '../../../src/ledger/sender-ledger.js';
import { account, ACCEPTED, begun, enqueue, finish, sender, unchanged } from '../support/use-account.js';
import { JOURNAL, nextBegin, takeLease } from './ledger-rig.js';

const readLease = async () => (await sender.readSender()).lease;
const acquire = async (owner: string, seen: object = {}, journal = JOURNAL, forgetBefore = 0) =>
  sender.acquireLease(owner, { ...(await sender.readSender()), ...seen }, journal, forgetBefore);

describe('a lease', () => {
  it('is absent at first, and goes to one process that saw that', async () => {
    expect(await sender.renewLease({ owner: 'one', epoch: 0 })).toBeUndefined();
    expect(await readLease()).toBeUndefined();
    const seen = { lease: { owner: 'one', epoch: 1, heartbeat: 0, released: false } };
    expect(await unchanged(async () => acquire('two', seen))).toBeUndefined();
    expect(await acquire('one')).toBe(1);
    expect(await readLease()).toEqual(seen.lease);
    const view = await sender.readSender();
    const epochs = await Promise.all(['two', 'three', 'four'].map(async (owner) => acquire(owner, view)));
    expect(epochs.filter((epoch) => epoch !== undefined)).toEqual([2]);
  });

  it.each<[string, LeaseView | undefined]>([
    ['absent', undefined],
    ['another owner', { owner: 'other', epoch: 1, heartbeat: 1, released: false }],
    ['another epoch', { owner: 'one', epoch: 2, heartbeat: 1, released: false }],
    ['an earlier heartbeat', { owner: 'one', epoch: 1, heartbeat: 0, released: false }],
    ['a later heartbeat', { owner: 'one', epoch: 1, heartbeat: 2, released: false }],
    ['given back', { owner: 'one', epoch: 1, heartbeat: 1, released: true }],
  ])('is not given to one who saw it as %s when it is not', async (_, lease) => {
    await sender.renewLease(await takeLease(sender, 'one'));
    expect(await unchanged(async () => acquire('two', { lease }))).toBeUndefined();
  });

  it('is not given to one who saw other sends', async () => {
    await takeLease(sender, 'one');
    const { sendCount, last } = await sender.readSender();
    await finish(await begun(), ACCEPTED);
    for (const seen of [{ sendCount, last }, { sendCount: 2 }, { last: 'another' }, { last: '' }]) {
      expect(await acquire('two', seen)).toBeUndefined();
    }
    expect(await acquire('two')).toBe(3);
  });

  it('forgets journals that were not used since a time', async () => {
    const [first, second, third] = [100, 300, 50].map((at) => ({ ...JOURNAL, journalId: `j-${at}`, at }));
    await acquire('one', {}, first, 0);
    await acquire('two', {}, second, 100);
    expect((await sender.readSender()).journals).toHaveLength(2);
    await acquire('three', {}, third, 101);
    expect((await sender.readSender()).journals).toEqual([second, third]);
  });

  it('raises the epoch each time it is taken, also by the same owner, and its heartbeat starts from zero', async () => {
    await sender.renewLease(await takeLease(sender, 'one'));
    expect(await takeLease(sender, 'one')).toEqual({ owner: 'one', epoch: 2 });
    expect(await takeLease(sender, 'two')).toEqual({ owner: 'two', epoch: 3 });
    expect(await readLease()).toEqual({ owner: 'two', epoch: 3, heartbeat: 0, released: false });
  });

  it('is renewed and given back by its holder only, and then gives no rights', async () => {
    const old = await takeLease(sender, 'one');
    expect(await sender.renewLease(old)).toBe(1);
    expect((await readLease())?.heartbeat).toBe(1);
    const held = await takeLease(sender, 'two');
    for (const wrong of [old, { owner: 'two', epoch: 1 }, { owner: 'one', epoch: 2 }]) {
      expect(await sender.renewLease(wrong)).toBeUndefined();
      await sender.releaseLease(wrong);
    }
    expect(await readLease()).toEqual({ owner: 'two', epoch: 2, heartbeat: 0, released: false });
    await sender.releaseLease(held);
    expect(await readLease()).toEqual({ owner: 'two', epoch: 2, heartbeat: 0, released: true });
    await enqueue('p');
    expect(await sender.renewLease(held)).toBeUndefined();
    expect(await sender.beginSend(await nextBegin(sender, held, 'p'))).toEqual({ kind: 'lease_lost' });
    expect(await sender.markSendsUnknown(held, [], 'r', 0)).toBeUndefined();
    const next = await takeLease(sender, 'three');
    expect(await readLease()).toEqual({ owner: 'three', epoch: 3, heartbeat: 0, released: false });
    expect(await sender.renewLease(next)).toBe(1);
    expect(await account.redis.hget(account.connection.keys.sender, 'released')).toBe('0');
  });
});
