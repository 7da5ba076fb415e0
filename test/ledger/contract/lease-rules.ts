import { describe, expect, it } from '@jest/globals';
import type { LeaseView, SenderView } from '../../../src/ledger/sender-ledger.js';
import { JOURNAL, nextBegin, send, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

/** One holder at a time, and nobody takes over what moved while it was not observed. */
const readLease = async (): Promise<LeaseView | undefined> => (await ledger.readSender()).lease;
const viewWith = async (lease: LeaseView | undefined): Promise<SenderView> => ({
  ...(await ledger.readSender()),
  lease,
});

describe('lease', () => {
  it('is absent at first, and a process that saw that may take it', async () => {
    expect(await readLease()).toBeUndefined();
    expect(await ledger.acquireLease('one', await ledger.readSender(), JOURNAL, 0)).toBe(1);
    expect(await readLease()).toEqual({ owner: 'one', epoch: 1, heartbeat: 0, released: false });
  });

  it.each<[string, LeaseView | undefined]>([
    ['absent', undefined],
    ['another owner', { owner: 'other', epoch: 1, heartbeat: 1, released: false }],
    ['another epoch', { owner: 'one', epoch: 2, heartbeat: 1, released: false }],
    ['an earlier heartbeat', { owner: 'one', epoch: 1, heartbeat: 0, released: false }],
    ['a later heartbeat', { owner: 'one', epoch: 1, heartbeat: 2, released: false }],
    ['given back', { owner: 'one', epoch: 1, heartbeat: 1, released: true }],
  ])('is not given to one who saw it as %s when it is not', async (_, seen) => {
    await ledger.renewLease(await takeLease(ledger, 'one'));
    const before = await rig.dump();
    expect(await ledger.acquireLease('two', await viewWith(seen), JOURNAL, 0)).toBeUndefined();
    expect(await rig.dump()).toEqual(before);
  });

  it('is not given to one who saw a holder where there is none', async () => {
    const seen = await viewWith({ owner: 'one', epoch: 1, heartbeat: 0, released: false });
    expect(await ledger.acquireLease('two', seen, JOURNAL, 0)).toBeUndefined();
    expect(await readLease()).toBeUndefined();
  });

  it('is not given to one who saw other sends', async () => {
    const lease = await takeLease(ledger, 'one');
    const before = await ledger.readSender();
    await send(rig, lease, { payoutId: 'p', result: { kind: 'accepted', txhash: 't' } });
    const view = await ledger.readSender();
    for (const wrong of [before, { ...view, sendCount: 2 }, { ...view, last: 'another' }, { ...view, last: '' }]) {
      expect(await ledger.acquireLease('two', wrong, JOURNAL, 0)).toBeUndefined();
    }
    expect(await ledger.acquireLease('two', view, JOURNAL, 0)).toBe(2);
  });

  it('forgets journals that were not used since a time', async () => {
    await ledger.acquireLease('one', await ledger.readSender(), { ...JOURNAL, at: 100 }, 0);
    const other = { ...JOURNAL, journalId: 'j-two', at: 300 };
    await ledger.acquireLease('two', await ledger.readSender(), other, 100);
    expect((await ledger.readSender()).journals).toHaveLength(2);
    const third = { ...JOURNAL, journalId: 'j-three', at: 50 };
    await ledger.acquireLease('three', await ledger.readSender(), third, 101);
    expect((await ledger.readSender()).journals).toEqual([third, other]);
  });

  it('makes its journal known, once', async () => {
    await takeLease(ledger, 'one');
    const other = { ...JOURNAL, journalId: 'j-two', dir: '/elsewhere' };
    await ledger.acquireLease('two', await ledger.readSender(), other, 0);
    await ledger.acquireLease('two', await ledger.readSender(), { ...other, dir: '/moved' }, 0);
    expect((await ledger.readSender()).journals).toEqual([JOURNAL, other]);
  });

  it('goes to one of several who saw the same', async () => {
    await takeLease(ledger, 'one');
    const seen = await ledger.readSender();
    const epochs = await Promise.all(
      ['two', 'three', 'four'].map(async (owner) => ledger.acquireLease(owner, seen, JOURNAL, 0)),
    );
    expect(epochs.filter((epoch) => epoch !== undefined)).toEqual([2]);
  });

  it('raises the epoch each time it is taken, also by the same owner, and its heartbeat starts from zero', async () => {
    const first = await takeLease(ledger, 'one');
    await ledger.renewLease(first);
    expect(await takeLease(ledger, 'one')).toEqual({ owner: 'one', epoch: 2 });
    expect(await takeLease(ledger, 'two')).toEqual({ owner: 'two', epoch: 3 });
    expect(await readLease()).toEqual({ owner: 'two', epoch: 3, heartbeat: 0, released: false });
  });

  it('renews the heartbeat for its holder only', async () => {
    const old = await takeLease(ledger, 'one');
    expect(await ledger.renewLease(old)).toBe(1);
    expect((await readLease())?.heartbeat).toBe(1);
    const held = await takeLease(ledger, 'two');
    expect(await ledger.renewLease(old)).toBeUndefined();
    expect(await ledger.renewLease({ owner: 'two', epoch: old.epoch })).toBeUndefined();
    expect(await ledger.renewLease({ owner: 'one', epoch: held.epoch })).toBeUndefined();
    expect((await readLease())?.heartbeat).toBe(0);
  });

  it('has no heartbeat where it was never taken', async () => {
    expect(await ledger.renewLease({ owner: 'one', epoch: 0 })).toBeUndefined();
    expect(await readLease()).toBeUndefined();
  });

  it('is given back by its holder only', async () => {
    const old = await takeLease(ledger, 'one');
    const held = await takeLease(ledger, 'two');
    await ledger.releaseLease(old);
    expect((await readLease())?.released).toBe(false);
    await ledger.releaseLease(held);
    expect(await readLease()).toEqual({ owner: 'two', epoch: 2, heartbeat: 0, released: true });
  });

  it('gives no rights once it is given back', async () => {
    const held = await takeLease(ledger, 'one');
    await rig.enqueue('p');
    await ledger.releaseLease(held);
    expect(await ledger.renewLease(held)).toBeUndefined();
    expect(await ledger.beginSend(await nextBegin(ledger, held, 'p'))).toEqual({ kind: 'lease_lost' });
    expect(await ledger.markSendsUnknown(held, [], 'r', 0)).toBeUndefined();
  });

  it('is whole again for the next holder after it was given back', async () => {
    await ledger.releaseLease(await takeLease(ledger, 'one'));
    const held = await takeLease(ledger, 'two');
    expect(await readLease()).toEqual({ owner: 'two', epoch: 2, heartbeat: 0, released: false });
    expect(await ledger.renewLease(held)).toBe(1);
  });
});
