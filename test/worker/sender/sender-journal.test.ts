import { beforeEach, describe, expect, it } from '@jest/globals';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { journaled, makeSendRig, type SendRig } from '../support/send-rig.js';

/** What the sender writes to its journal, and what it does where others write to it, or it is damaged. */

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const unavailable = (): never => {
  throw new RedisUnavailableError('Redis unavailable');
};

const NOT_SENT = { kind: 'not_sent', reason: 'another process has written to the send journal' };
const THEIRS = { payoutId: 'p', attempt: 1, token: 'theirs' };
const STILL_TRUE = { peers: [] };

const refused = (reason: string | RegExp, kind = 'ledger') => ({
  kind: 'ledger_mismatch',
  mismatch: { kind, reason: expect.stringMatching(reason) },
});

describe('the journal', () => {
  it('has each send with all that is needed to know it again, and what came of it', async () => {
    rig.gateway.outcome = { kind: 'rejected', message: 'no', durationMs: 5 };
    await rig.send('p');
    const at = (rig.gateway.arrivals[0]?.at ?? 0) - 30 + rig.clock.wallOffsetMs;
    const attempt = { payoutId: 'p', attempt: 1, token: 't-1' };
    expect(rig.journal.lines.slice(1)).toEqual([
      {
        ...attempt,
        epoch: rig.heldLease.lease.epoch,
        sends: 1,
        after: { sends: 0, token: '' },
        request: { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
        at,
      },
      { ...attempt, outcome: { kind: 'rejected', message: 'no' }, at: at + 30 + 100 },
    ]);
  });

  it('names the send before each, past those that never came into it', async () => {
    await rig.send('p');
    rig.ledger.enqueue(aPayout('r'));
    rig.journal.onAppend = () => {
      rig.journal.onAppend = () => undefined;
      throw new Error('no space left on device');
    };
    expect(await rig.send('q')).toMatchObject({ kind: 'not_sent' });
    await rig.send('r');
    expect(rig.journal.sends.map(({ payoutId, sends, after }) => ({ payoutId, sends, after }))).toEqual([
      { payoutId: 'p', sends: 1, after: { sends: 0, token: '' } },
      { payoutId: 'r', sends: 3, after: { sends: 1, token: 't-1' } },
    ]);
  });

  it.each([
    ['by its own last entry, where it has the last send', 'j-mine', { sends: 4, token: 'fourth' }],
    ['by the ledger, where another journal did', 'j-theirs', { sends: 6, token: 'sixth' }],
  ])('names the send before the first %s', async (_, lastJournalId, after) => {
    const journal = new MemoryJournal();
    journal.given({ ledgerId: rig.heldLease.view.ledgerId, epoch: 1, sends: 4, token: 'fourth' });
    const view = { ...rig.heldLease.view, lastJournalId, sendCount: 6, last: 'sixth' };
    rig.ledger.restore({ ...rig.ledger.snapshot(), sendCount: 6, last: 'sixth' });
    const next = await makeSendRig({ senderLedger: rig.ledger, journal, heldLease: { ...rig.heldLease, view } });
    await next.send('p');
    expect(journal.sends.at(-1)).toMatchObject({ sends: 7, after });
  });

  it('that cannot be written stops a send before anything else', async () => {
    rig.journal.failWith = new Error('no space left on device');
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'no space left on device' });
    expect(rig.gateway.connections).toEqual([]);
  });

  it('that fails after the begin has the payout put back', async () => {
    rig.journal.onAppend = () => {
      throw new Error('no space left on device');
    };
    expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'no space left on device' });
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
    rig.expectNothingSent();
  });

  describe('whose disk hangs after the begin', () => {
    const stall = (): void => {
      rig.journal.isStalled = true;
      throw new Error('the disk has not answered');
    };

    it('has the payout put back, for a process with another disk, and the line that comes late is no mismatch', async () => {
      rig.journal.onAppend = stall;
      expect(await rig.send('p')).toEqual({ kind: 'not_sent', reason: 'the disk has not answered' });
      expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
      expect(await rig.send('q')).toEqual({ kind: 'not_sent', reason: 'the disk has not answered' });
      rig.expectNothingSent();
      rig.journal.isStalled = false;
      rig.journal.onAppend = () => undefined;
      // Without what came of it: its process was killed.
      rig.journal.othersWrite(journaled({ payoutId: 'p', attempt: 1, token: 't-1' }));
      expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
      expect(rig.gateway.arrivals).toHaveLength(1);
    });

    it.each<[string, () => void | Promise<void>]>([
      [
        'another process has the lease',
        async () => {
          await rig.ledger.acquireLease('two', await rig.ledger.readSender(), JOURNAL, 0);
        },
      ],
      ['Redis is unavailable', () => void (rig.before.readSender = unavailable)],
      [
        'Redis came back older, and another send has this number',
        () => {
          rig.ledger.restore({ ...rig.ledger.snapshot(), last: 'theirs' });
        },
      ],
      [
        'Redis came back with another number of sends',
        () => {
          rig.ledger.restore({ ...rig.ledger.snapshot(), sendCount: 7 });
        },
      ],
      ['Redis came back with fewer heartbeats', () => void Object.assign(rig.heldLease, { heartbeat: () => 99 })],
      [
        'the journal has another send of this number',
        () => {
          rig.journal.given(journaled(THEIRS));
        },
      ],
    ])('leaves it to the recovery where %s', async (_, happens) => {
      rig.journal.onAppend = async () => {
        await happens();
        stall();
      };
      expect(await rig.send('p')).toMatchObject({ kind: 'not_sent' });
      expect(await rig.stateOf('p')).toBe('sending');
    });
  });

  it.each<[string, (rig: SendRig) => void]>([
    ['when it was to be opened again', ({ journal }) => (journal.ensureWritable = async () => journal.reload())],
    ['at the last look', () => undefined],
  ])('that was damaged is refused, as the one that lacks something: %s', async (_, prepare) => {
    prepare(rig);
    rig.journal.damage();
    expect(await rig.send('p')).toEqual(refused('was damaged', 'journal'));
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 0 });
    rig.journal.damage(false);
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });
});

describe('a journal to which another process has written', () => {
  it('with what the ledger knows, an earlier sender which was stopped in between, is no mismatch', async () => {
    await rig.send('q');
    rig.journal.othersWrite(...rig.journal.sends);
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it.each<[string, (known: { ledgerId: string; epoch: number; sends: number; token: string }) => JournalLine, RegExp]>([
    ['under a later lease', (known) => ({ ...known, epoch: 2 }), /lease epoch is 1.* seen 2/],
    ['after more sends', (known) => ({ ...known, sends: 2, token: 'x' }), /knows 1 sends, the journal 2/],
    ['after another send of the same number', (known) => ({ ...known, token: 'x' }), /send 1 differs/],
    ['with a send that the ledger forgot', () => journaled(THEIRS), /not know that payout p was sent/],
  ])('%s stops a send before it begins', async (_, theirs, reason) => {
    await rig.send('q');
    const { ledgerId } = rig.heldLease.view;
    rig.journal.othersWrite(theirs({ ledgerId, epoch: 1, sends: 1, token: 't-1' }));
    expect(await rig.send('p')).toEqual(refused(reason));
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 0 });
    expect(rig.gateway.arrivals).toHaveLength(1);
  });

  it('cannot be read, or Redis cannot be asked: nothing begins', async () => {
    rig.journal.othersWrite(STILL_TRUE);
    rig.journal.onReload = () => {
      throw new Error('EACCES');
    };
    await expect(rig.send('p')).rejects.toThrow('EACCES');
    rig.journal.onReload = () => undefined;
    rig.before.readSender = () => {
      throw new RedisUnavailableError('Redis unavailable');
    };
    await expect(rig.send('p')).rejects.toThrow('Redis unavailable');
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 0 });
    rig.expectNothingSent();
  });

  it('who took the lease is no mismatch: this process is only not the sender any more', async () => {
    rig.journal.othersWrite(STILL_TRUE);
    rig.before.readSender = async () => {
      delete rig.before.readSender;
      await rig.ledger.acquireLease('two', await rig.ledger.readSender(), JOURNAL, 0);
    };
    expect(await rig.send('p')).toEqual({ kind: 'lease_lost' });
    expect(await rig.stateOf()).toBe('queued');
    rig.expectNothingSent();
  });

  it('does not hide that the ledger came back older', async () => {
    const older = { ...rig.ledger.snapshot(), lease: undefined };
    await rig.send('q');
    rig.ledger.restore(older);
    rig.journal.othersWrite(STILL_TRUE);
    expect(await rig.send('p')).toEqual(refused('it knows 0 sends, this process 1'));
  });
});

describe('a journal to which another process writes while a send begins', () => {
  const whileItBegins = (write: () => void): void => {
    rig.journal.onAppend = () => {
      rig.journal.onAppend = () => undefined;
      write();
    };
  };

  it('has the payout put back before anything is written, and sent once what came was judged', async () => {
    whileItBegins(() => {
      rig.journal.othersWrite(STILL_TRUE);
    });
    expect(await rig.send('p')).toEqual(NOT_SENT);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'queued', attempt: 1 });
    expect(rig.journal.outcomes).toEqual(['p 1 not_sent']);
    rig.expectNothingSent();
    expect(await rig.send('p')).toMatchObject({ kind: 'sent' });
  });

  it('writes nothing either where the recovery has read what came in the meantime', async () => {
    let whileSending = rig.ledger.snapshot();
    whileItBegins(() => {
      whileSending = rig.ledger.snapshot();
      rig.journal.othersWrite(STILL_TRUE);
    });
    await rig.send('q');
    rig.journal.onAppend = async () => {
      rig.journal.onAppend = () => undefined;
      rig.journal.othersWrite(STILL_TRUE);
      // A Redis that comes back older has `q` as being sent: the recovery reads the journal before it puts that back.
      rig.ledger.restore(whileSending);
      await rig.sender.recovery.resolveLeftovers();
      expect(await rig.journal.changedByOthers()).toBe(false);
    };
    expect(await rig.send('p')).toEqual(refused('it knows 1 sends, this process 2'));
    rig.expectNothingSent();
  });

  it('is a mismatch at once where the ledger does not know what came', async () => {
    whileItBegins(() => {
      rig.journal.othersWrite(journaled({ ...THEIRS, payoutId: 'q' }));
    });
    expect(await rig.send('p')).toEqual(refused('does not know that payout q was sent'));
    expect(await rig.stateOf()).toBe('queued');
    rig.expectNothingSent();
  });

  it('leaves the payout in sending where the other may have sent the attempt of the same number', async () => {
    whileItBegins(() => {
      rig.journal.othersWrite(journaled(THEIRS));
    });
    expect(await rig.send('p')).toEqual(refused('does not know that payout p was sent'));
    expect(await rig.stateOf()).toBe('sending');
    await rig.sender.recovery.resolveLeftovers();
    expect(await rig.stateOf()).toBe('unknown');
    rig.expectNothingSent();
  });

  it('leaves the payout in sending where what came cannot be read', async () => {
    whileItBegins(() => {
      rig.journal.othersWrite(STILL_TRUE);
      rig.journal.onReload = () => {
        throw new Error('EACCES');
      };
    });
    expect(await rig.send('p')).toEqual(NOT_SENT);
    expect(await rig.stateOf()).toBe('sending');
    rig.expectNothingSent();
  });

  it('begins nothing before Redis could be asked about what came', async () => {
    whileItBegins(() => {
      rig.journal.othersWrite(STILL_TRUE);
      rig.before.readSender = () => {
        throw new RedisUnavailableError('Redis unavailable');
      };
    });
    expect(await rig.send('p')).toEqual(NOT_SENT);
    await expect(rig.send('q')).rejects.toThrow('Redis unavailable');
    expect(await rig.ledger.readPayout('q')).toMatchObject({ attempt: 0 });
    delete rig.before.readSender;
    expect(await rig.send('q')).toMatchObject({ kind: 'sent' });
  });

  it('who took the lease is no mismatch; what was not written is put back all the same', async () => {
    whileItBegins(() => {
      rig.journal.othersWrite(STILL_TRUE);
      void rig.ledger.adoptLedger({ epoch: 0, sendCount: 0 }, { read: [], givenUp: [] });
    });
    expect(await rig.send('p')).toEqual({ kind: 'lease_lost' });
    expect(await rig.stateOf()).toBe('queued');
    rig.expectNothingSent();
  });
});
