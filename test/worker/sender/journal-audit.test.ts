import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import type { Objection } from '../../../src/ledger/sender-ledger.js';
import { JOURNAL, nextBegin } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import type { MemoryJournal } from '../../doubles/memory-journal.js';
import { endAll, LEASE_MS, makeLoop, makeLoopWorld, type LoopRig, type LoopWorld } from '../support/loop-rig.js';
import { journaled } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = makeLoopWorld();
});
afterEach(async () => endAll(world));
const advance = async (ms: number): Promise<void> => world.clock.advance(ms);
const errorsOf = ({ said }: LoopRig): string[] => said.filter((line) => line.startsWith('error'));
const objections = async (): Promise<readonly Objection[]> => (await world.ledger.readSender()).objections;

describe('a role whose journal does not agree with the ledger, before it has the lease', () => {
  const other = (given: object = {}): JournalLine => ({
    ledgerId: 'ledger-0',
    epoch: 3,
    sends: 7,
    token: 'seventh',
    ...given,
  });

  it('does not take the ledger, says so once, and records one objection, until it agrees', async () => {
    const one = makeLoop(world);
    one.journal.given(other(), journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    let recorded = 0;
    one.before.object = () => void (recorded += 1);
    one.start();
    await advance(LEASE_MS + 30_000);
    const reason = expect.stringContaining('flushed or exchanged');
    expect(one.loop.status).toEqual({ role: 'refused', reason });
    expect((await world.ledger.readSender()).lease).toBeUndefined();
    expect(await objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason, host: 'host-one', dir: '/one', sends: 7 }),
    ]);
    expect({ recorded, errors: errorsOf(one).length }).toEqual({ recorded: 1, errors: 1 });

    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 0, sends: 9 }));
    await advance(LEASE_MS);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringContaining('older copy') });
    expect({ recorded, errors: errorsOf(one).length }).toEqual({ recorded: 1, errors: 2 });

    // As an adoption does it.
    one.journal.lines.length = 1;
    await world.ledger.adoptLedger(
      { epoch: 0, sendCount: 7 },
      { read: [{ ...JOURNAL, journalId: 'j-one' }], givenUp: [] },
    );
    await advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await advance(LEASE_MS + 3_000);
    expect(one.loop.status).toMatchObject({ role: 'sender' });
  });

  it('objects from memory where the disk hangs, takes no lease, and stops nobody while there is nothing to object to', async () => {
    const one = makeLoop(world);
    one.journal.given(other({ ledgerId: 'ledger-1', epoch: 0, sends: 0, token: '' }));
    one.journal.isStalled = true;
    one.start();
    await advance(LEASE_MS + 10_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: 'the disk has not answered' });
    expect({ lease: (await world.ledger.readSender()).lease, objections: await objections() }).toEqual({
      objections: [],
    });
    one.journal.given(journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    await advance(10_000);
    expect(await objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect((await world.ledger.readSender()).lease).toBeUndefined();
  });

  it('records its objection while another process holds the lease, too', async () => {
    const holder = makeLoop(world, { name: 'holder' });
    holder.start();
    await advance(LEASE_MS + 1_000);
    const one = makeLoop(world);
    one.journal.given(other({ ledgerId: 'ledger-1' }));
    one.start();
    await advance(1_000);
    expect(await objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(holder.loop.status).toMatchObject({ role: 'sender' });
  });

  it('compares the ledger with what the journal said before it, whatever is read of the journal meanwhile', async () => {
    const holder = makeLoop(world, { name: 'holder' });
    holder.start();
    await advance(LEASE_MS + 1_000);
    const one = makeLoop(world);
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
    await advance(1_000);
    expect(await objections()).toEqual([]);
    // The ledger never learns of that send: the next comparison tells.
    await advance(10_000);
    expect(await objections()).toHaveLength(1);
  });

  it('compares again every ten seconds while it stands by', async () => {
    const holder = makeLoop(world, { name: 'holder' });
    holder.start();
    await advance(LEASE_MS + 1_000);
    const one = makeLoop(world);
    one.start();
    await advance(1_500);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1' }));
    await advance(7_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await advance(4_000);
    expect(one.loop.status).toMatchObject({ role: 'refused' });
  });

  it.each<[string, (journal: MemoryJournal) => void, RegExp]>([
    [
      'cannot be read',
      (journal) => {
        journal.onReload = () => {
          throw new Error('EACCES');
        };
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
    const { ledger } = world;
    const known = { ...JOURNAL, journalId: 'j-one', sends: 1, token: 'first', at: world.clock.wallNow() };
    const epoch = (await ledger.acquireLease('earlier', await ledger.readSender(), known, 0)) ?? 0;
    ledger.enqueue(aPayout('q'));
    const asked = await nextBegin(ledger, { owner: 'earlier', epoch }, 'q');
    await ledger.beginSend({ ...asked, journal: known });

    const one = makeLoop(world);
    spoil(one.journal);
    one.start();
    await advance(LEASE_MS + 2_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringMatching(reason) });
    expect(await objections()).toEqual([]);
    expect(errorsOf(one)).toHaveLength(1);
    const two = makeLoop(world, { name: 'two' });
    two.start();
    await advance(LEASE_MS + 5_000);
    expect(two.loop.status).toMatchObject({ role: 'sender' });

    one.journal.onReload = () => undefined;
    one.journal.damage(false);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 1, sends: 1, token: asked.token }));
    await advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
  });
});
