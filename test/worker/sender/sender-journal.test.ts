import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { LedgerCheck } from '../../../src/worker/sender/ledger-check.js';
import { OwnSends } from '../../../src/worker/sender/own-sends.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import {
  GUARD_MS,
  IN_FLIGHT_MAX_MS,
  journaled,
  makeSendRig,
  type SendRig,
  throwing,
  UNAVAILABLE,
} from '../support/send-rig.js';

let rig: SendRig;
let check: LedgerCheck;
let sends: OwnSends;
beforeEach(async () => {
  rig = await makeSendRig();
  sends = new OwnSends(rig.heldLease.view, rig.journal, rig.clock.now());
  check = new LedgerCheck(rig.runtime, rig.heldLease, sends);
});

const NOT_SENT = { kind: 'not_sent', reason: 'another process has written to the send journal' };
const THEIRS = { payoutId: 'p', attempt: 1, token: 'theirs' };
const THEIR_SEND = journaled({ ...THEIRS, payoutId: 'q' });
const STILL_TRUE = { peers: [] };

const refused = (reason: string | RegExp, kind = 'ledger') => ({
  ...{ kind: 'ledger_mismatch', mismatch: { kind, reason: expect.stringMatching(reason) } },
});

function atAppend(action: () => void | Promise<void>) {
  rig.journal.onAppend = async () => {
    rig.journal.onAppend = () => undefined;
    await action();
  };
}

it('a journal has each send, so that it is known again, and what came of it', async () => {
  rig.gateway.outcome = { kind: 'rejected', message: 'no', durationMs: 5 };
  await rig.send();
  const at = (rig.gateway.arrivals[0]?.at ?? 0) - 30 + rig.clock.wallOffsetMs;
  const attempt = { payoutId: 'p', attempt: 1, token: 't-1' };
  const { epoch } = rig.heldLease.lease;
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  expect(rig.journal.lines.slice(1)).toEqual([
    {
      ...attempt,
      epoch,
      sends: 1,
      after: { sends: 0, token: '' },
      request,
      inFlightMs: GUARD_MS + IN_FLIGHT_MAX_MS,
      at,
    },
    { ...attempt, outcome: { kind: 'rejected', message: 'no' }, at: at + 30 + 100 },
  ]);
});

it('a journal names the send before each, past those that never came into it', async () => {
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
])('a journal names the send before the first %s', async (_, lastJournalId, after) => {
  const journal = new MemoryJournal();
  journal.given({ ledgerId: rig.heldLease.view.ledgerId, epoch: 1, sends: 4, token: 'fourth' });
  const known = { sendCount: 6, last: 'sixth' };
  const view = { ...rig.heldLease.view, lastJournalId, ...known };
  rig.ledger.restore({ ...rig.ledger.snapshot(), ...known });
  const next = await makeSendRig({ senderLedger: rig.ledger, journal, heldLease: { ...rig.heldLease, view } });
  await next.send('p');
  expect(journal.sends.at(-1)).toMatchObject({ sends: 7, after });
});

it('a journal that cannot be written stops a send first of all, or has it put back', async () => {
  const reason = 'no space left on device';
  rig.journal.failWith = new Error(reason);
  expect([await rig.send(), rig.gateway.connections]).toEqual([{ kind: 'not_sent', reason }, []]);
  rig.journal.failWith = undefined;
  atAppend(throwing(reason));
  expect(await rig.send()).toEqual({ kind: 'not_sent', reason });
  await rig.expectPayout({ state: 'queued', attempt: 1 });
  rig.expectNothingSent();
});

const stall = () => {
  rig.journal.isStalled = true;
  throw new Error('the disk has not answered');
};

it('a journal whose disk hangs after the begin has the payout put back; a late line is no mismatch', async () => {
  const stalled = { kind: 'not_sent', reason: 'the disk has not answered' };
  atAppend(stall);
  expect(await rig.send()).toEqual(stalled);
  await rig.expectPayout({ state: 'queued', attempt: 1 });
  expect(await rig.send('q')).toEqual(stalled);
  rig.expectNothingSent();
  rig.journal.isStalled = false;
  // Without what came of it: its process was killed.
  rig.journal.othersWrite(journaled({ ...THEIRS, token: 't-1' }));
  await rig.expectSent();
  expect(rig.gateway.arrivals).toHaveLength(1);
});

const become = (change: object) => () => {
  rig.ledger.restore({ ...rig.ledger.snapshot(), ...change });
};
it.each<[string, () => unknown]>([
  ['another process has the lease', async () => takeLease(rig.ledger, 'two')],
  ['Redis is unavailable', () => rig.fail('readSender', UNAVAILABLE)],
  ['another send has this number', become({ last: 'theirs' })],
  ['Redis has another number of sends', become({ sendCount: 7 })],
  ['Redis has another ledger', () => Object.assign(rig.heldLease.view, { ledgerId: 'another' })],
  ['Redis came back with fewer heartbeats', () => Object.assign(rig.heldLease, { heartbeat: () => 99 })],
  [
    'the journal has another send of this number',
    () => rig.journal.lines.push(journaled(THEIRS)) && rig.journal.reload(),
  ],
])('a journal whose disk hangs after the begin leaves it to the recovery where %s', async (_, happens) => {
  atAppend(async () => {
    await happens();
    stall();
  });
  expect(await rig.send()).toMatchObject({ kind: 'not_sent' });
  expect(await rig.stateOf()).toBe('sending');
});

it.each<[string, () => void]>([
  ['when it was to be opened again', () => void (rig.journal.ensureWritable = async () => rig.journal.reload())],
  ['at the last look', () => undefined],
])('a journal that was damaged is refused, as the one that lacks something: %s', async (_, prepare) => {
  prepare();
  rig.journal.damage();
  expect(await rig.send()).toEqual(refused('was damaged', 'journal'));
  await rig.expectPayout({ state: 'queued', attempt: 0 });
  rig.journal.damage(false);
  await rig.expectSent();
});

// What it says is judged by `LedgerCheck.compareJournal`, which has tests of its own.
it('a journal to which others wrote stops a send before it begins, unless the ledger knows', async () => {
  await rig.send('q');
  rig.journal.othersWrite(...rig.journal.sends);
  await rig.expectSent();
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
    await rig.expectSent();
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
      THEIR_SEND,
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
      'is no mismatch where the other took the lease; the unwritten is put back',
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
    expect([await rig.send(), await rig.stateOf()]).toEqual([report, state]);
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
    await rig.expectSent('q');
  });
});

const mismatch = (reason: string) => ({ kind: 'ledger', reason });
const OTHER_LEDGER = mismatch('Redis was flushed or exchanged while this process was the sender.');
const OLDER = 'Redis came back older than it was:';
const OTHER_SENDS = mismatch(`${OLDER} its last send differs from the one that this process began.`);
const MISMATCH = mismatch(`${OLDER} it knows 0 sends, this process 1.`);

async function begin(payoutId = 'p') {
  const attempt = await rig.begin(payoutId);
  sends.begun(attempt, sends.line.sendCount + 1);
  await rig.ledger.finishSend(attempt, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
}

it.each([1, 2])(
  'a difference is an older copy where %d sends are there, the last of them another',
  async (sendCount) => {
    await begin();
    expect(check.explainDifference({ sendCount, last: 'foreign', acts: 0 })).toEqual(OTHER_SENDS);
    expect(sends.line).toEqual({ sendCount: 1, last: 'behind-p-1' });
  },
);

it('a difference is a late begin of this process, which it counts from then on', async () => {
  await begin();
  sends.trackUnwritten({ payoutId: 'p', attempt: 1, token: 'late' });
  expect(check.explainDifference({ sendCount: 2, last: 'late', acts: 0 })).toBeUndefined();
  expect(sends.line).toEqual({ sendCount: 2, last: 'late' });
});

it('a difference is an older copy where a late begin is the last of fewer sends', async () => {
  await begin();
  await begin('q');
  sends.trackUnwritten({ payoutId: 'p', attempt: 1, token: 'late' });
  expect(check.explainDifference({ sendCount: 1, last: 'late', acts: 0 })).toMatchObject({ kind: 'ledger' });
});

it('findMismatch finds nothing wrong with the known ledger, nor after a late begin', async () => {
  expect(await check.findMismatch()).toBeUndefined();
  await begin();
  expect(await check.findMismatch()).toBeUndefined();
  sends.trackUnwritten(await rig.begin('q'));
  expect(await check.findMismatch()).toBeUndefined();
});

it('findMismatch finds another ledger', async () => {
  rig.ledger.flush();
  expect([await check.findMismatch(), check.otherLedger]).toEqual([OTHER_LEDGER, OTHER_LEDGER]);
});

it('findMismatch finds an older copy by the number of sends, or the last of as many', async () => {
  const older = rig.ledger.snapshot();
  await begin();
  rig.ledger.restore(older);
  expect(await check.findMismatch()).toEqual(MISMATCH);
  await rig.begin('q');
  expect(await check.findMismatch()).toEqual(OTHER_SENDS);
});

it('findMismatch finds nothing wrong with the sends of the next holder', async () => {
  await begin();
  const lease = await takeLease(rig.ledger, 'two');
  await rig.begin('q', { lease });
  expect(await check.findMismatch()).toBeUndefined();
});

it('findMismatch takes no send for foreign that began while it asked', async () => {
  rig.once('after', 'readSender', begin);
  expect(await check.findMismatch()).toBeUndefined();
  await begin('q');
  rig.once('before', 'readSender', async () => {
    void rig.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', by: 'ann', reason: 'again' });
    await begin();
  });
  expect(await check.findMismatch()).toBeUndefined();
});

it('findMismatch takes no late begin of its own for foreign when another began', async () => {
  const late = await rig.begin('q');
  await rig.ledger.revertSend(late, 'the reply was lost');
  rig.once('after', 'readSender', async () => {
    sends.trackUnwritten(late);
    check.explainDifference({ sendCount: 1, last: late.token, acts: 0 });
    await begin();
    sends.release(late);
  });
  expect(await check.findMismatch()).toBeUndefined();
});

it('compareJournal judges only what others wrote, once, and when told to', async () => {
  let asked = 0;
  rig.before.readSender = () => void (asked += 1);
  expect([await check.compareJournal(), asked]).toEqual([undefined, 0]);
  rig.journal.othersWrite(STILL_TRUE);
  expect([await check.compareJournal(), await check.compareJournal(), asked]).toEqual([undefined, undefined, 1]);
  check.distrustJournal();
  expect([await check.compareJournal(), asked]).toEqual([undefined, 2]);
});

it('compareJournal judges what was read on the way, too', async () => {
  rig.journal.othersWrite(THEIR_SEND);
  await check.mayAnotherHaveSent({ payoutId: 'p', attempt: 1, token: 'mine' });
  expect(await rig.journal.changedByOthers()).toBe(false);
  const refused = {
    kind: 'ledger_mismatch',
    mismatch: { kind: 'ledger', reason: expect.stringContaining('payout q') },
  };
  expect([await check.compareJournal(), await check.compareJournal()]).toEqual([refused, refused]);
});

it('compareJournal judges what the journal said before the ledger; the rest the next time', async () => {
  rig.journal.othersWrite(STILL_TRUE);
  rig.once('before', 'readSender', async () => {
    rig.journal.othersWrite(THEIR_SEND);
    await check.mayAnotherHaveSent({ payoutId: 'p', attempt: 1, token: 'mine' });
  });
  expect(await check.compareJournal()).toBeUndefined();
  expect(await check.compareJournal()).toMatchObject({ kind: 'ledger_mismatch', mismatch: { kind: 'ledger' } });
});

it('compareJournal says that another has the lease where that one has sent meanwhile', async () => {
  rig.journal.othersWrite(STILL_TRUE);
  rig.journal.onReload = () => {
    rig.journal.onReload = () => undefined;
    rig.journal.othersWrite(THEIR_SEND);
    void takeLease(rig.ledger, 'two');
  };
  expect(await check.compareJournal()).toEqual({ kind: 'lease_lost' });
});

it('compareJournal says first what the ledger lost, then that another has the lease', async () => {
  const older = rig.ledger.snapshot();
  await begin();
  rig.journal.othersWrite(STILL_TRUE);
  await takeLease(rig.ledger, 'two');
  expect(await check.compareJournal()).toEqual({ kind: 'lease_lost' });
  rig.ledger.restore({ ...older, lease: undefined });
  expect(await check.compareJournal()).toEqual({ kind: 'ledger_mismatch', mismatch: MISMATCH });
});

it('compareJournal fails when the journal cannot be read, until it can be', async () => {
  rig.journal.othersWrite(STILL_TRUE);
  rig.journal.onReload = throwing('EACCES');
  await expect(check.compareJournal()).rejects.toThrow('EACCES');
  rig.journal.onReload = () => undefined;
  expect(await check.compareJournal()).toBeUndefined();
});
