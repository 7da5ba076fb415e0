import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { JournalAudit } from '../../../src/worker/sender/journal-audit.js';
import { LedgerOutcomeRecorder } from '../../../src/worker/sender/ledger-outcome-recorder.js';
import { StatusTracker } from '../../../src/worker/sender/send-report.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { JOURNAL, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { cutFromRedis, type LoopRig, LoopWorld } from '../support/loop-rig.js';
import { journaled, LEASE_MS, makeSendRig, PLACE, throwing, UNAVAILABLE } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});

describe('a role whose journal does not agree with the ledger, before it has the lease', () => {
  const other = (given: object = {}): JournalLine => ({
    ...{ ledgerId: 'ledger-0', epoch: 3, sends: 7, token: 'seventh', ...given },
  });
  const EMPTY = { ledgerId: 'ledger-1', sends: 0, token: '' };
  const startHolder = async () => {
    const holder = world.start({ name: 'holder' });
    await world.advance(LEASE_MS + 1_000);
    return holder;
  };

  it('takes no lease, says so once, and records one objection, until it agrees', async () => {
    const one = world.make();
    one.journal.given(other(), journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    let recorded = 0;
    one.before.object = () => void (recorded += 1);
    one.start();
    await world.advance(LEASE_MS + 30_000);
    const reason = expect.stringContaining('flushed or exchanged');
    expect([one.loop.status, await world.lease()]).toEqual([{ role: 'refused', reason }, undefined]);
    expect(await world.objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason, host: 'host-one', dir: '/one', sends: 7 }),
    ]);
    expect({ recorded, errors: one.errors() }).toEqual({
      recorded: 1,
      errors: [expect.stringMatching(/contradict each other.*Redis data.*else `payouts stats` shows/)],
    });

    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 0, sends: 9 }));
    await world.advance(LEASE_MS);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringContaining('older copy') });
    expect({ recorded, errors: one.errors().length }).toEqual({ recorded: 1, errors: 2 });

    one.journal.lines.length = 1;
    const read = [{ ...JOURNAL, journalId: 'j-one' }];
    await world.ledger.adoptLedger({ epoch: 0, sendCount: 7 }, { read, givenUp: [] });
    await world.advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(LEASE_MS + 3_000);
    expect(one.loop.status).toMatchObject({ role: 'sender' });
  });

  it('objects from memory where the disk hangs, and stops nobody without an objection', async () => {
    const one = world.make();
    one.journal.given(other({ ...EMPTY, epoch: 0 }));
    one.journal.isStalled = true;
    one.start();
    await world.advance(LEASE_MS + 10_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: 'the disk has not answered' });
    expect([await world.lease(), await world.objections()]).toEqual([undefined, []]);
    one.journal.given(journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    await world.advance(10_000);
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(await world.lease()).toBeUndefined();
  });

  it('records the objections of all journals while another process holds the lease, too', async () => {
    const holder = await startHolder();
    for (const name of ['one', 'two']) {
      const rig = world.make({ name });
      rig.journal.given(other({ ledgerId: 'ledger-1' }));
      rig.start();
      await world.advance(1_000);
    }
    const kind = 'ledger';
    expect(await world.objections()).toMatchObject([
      { journalId: 'j-one', kind },
      { journalId: 'j-two', kind },
    ]);
    expect(holder.loop.status).toMatchObject({ role: 'sender' });
  });

  it('compares the ledger with what the journal said before it', async () => {
    await startHolder();
    const one = world.make();
    one.journal.given(other({ ...EMPTY, epoch: 1 }));
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
    await startHolder();
    const one = world.start();
    await world.advance(1_500);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1' }));
    await world.advance(7_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(4_000);
    expect(one.loop.status).toMatchObject({ role: 'refused' });
  });

  it.each([
    ['cannot be read', /EACCES/],
    ['was damaged while it was in use', /was damaged/],
    ['lost entries that the ledger knows of', /lacks its last entries/],
  ])('refuses by itself where the journal %s, records no objection, and heals', async (what, reason) => {
    // The ledger knows that the journal had an entry.
    const known = { journalId: 'j-one', sends: 1, token: 'first', at: world.clock.wallNow() };
    const { attempt } = await world.earlierSend({ payoutId: 'q', ...known });
    const one = world.make();
    if (what.startsWith('cannot')) one.journal.onReload = throwing('EACCES');
    else if (what.startsWith('was')) one.journal.damage();
    else one.journal.given(other({ ...EMPTY, epoch: 0 }));
    one.start();
    await world.advance(LEASE_MS + 2_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringMatching(reason) });
    expect(await world.objections()).toEqual([]);
    expect(one.errors()).toEqual([expect.stringContaining('its send journal cannot be trusted')]);
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

// Host B, of which the ledger says that it sent last, takes the lease at once; A, which has sent p1, is back later.
it.each([0, 1_500, 3_000])(
  'a Redis that comes back without the sends of a host has nothing sent twice, its link back %i ms later',
  async (ms) => {
    const settings = { quarantineMs: 10_000 };
    const journalOfB = new MemoryJournal('j-B');
    for (const id of ['p0', 'p1']) world.ledger.enqueue(aPayout(id));
    const first = world.make({ name: 'B', journal: journalOfB, ...settings, work: world.sendQueued('p0') });
    first.gateway.outcome = { kind: 'accepted', gatewayId: 'h0', durationMs: 100 };
    first.start();
    await world.advance(LEASE_MS + 15_000);
    expect(await world.stateOf('p0')).toBe('in_progress');
    first.stop.abort();
    await first.ended();
    const copy = world.ledger.snapshot();

    const a = world.start({ name: 'A', ...settings, work: world.sendQueued('p1') });
    await world.advance(LEASE_MS + 15_000);
    expect(await world.stateOf('p1')).toBe('in_progress');
    const b = world.start({ name: 'B2', journal: journalOfB, ...settings, work: world.sendQueued('p1') });
    await world.advance(2_000);
    const [joinA, joinB] = [cutFromRedis(a), cutFromRedis(b)];
    await world.advance(2_000);
    world.ledger.restore(copy);
    joinB();
    await world.advance(ms);
    joinA();
    await world.advance(60_000);
    expect([a, b].map(({ gateway }) => gateway.arrivals.length)).toEqual([1, 0]);
  },
);

describe('a response that only the journal of one host knows', () => {
  // It came when Redis was unavailable, and its process had to end.
  let journal: MemoryJournal;
  let b: LoopRig;
  beforeEach(async () => {
    const { epoch, attempt } = await world.earlierSend({ journalId: 'j-A' });
    const { ledgerId } = await world.ledger.readSender();
    const outcome = { kind: 'accepted', gatewayId: 'h' } as const;
    journal = new MemoryJournal('j-A', [
      ...[{ ledgerId, epoch, sends: 0, token: '' }, journaled(attempt), { ...attempt, outcome, at: 0 }],
    ]);
    b = world.start({ name: 'B' });
    await world.advance(LEASE_MS + 5_000);
    expect(await world.stateOf('p')).toBe('unknown');
  });

  it('is told to the ledger while another host has the lease', async () => {
    const a = world.start({ name: 'A', journal });
    await world.advance(60_000);
    expect([a.loop.status.role, await world.stateOf('p')]).toEqual(['standby', 'in_progress']);
  });

  it('is told once Redis responds again', async () => {
    const a = world.make({ name: 'A', journal });
    a.before.finishSend = throwing(UNAVAILABLE);
    a.start();
    await world.advance(20_000);
    expect(await world.stateOf('p')).toBe('unknown');
    a.before.finishSend = () => undefined;
    await world.advance(30_000);
    expect([await world.stateOf('p'), a.errors()]).toEqual(['in_progress', []]);
  });

  it('keeps nobody from sending where Redis refuses it, and that is said', async () => {
    b.stop.abort();
    await b.ended();
    const a = world.make({ name: 'A', journal });
    a.before.finishSend = throwing('ERR wrong kind of value');
    a.start();
    await world.advance(60_000);
    expect(a.loop.status.role).toBe('sender');
    expect(a.errors()).toEqual(['error cannot record an outcome that the send journal has']);
  });
});

describe('one comparison after another', () => {
  const ofThisHost = { ...JOURNAL, journalId: 'j-lost', host: PLACE.host, sends: 1 };
  const openAudit = async (given: Parameters<typeof makeSendRig>[0] = {}) => {
    const rig = await makeSendRig(given);
    const status = new StatusTracker(rig.runtime.logger);
    const audit = new JournalAudit(rig.runtime, new LedgerOutcomeRecorder(rig.runtime, undefined), status, false);
    return { ...rig, audit, status };
  };

  it('tells the ledger what the journal knows once, and again after this process was the sender', async () => {
    const { audit, begin, journal, ledger, stateOf } = await openAudit();
    expect(await audit.findMismatch()).toBeUndefined();
    const attempt = await begin();
    await journal.append(journaled(attempt));
    journal.noteOutcome(attempt, { kind: 'accepted', gatewayId: 'h' }, 0);
    await ledger.markSendsUnknown(await takeLease(ledger, 'two'), [attempt], 'ended', 0);
    await audit.findMismatch();
    expect(await stateOf()).toBe('unknown');
    audit.replayAgain();
    await audit.findMismatch();
    expect(await stateOf()).toBe('in_progress');
  });

  it('says once that Redis refuses an outcome', async () => {
    const { audit, before, begin, journal, ledger, said } = await openAudit();
    const attempt = await begin();
    await journal.append(journaled(attempt));
    journal.noteOutcome(attempt, { kind: 'accepted', gatewayId: 'h' }, 0);
    await ledger.markSendsUnknown(await takeLease(ledger, 'two'), [attempt], 'ended', 0);
    before.finishSend = throwing('ERR wrong kind of value');
    for (let turn = 0; turn < 3; turn += 1) await audit.findMismatch();
    expect(said).toEqual(['error cannot record an outcome that the send journal has']);
  });

  it('does not compare a journal that it could not read', async () => {
    const { audit, journal, ledger } = await openAudit();
    await journal.bind({ ledgerId: 'another', epoch: 3, sends: 7, token: 'seventh' });
    journal.onReload = throwing('EACCES');
    expect([await audit.findMismatch(), (await ledger.readSender()).objections]).toEqual(['EACCES', []]);
  });

  it('lets a journal send that was bound before another journal of its host came', async () => {
    const journal = new MemoryJournal('j-mine', [{ v: 1, journalId: 'j-mine', bornAt: 1 }]);
    const { audit, ledger } = await openAudit({ journal });
    await ledger.acquireLease('two', await ledger.readSender(), ofThisHost, 0);
    expect(await audit.findMismatch()).toBeUndefined();
  });

  it('notes each other journal once', async () => {
    const { audit, journal, ledger } = await openAudit();
    await ledger.acquireLease('two', await ledger.readSender(), { ...JOURNAL, journalId: 'j-two' }, 0);
    for (let turn = 0; turn < 3; turn += 1) await audit.findMismatch();
    expect(journal.lines.flatMap((line) => ('peers' in line ? [line.peers] : []))).toMatchObject([
      [{ journalId: 'j-two' }],
    ]);
  });

  it('exchanges nothing with the ledger of another gateway', async () => {
    const { audit, begin, journal, ledger, said, status } = await openAudit({ audience: 'staging' });
    await begin();
    await ledger.acquireLease('two', await ledger.readSender(), { ...JOURNAL, journalId: 'j-two' }, 0);
    const reason = expect.stringMatching(/has the payouts of "test", and this worker pays at "staging"/);
    const before = journal.lines.length;
    const refusal = { role: 'refused', reason, cause: 'gateway' };
    expect([await audit.findMismatch(), status.status]).toEqual([reason, refusal]);
    expect([journal.lines.length, (await ledger.readSender()).objections]).toEqual([before, []]);
    expect(said).toEqual([expect.stringContaining('the ledger is of another gateway')]);
  });

  it('binds a journal once to a ledger, and warns of earlier sends only if it was bound to none', async () => {
    const warning = expect.stringContaining('it has none of the earlier sends');
    const { audit, journal, ledger, said } = await openAudit();
    const view = { ...(await ledger.readSender()), sendCount: 5 };
    await audit.bind(view, 2);
    expect(journal.ledger).toMatchObject({ epoch: 1 });
    await audit.bind({ ...view, ledgerId: 'adopted' }, 2);
    expect([journal.ledger, said]).toEqual([expect.objectContaining({ ledgerId: 'adopted', epoch: 2 }), []]);
    const fresh = await openAudit();
    fresh.journal.lines.length = 0;
    await fresh.journal.reload();
    await fresh.audit.bind(view, 2);
    expect(fresh.said).toEqual([warning]);
  });

  it('refuses while the disk hangs, and only then', async () => {
    const { audit, journal, said, status } = await openAudit();
    expect([audit.refuseStalled(), status.status]).toEqual([false, { role: 'standby' }]);
    journal.isStalled = true;
    const reason = expect.stringContaining('does not answer: nothing is sent');
    expect([audit.refuseStalled(), status.status]).toEqual([true, { role: 'refused', reason, cause: 'disk' }]);
    expect(said).toHaveLength(1);
    status.endSending();
    expect(status.status).toEqual({ role: 'refused', reason, cause: 'disk' });
  });

  it.each([
    ['all sends where nothing was sent', { sendCount: 0, lastJournalId: undefined }, [], true],
    ['all sends where only it sent', { sendCount: 2, lastJournalId: 'j-mine' }, ['j-mine'], true],
    ['not all where another sent last', { sendCount: 2, lastJournalId: 'j-two' }, ['j-mine'], false],
    ['not all where the ledger knows another', { sendCount: 0, lastJournalId: undefined }, ['j-mine', 'j-two'], false],
  ])('knows that its journal has %s', async (_, sent, known, hasAll) => {
    const { audit, journal, ledger } = await openAudit();
    const journals = known.map((journalId) => ({ ...JOURNAL, journalId }));
    const view = { ...(await ledger.readSender()), ...sent, journals };
    expect(audit.hasAllSends(view)).toBe(hasAll);
    await journal.notePeers([{ ...JOURNAL, journalId: 'j-two' }]);
    expect(audit.hasAllSends(view)).toBe(false);
  });
});
