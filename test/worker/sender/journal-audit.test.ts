import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import type { MemoryJournal } from '../../doubles/memory-journal.js';
import { LEASE_MS, LoopWorld } from '../support/loop-rig.js';
import { journaled, throwing } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});

describe('a role whose journal does not agree with the ledger, before it has the lease', () => {
  const other = (given: object = {}): JournalLine => ({
    ledgerId: 'ledger-0',
    epoch: 3,
    sends: 7,
    token: 'seventh',
    ...given,
  });

  it('does not take the ledger, says so once, and records one objection, until it agrees', async () => {
    const one = world.make();
    one.journal.given(other(), journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    let recorded = 0;
    one.before.object = () => void (recorded += 1);
    one.start();
    await world.advance(LEASE_MS + 30_000);
    const reason = expect.stringContaining('flushed or exchanged');
    expect(one.loop.status).toEqual({ role: 'refused', reason });
    expect(await world.lease()).toBeUndefined();
    expect(await world.objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason, host: 'host-one', dir: '/one', sends: 7 }),
    ]);
    expect({ recorded, errors: one.errors().length }).toEqual({ recorded: 1, errors: 1 });

    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 0, sends: 9 }));
    await world.advance(LEASE_MS);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringContaining('older copy') });
    expect({ recorded, errors: one.errors().length }).toEqual({ recorded: 1, errors: 2 });

    // As an adoption does it.
    one.journal.lines.length = 1;
    await world.ledger.adoptLedger(
      { epoch: 0, sendCount: 7 },
      { read: [{ ...JOURNAL, journalId: 'j-one' }], givenUp: [] },
    );
    await world.advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(LEASE_MS + 3_000);
    expect(one.loop.status).toMatchObject({ role: 'sender' });
  });

  it('objects from memory where the disk hangs, takes no lease, and stops nobody while there is nothing to object to', async () => {
    const one = world.make();
    one.journal.given(other({ ledgerId: 'ledger-1', epoch: 0, sends: 0, token: '' }));
    one.journal.isStalled = true;
    one.start();
    await world.advance(LEASE_MS + 10_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: 'the disk has not answered' });
    expect({ lease: await world.lease(), objections: await world.objections() }).toEqual({
      objections: [],
    });
    one.journal.given(journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    await world.advance(10_000);
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(await world.lease()).toBeUndefined();
  });

  it('records its objection while another process holds the lease, too', async () => {
    const holder = world.start({ name: 'holder' });
    await world.advance(LEASE_MS + 1_000);
    const one = world.make();
    one.journal.given(other({ ledgerId: 'ledger-1' }));
    one.start();
    await world.advance(1_000);
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(holder.loop.status).toMatchObject({ role: 'sender' });
  });

  it('compares the ledger with what the journal said before it, whatever is read of the journal meanwhile', async () => {
    world.start({ name: 'holder' });
    await world.advance(LEASE_MS + 1_000);
    const one = world.make();
    one.journal.given(other({ ledgerId: 'ledger-1', epoch: 1, sends: 0, token: '' }));
    let wasRead = false;
    one.journal.onReload = () => void (wasRead = true);
    one.after.readSender = async () => {
      if (!wasRead) return;
      one.after.readSender = () => undefined;
      one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 1, sends: 1, token: 'of the holder' }));
      await one.journal.reload();
    };
    one.start();
    await world.advance(1_000);
    expect(await world.objections()).toEqual([]);
    // The ledger never learns of that send: the next comparison tells.
    await world.advance(10_000);
    expect(await world.objections()).toHaveLength(1);
  });

  it('compares again every ten seconds while it stands by', async () => {
    world.start({ name: 'holder' });
    await world.advance(LEASE_MS + 1_000);
    const one = world.start();
    await world.advance(1_500);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1' }));
    await world.advance(7_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(4_000);
    expect(one.loop.status).toMatchObject({ role: 'refused' });
  });

  it.each<[string, (journal: MemoryJournal) => void, RegExp]>([
    [
      'cannot be read',
      (journal) => {
        journal.onReload = throwing('EACCES');
      },
      /EACCES/,
    ],
    [
      'was damaged while it was in use',
      (journal) => {
        journal.damage();
      },
      /was damaged/,
    ],
    [
      'lost entries that the ledger knows of',
      (journal) => {
        journal.given(other({ ledgerId: 'ledger-1', epoch: 0, sends: 0, token: '' }));
      },
      /lacks its last entries/,
    ],
  ])('refuses by itself where the journal %s, records no objection, and heals', async (_, spoil, reason) => {
    // The ledger knows that the journal had an entry.
    const { attempt } = await world.earlierSend({
      payoutId: 'q',
      journalId: 'j-one',
      sends: 1,
      token: 'first',
      at: world.clock.wallNow(),
    });

    const one = world.make();
    spoil(one.journal);
    one.start();
    await world.advance(LEASE_MS + 2_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringMatching(reason) });
    expect(await world.objections()).toEqual([]);
    expect(one.errors()).toHaveLength(1);
    const two = world.start({ name: 'two' });
    await world.advance(LEASE_MS + 5_000);
    expect(two.loop.status).toMatchObject({ role: 'sender' });

    one.journal.onReload = () => undefined;
    one.journal.damage(false);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 1, sends: 1, token: attempt.token }));
    await world.advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
  });
});
