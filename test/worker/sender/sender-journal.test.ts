import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { journaled, makeSendRig, throwing, UNAVAILABLE, type SendRig } from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const NOT_SENT = { kind: 'not_sent', reason: 'another process has written to the send journal' };
const THEIRS = { payoutId: 'p', attempt: 1, token: 'theirs' };
const STILL_TRUE = { peers: [] };

const refused = (reason: string | RegExp, kind = 'ledger') => ({
  ...{ kind: 'ledger_mismatch', mismatch: { kind, reason: expect.stringMatching(reason) } },
});

function atAppend(action: () => void | Promise<void>): void {
  rig.journal.onAppend = async () => {
    rig.journal.onAppend = () => undefined;
    await action();
  };
}

describe('the journal', () => {
  it('has each send with all that is needed to know it again, and what came of it', async () => {
    rig.gateway.outcome = { kind: 'rejected', message: 'no', durationMs: 5 };
    await rig.send();
    const at = (rig.gateway.arrivals[0]?.at ?? 0) - 30 + rig.clock.wallOffsetMs;
    const attempt = { payoutId: 'p', attempt: 1, token: 't-1' };
    const { epoch } = rig.heldLease.lease;
    const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
    expect(rig.journal.lines.slice(1)).toEqual([
      { ...attempt, epoch, sends: 1, after: { sends: 0, token: '' }, request, at },
      { ...attempt, outcome: { kind: 'rejected', message: 'no' }, at: at + 30 + 100 },
    ]);
  });

  it('names the send before each, past those that never came into it', async () => {
    await rig.send();
    rig.ledger.enqueue(aPayout('r'));
    atAppend(throwing('no space left on device'));
    expect(await rig.send('q')).toMatchObject({ kind: 'not_sent' });
    await rig.send('r');
    expect(rig.journal.sends.map(({ payoutId, sends, after }) => [payoutId, sends, after.sends, after.token])).toEqual([
      ['p', 1, 0, ''],
      ['r', 3, 1, 't-1'],
    ]);
  });

  it.each([
    ['by its own last entry, where it has the last send', 'j-mine', { sends: 4, token: 'fourth' }],
    ['by the ledger, where another journal did', 'j-theirs', { sends: 6, token: 'sixth' }],
  ])('names the send before the first %s', async (_, lastJournalId, after) => {
    const journal = new MemoryJournal();
    journal.given({ ledgerId: rig.heldLease.view.ledgerId, epoch: 1, sends: 4, token: 'fourth' });
    const known = { sendCount: 6, last: 'sixth' };
    const view = { ...rig.heldLease.view, lastJournalId, ...known };
    rig.ledger.restore({ ...rig.ledger.snapshot(), ...known });
    const next = await makeSendRig({ senderLedger: rig.ledger, journal, heldLease: { ...rig.heldLease, view } });
    await next.send('p');
    expect(journal.sends.at(-1)).toMatchObject({ sends: 7, after });
  });

  it('that cannot be written stops a send before anything else; one that fails after the begin has it put back', async () => {
    const reason = 'no space left on device';
    rig.journal.failWith = new Error(reason);
    expect(await rig.send()).toEqual({ kind: 'not_sent', reason });
    expect(rig.gateway.connections).toEqual([]);
    rig.journal.failWith = undefined;
    atAppend(throwing(reason));
    expect(await rig.send()).toEqual({ kind: 'not_sent', reason });
    await rig.expectPayout({ state: 'queued', attempt: 1 });
    rig.expectNothingSent();
  });

  describe('whose disk hangs after the begin', () => {
    const stall = (): void => {
      rig.journal.isStalled = true;
      throw new Error('the disk has not answered');
    };

    it('has the payout put back, for a process with another disk, and the line that comes late is no mismatch', async () => {
      const stalled = { kind: 'not_sent', reason: 'the disk has not answered' };
      atAppend(stall);
      expect(await rig.send()).toEqual(stalled);
      await rig.expectPayout({ state: 'queued', attempt: 1 });
      expect(await rig.send('q')).toEqual(stalled);
      rig.expectNothingSent();
      rig.journal.isStalled = false;
      // Without what came of it: its process was killed.
      rig.journal.othersWrite(journaled({ ...THEIRS, token: 't-1' }));
      expect(await rig.send()).toMatchObject({ kind: 'sent' });
      expect(rig.gateway.arrivals).toHaveLength(1);
    });

    const become = (change: object) => (): void => {
      rig.ledger.restore({ ...rig.ledger.snapshot(), ...change });
    };
    it.each<[string, () => unknown]>([
      ['another process has the lease', async () => takeLease(rig.ledger, 'two')],
      ['Redis is unavailable', () => rig.fail('readSender', UNAVAILABLE)],
      ['another send has this number', become({ last: 'theirs' })],
      ['Redis has another number of sends', become({ sendCount: 7 })],
      ['Redis came back with fewer heartbeats', () => Object.assign(rig.heldLease, { heartbeat: () => 99 })],
      [
        'the journal has another send of this number',
        () => rig.journal.lines.push(journaled(THEIRS)) && rig.journal.reload(),
      ],
    ])('leaves it to the recovery where %s', async (_, happens) => {
      atAppend(async () => {
        await happens();
        stall();
      });
      expect(await rig.send()).toMatchObject({ kind: 'not_sent' });
      expect(await rig.stateOf()).toBe('sending');
    });
  });

  it.each<[string, () => void]>([
    ['when it was to be opened again', () => void (rig.journal.ensureWritable = async () => rig.journal.reload())],
    ['at the last look', () => undefined],
  ])('that was damaged is refused, as the one that lacks something: %s', async (_, prepare) => {
    prepare();
    rig.journal.damage();
    expect(await rig.send()).toEqual(refused('was damaged', 'journal'));
    await rig.expectPayout({ state: 'queued', attempt: 0 });
    rig.journal.damage(false);
    expect(await rig.send()).toMatchObject({ kind: 'sent' });
  });
});

// What it says is judged by `LedgerCheck.compareJournal`, which has tests of its own.
it('a journal to which another process has written stops a send before it begins, unless the ledger knows that', async () => {
  await rig.send('q');
  rig.journal.othersWrite(...rig.journal.sends);
  expect(await rig.send()).toMatchObject({ kind: 'sent' });
  rig.ledger.enqueue(aPayout('r'));
  rig.journal.othersWrite(journaled({ ...THEIRS, payoutId: 's' }));
  expect(await rig.send('r')).toEqual(refused(/not know that payout s was sent/));
  await rig.expectPayout({ state: 'queued', attempt: 0 }, 'r');
  expect(rig.gateway.arrivals).toHaveLength(2);
});

describe('a journal to which another process writes while a send begins', () => {
  it('has the payout put back before anything is written, and sent once what came was judged', async () => {
    atAppend(() => {
      rig.journal.othersWrite(STILL_TRUE);
    });
    expect(await rig.send()).toEqual(NOT_SENT);
    await rig.expectPayout({ state: 'queued', attempt: 1 });
    expect(rig.journal.outcomes).toEqual(['p 1 not_sent']);
    rig.expectNothingSent();
    expect(await rig.send()).toMatchObject({ kind: 'sent' });
  });

  it('writes nothing either where the recovery has read what came in the meantime', async () => {
    let whileSending = rig.ledger.snapshot();
    atAppend(() => {
      whileSending = rig.ledger.snapshot();
      rig.journal.othersWrite(STILL_TRUE);
    });
    await rig.send('q');
    atAppend(async () => {
      rig.journal.othersWrite(STILL_TRUE);
      // A Redis that comes back older has `q` as being sent: the recovery reads the journal before it puts that back.
      rig.ledger.restore(whileSending);
      await rig.sender.recovery.resolveLeftovers();
      expect(await rig.journal.changedByOthers()).toBe(false);
    });
    expect(await rig.send()).toEqual(refused('it knows 1 sends, this process 2'));
    rig.expectNothingSent();
  });

  it.each<[string, JournalLine, object, states: string[], ...also: (() => unknown)[]]>([
    [
      'is a mismatch at once where the ledger does not know what came',
      journaled({ ...THEIRS, payoutId: 'q' }),
      refused('does not know that payout q was sent'),
      ['queued', 'queued'],
    ],
    [
      'leaves the payout in sending where the other may have sent the attempt of the same number',
      journaled(THEIRS),
      refused('does not know that payout p was sent'),
      ['sending', 'unknown'],
    ],
    [
      'leaves the payout in sending where what came cannot be read',
      STILL_TRUE,
      NOT_SENT,
      ['sending', 'unknown'],
      () => (rig.journal.onReload = throwing('EACCES')),
    ],
    [
      'is no mismatch where the other took the lease; what was not written is put back all the same',
      STILL_TRUE,
      { kind: 'lease_lost' },
      ['queued', 'queued'],
      () => rig.ledger.adoptLedger({ epoch: 0, sendCount: 0 }, { read: [], givenUp: [] }),
    ],
  ])('%s', async (_, line, report, [state, recovered], ...also) => {
    atAppend(() => {
      rig.journal.othersWrite(line);
      for (const happens of also) happens();
    });
    expect(await rig.send()).toEqual(report);
    expect(await rig.stateOf()).toBe(state);
    await rig.sender.recovery.resolveLeftovers();
    expect(await rig.stateOf()).toBe(recovered);
    rig.expectNothingSent();
  });

  it('begins nothing before Redis could be asked about what came', async () => {
    atAppend(() => {
      rig.journal.othersWrite(STILL_TRUE);
      rig.fail('readSender', UNAVAILABLE);
    });
    expect(await rig.send()).toEqual(NOT_SENT);
    await expect(rig.send('q')).rejects.toThrow('Redis unavailable');
    await rig.expectPayout({ attempt: 0 }, 'q');
    delete rig.before.readSender;
    expect(await rig.send('q')).toMatchObject({ kind: 'sent' });
  });
});
