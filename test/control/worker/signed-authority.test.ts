import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Act } from '../../../src/control/approvals/act.js';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { journaled } from '../../worker/support/send-rig.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import { DAY_MS, entryOf, intentHashOf, iso, PLATFORM, signAct, signIntent } from '../support/signed.js';

const KEYRING = keyringOf(keyEntry(testKey(1)), entryOf(2, 'ann', 'operator'));
const DOUBT_MS = 11_000;

let clock: ManualClock;
let journal: MemoryJournal;
let authority: SignedAuthority;
const open = (doubtMs = DOUBT_MS): SignedAuthority =>
  new SignedAuthority({ platformId: PLATFORM, keyring: KEYRING, journal, clock, doubtMs });
let payout: Payout;
beforeEach(() => {
  clock = new ManualClock();
  journal = new MemoryJournal();
  authority = open();
  const [fields, at] = [{ payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' }, clock.wallNow()];
  const times = { createdAt: iso(at), updatedAt: iso(at), history: [] };
  payout = { ...fields, ...times, state: 'queued', attempt: 0, requeueCount: 0, signed: signIntent(fields, { at }) };
});

function anAct(given: Partial<Act> = {}): string {
  const now = clock.wallNow();
  const about = { act: 'resend', payoutId: 'p', intent: intentHashOf(payout), attempt: 1 } as const;
  const times = { at: iso(now), expiresAt: iso(now + DAY_MS) };
  return signAct(2, { audience: TEST_AUDIENCE, ...about, reason: 'looked it up', by: 'ann', ...times, ...given });
}

const attemptOf = (attempt: number) => ({ payoutId: 'p', attempt, token: `t${attempt}` });

/** This worker journals an attempt. @param at - long ago, unless it is said */
async function sent(given: Payout, attempt: number, at?: number, by = authority): Promise<void> {
  const permit = by.permit(given);
  if (permit.kind !== 'granted') throw new Error('not granted');
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  const { signed } = permit;
  await journal.append(journaled(attemptOf(attempt), { signed, ...(at !== undefined && { at }) }));
}

const refused = (reason: string, isTampering: boolean): object => ({
  ...{ kind: 'refused', hold: expect.objectContaining({ reason, isTampering }) },
});

describe('a worker with a keyring', () => {
  it('lets pass what a producer signed, with what the journal is to note', () => {
    const [issuedAt, { signature, audience }] = [clock.wallNow(), { ...payout.signed }];
    const times = { issuedAt, expiresAt: issuedAt + 7 * DAY_MS, doubtMs: DOUBT_MS };
    const signed = { ...times, intent: intentHashOf(payout), key: 'shop', proof: { signature, audience } };
    expect(authority.permit(payout)).toEqual({ kind: 'granted', signed });
  });

  it('holds what is not signed, altered, which is tampering, or expired', () => {
    const { signed, ...unsigned } = payout;
    expect(signed).toBeDefined();
    expect(authority.permit(unsigned)).toEqual(refused('unsigned', false));
    expect(authority.permit({ ...payout, addressTo: 'wallet-2' })).toEqual(refused('bad_signature', true));
    clock.wallOffsetMs += 7 * DAY_MS;
    expect(authority.permit(payout)).toEqual(refused('expired', false));
  });

  it('holds what was signed before its journal began, until the host states that nothing is missing', async () => {
    journal.given({ v: 3, journalId: 'j', bornAt: clock.wallNow() + 1 });
    expect(authority.permit(payout)).toEqual(refused('before_birth', false));
    await journal.noteComplete({ at: clock.wallNow(), by: 'ann', reason: 'new host' });
    expect(authority.permit(payout).kind).toBe('granted');
  });

  it('holds what the journal may have forgotten, also with the clock set back', () => {
    const end = clock.wallNow() + 7 * DAY_MS;
    journal.given({ v: 3, journalId: 'j', bornAt: 0, prunedUpTo: end - 1 });
    expect(authority.permit(payout).kind).toBe('granted');
    journal.given({ v: 3, journalId: 'j', bornAt: 0, prunedUpTo: end });
    expect(authority.permit(payout)).toEqual(refused('forgotten', false));
  });
});

describe('a payout that the journal has as sent', () => {
  it('is held whatever Redis says of its attempts, with the command that names the one of the journal', async () => {
    await sent(payout, 1);
    for (const attempt of [0, 1, 5])
      expect(authority.permit({ ...payout, attempt })).toEqual(refused('sent_before', true));
    const permit = authority.permit({ ...payout, attempt: 2, act: anAct({ attempt: 2 }) });
    expect(permit).toMatchObject({ hold: { message: expect.stringContaining('release --attempt 1 --key FILE') } });
    expect(authority.permit({ ...payout, attempt: 2, act: anAct() }).kind).toBe('granted');
  });

  it('is let pass once it is proved that it was not sent', async () => {
    await sent(payout, 1);
    journal.noteOutcome(attemptOf(1), { kind: 'not_sent', reason: 'no slot' }, 0);
    expect(authority.permit({ ...payout, attempt: 1 }).kind).toBe('granted');
  });

  it('is let pass by the act of an operator, once, and by no other', async () => {
    await sent(payout, 1);
    for (const act of [anAct({ act: 'resume' }), anAct({ by: 'shop' }), '{"act":'])
      expect(authority.permit({ ...payout, attempt: 1, act })).toEqual(refused('sent_before', true));
    const again = { ...payout, attempt: 1, act: anAct() };
    expect(authority.permit(again)).toMatchObject({ kind: 'granted', signed: { clears: [1] } });
    await sent(again, 2);
    expect(authority.permit({ ...again, attempt: 2 })).toEqual(refused('sent_before', true));
  });

  it.each([
    [DOUBT_MS + 60_000, 'refused'],
    [DOUBT_MS - 1_000, 'granted'],
  ])('counts an act once the request is over by the settings of who sent it, too: %i ms', async (doubtMs, kind) => {
    await sent(payout, 1, clock.wallNow(), open(doubtMs));
    clock.wallOffsetMs += DOUBT_MS;
    expect(authority.permit({ ...payout, attempt: 1, act: anAct() }).kind).toBe(kind);
  });

  it('is held with an act of a moment at which its request could be on its way, unless it was rejected', async () => {
    await sent(payout, 1, clock.wallNow());
    const again = { ...payout, attempt: 1, act: anAct() };
    const message = expect.stringContaining('could still be on its way');
    expect(authority.permit(again)).toMatchObject({ hold: { message } });
    journal.noteOutcome(attemptOf(1), { kind: 'rejected', message: 'no' }, clock.wallNow());
    expect(authority.permit(again).kind).toBe('granted');
  });
});

it('the act that ends a pause is accepted once, and not where it was signed before the pause', async () => {
  const [act, at] = [anAct({ act: 'resume', payoutId: '', intent: '', attempt: undefined }), clock.wallNow()];
  const verdict = authority.judgeResume(act, at);
  if (verdict.kind !== 'accepted') throw new Error(verdict.message);
  const others = [
    authority.judgeResume(act, at + 1),
    ...[undefined, anAct()].map((given) => authority.judgeResume(given, 0)),
  ];
  expect(others.map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused']);
  await journal.noteResumed({ at, act: verdict.actHash });
  expect(authority.judgeResume(act, at)).toEqual({ kind: 'refused', message: 'the act was used before' });
});
