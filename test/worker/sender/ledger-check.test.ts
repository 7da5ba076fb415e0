import { beforeEach, describe, expect, it } from '@jest/globals';
import { NO_BREAKER, takeLease } from '../../ledger/contract/ledger-rig.js';
import { LedgerCheck, type OwnAttempts } from '../../../src/worker/sender/ledger-check.js';
import { journaled, makeSendRig, throwing, type SendRig } from '../support/send-rig.js';

const mismatch = (reason: string) => ({ kind: 'ledger', reason });
const OTHER_LEDGER = mismatch('Redis was flushed or exchanged while this process was the sender.');
const OLDER = 'Redis came back older than it was:';
const OTHER_SENDS = mismatch(`${OLDER} its last send differs from the one that this process began.`);
const MISMATCH = mismatch(`${OLDER} it knows 0 sends, this process 1.`);
const STILL_TRUE = { peers: [] };

let rig: SendRig;
/** Attempts that this process began, or tried to begin, and did not write. */
let ownAttempts: OwnAttempts;
let check: LedgerCheck;

beforeEach(async () => {
  rig = await makeSendRig();
  check = new LedgerCheck(rig.runtime, rig.heldLease);
  ({ ownAttempts } = check);
});

async function begin(payoutId = 'p'): Promise<void> {
  const attempt = await rig.begin(payoutId);
  check.noteBegun({ sendCount: check.line.sendCount + 1, last: attempt.token });
  await rig.ledger.finishSend(attempt, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
}

describe('explainDifference', () => {
  it.each([1, 2])('is an older copy where %d sends are there, the last of them another', async (sendCount) => {
    await begin();
    expect(check.explainDifference({ sendCount, last: 'foreign' })).toEqual(OTHER_SENDS);
    expect(check.line).toEqual({ sendCount: 1, last: 'behind-p-1' });
  });

  it('is a begin of this process that took effect late, which it counts from then on', async () => {
    await begin();
    ownAttempts.trackUnwritten({ payoutId: 'p', attempt: 1, token: 'late' });
    expect(check.explainDifference({ sendCount: 2, last: 'late' })).toBeUndefined();
    expect(check.line).toEqual({ sendCount: 2, last: 'late' });
  });

  it('is an older copy also where a late begin of this process is the last of fewer sends', async () => {
    await begin();
    await begin('q');
    ownAttempts.trackUnwritten({ payoutId: 'p', attempt: 1, token: 'late' });
    expect(check.explainDifference({ sendCount: 1, last: 'late' })).toMatchObject({ kind: 'ledger' });
  });
});

describe('findMismatch', () => {
  it('finds nothing wrong with the ledger that it knows, or one that noted a late begin', async () => {
    expect(await check.findMismatch()).toBeUndefined();
    await begin();
    expect(await check.findMismatch()).toBeUndefined();
    ownAttempts.trackUnwritten(await rig.begin('q'));
    expect(await check.findMismatch()).toBeUndefined();
  });

  it('finds another ledger', async () => {
    rig.ledger.flush();
    expect(await check.findMismatch()).toEqual(OTHER_LEDGER);
    expect(check.otherLedger).toEqual(OTHER_LEDGER);
  });

  it('finds an older copy by the number of sends, or by the last of as many, while the lease is its own', async () => {
    const older = rig.ledger.snapshot();
    await begin();
    rig.ledger.restore(older);
    expect(await check.findMismatch()).toEqual(MISMATCH);
    await rig.begin('q');
    expect(await check.findMismatch()).toEqual(OTHER_SENDS);
  });

  it('finds nothing wrong with the sends of the next holder', async () => {
    await begin();
    const lease = await takeLease(rig.ledger, 'two');
    await rig.begin('q', { lease });
    expect(await check.findMismatch()).toBeUndefined();
  });

  it('takes no send for foreign that began while it asked', async () => {
    rig.after.readSender = async () => {
      delete rig.after.readSender;
      await begin();
    };
    expect(await check.findMismatch()).toBeUndefined();
    await begin('q');
    rig.before.readSender = async () => {
      delete rig.before.readSender;
      void rig.ledger.change({ payoutId: 'p', from: 'rejected', to: 'queued', by: 'ann', reason: 'again' });
      await begin();
    };
    expect(await check.findMismatch()).toBeUndefined();
  });

  it('takes no late begin of its own for foreign when another has begun while it asked', async () => {
    const late = await rig.begin('q');
    await rig.ledger.revertSend(late, 'the reply was lost');
    rig.after.readSender = async () => {
      delete rig.after.readSender;
      ownAttempts.trackUnwritten(late);
      check.explainDifference({ sendCount: 1, last: late.token });
      await begin();
      ownAttempts.release(late);
    };
    expect(await check.findMismatch()).toBeUndefined();
  });
});

describe('compareJournal', () => {
  it('asks nobody while only this process writes; it judges once what another has written, and when told to', async () => {
    let asked = 0;
    rig.before.readSender = () => void (asked += 1);
    expect([await check.compareJournal(), asked]).toEqual([undefined, 0]);
    rig.journal.othersWrite(STILL_TRUE);
    expect([await check.compareJournal(), await check.compareJournal(), asked]).toEqual([undefined, undefined, 1]);
    check.distrustJournal();
    expect([await check.compareJournal(), asked]).toEqual([undefined, 2]);
  });

  it('judges what was read on the way, too, though the journal is as this process knows it by now', async () => {
    rig.journal.othersWrite(journaled({ payoutId: 'q', attempt: 1, token: 'theirs' }));
    await check.mayAnotherHaveSent({ payoutId: 'p', attempt: 1, token: 'mine' });
    expect(await rig.journal.changedByOthers()).toBe(false);
    const refused = {
      kind: 'ledger_mismatch',
      mismatch: { kind: 'ledger', reason: expect.stringContaining('payout q') },
    };
    expect(await check.compareJournal()).toEqual(refused);
    expect(await check.compareJournal()).toEqual(refused);
  });

  it('compares the ledger with what the journal said before it, and judges the rest the next time', async () => {
    rig.journal.othersWrite(STILL_TRUE);
    rig.before.readSender = async () => {
      rig.before.readSender = () => undefined;
      rig.journal.othersWrite(journaled({ payoutId: 'q', attempt: 1, token: 'theirs' }));
      await check.mayAnotherHaveSent({ payoutId: 'p', attempt: 1, token: 'mine' });
    };
    expect(await check.compareJournal()).toBeUndefined();
    expect(await check.compareJournal()).toMatchObject({ kind: 'ledger_mismatch', mismatch: { kind: 'ledger' } });
  });

  it('says that another has the lease, not that the ledger is older, where that one has sent meanwhile', async () => {
    rig.journal.othersWrite(STILL_TRUE);
    rig.journal.onReload = () => {
      rig.journal.onReload = () => undefined;
      rig.journal.othersWrite(journaled({ payoutId: 'q', attempt: 1, token: 'theirs' }));
      void takeLease(rig.ledger, 'two');
    };
    expect(await check.compareJournal()).toEqual({ kind: 'lease_lost' });
  });

  it('says first what the ledger lost, then that another has the lease', async () => {
    const older = rig.ledger.snapshot();
    await begin();
    rig.journal.othersWrite(STILL_TRUE);
    await takeLease(rig.ledger, 'two');
    expect(await check.compareJournal()).toEqual({ kind: 'lease_lost' });
    rig.ledger.restore({ ...older, lease: undefined });
    expect(await check.compareJournal()).toEqual({ kind: 'ledger_mismatch', mismatch: MISMATCH });
  });

  it('fails when the journal cannot be read, and judges it once it can be', async () => {
    rig.journal.othersWrite(STILL_TRUE);
    rig.journal.onReload = throwing('EACCES');
    await expect(check.compareJournal()).rejects.toThrow('EACCES');
    rig.journal.onReload = () => undefined;
    expect(await check.compareJournal()).toBeUndefined();
  });
});
