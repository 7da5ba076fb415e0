import { beforeEach, describe, expect, it } from '@jest/globals';
import { formatAct, serializeAct, type Act } from '../../../src/control/approvals/act.js';
import { signText } from '../../../src/control/keys/ed25519.js';
import { hashIntent, intentOf } from '../../../src/control/intents/intent.js';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../support/keys.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { journaled } from '../../worker/support/send-rig.js';

const PLATFORM_ID = 4242;
const [SHOP, OPERATOR] = [testKey(1), testKey(2)];
const KEYRING = keyringOf(keyEntry(SHOP), keyEntry(OPERATOR, { name: 'ann', role: 'operator', person: 'Ann' }));
const DAY_MS = 86_400_000;
const DOUBT_MS = 11_000;

let clock: ManualClock;
let journal: MemoryJournal;
let authority: SignedAuthority;
beforeEach(() => {
  clock = new ManualClock();
  journal = new MemoryJournal();
  authority = new SignedAuthority({ platformId: PLATFORM_ID, keyring: KEYRING, journal, clock, doubtMs: DOUBT_MS });
});

function aSignedPayout(given: Partial<Payout> = {}): Payout {
  const fields = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1', ...given };
  const signed = new IntentSigner({
    key: { name: 'shop', privateKey: SHOP },
    platformId: PLATFORM_ID,
    audience: TEST_AUDIENCE,
    clock,
  }).sign(fields);
  const at = new Date(clock.wallNow()).toISOString();
  return {
    ...{ ...fields, signed, state: 'queued', attempt: 0, requeueCount: 0, history: [] },
    ...{ createdAt: at, updatedAt: at },
  };
}

function intentHashOf(payout: Payout): string {
  if (payout.signed === undefined) throw new Error('it is not signed');
  return hashIntent(intentOf(PLATFORM_ID, payout, payout.signed));
}

function anAct(given: Partial<Act>): string {
  const now = clock.wallNow();
  const act: Act = {
    audience: TEST_AUDIENCE,
    ...{ act: 'resend', payoutId: 'p', intent: '', attempt: 1, reason: 'looked it up', by: 'ann' },
    ...{ at: new Date(now).toISOString(), expiresAt: new Date(now + DAY_MS).toISOString() },
    ...given,
  };
  return serializeAct({ ...act, signature: signText(formatAct(PLATFORM_ID, act), OPERATOR) });
}

/** The payout's attempt as this worker journaled it. */
async function sent(payout: Payout, attempt: number, clears: readonly number[] = []): Promise<void> {
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  const permit = authority.permit(payout);
  const { issuedAt, expiresAt, key } = payout.signed ?? { issuedAt: '', expiresAt: '', key: '' };
  const signed = {
    ...{ intent: intentHashOf(payout), key, clears },
    ...{ issuedAt: Date.parse(issuedAt), expiresAt: Date.parse(expiresAt) },
  };
  await journal.append(
    journaled(
      { payoutId: payout.payoutId, attempt, token: `t${attempt}` },
      {
        signed: permit.kind === 'granted' ? { ...signed, ...permit.signed } : signed,
      },
    ),
  );
}

const refusedFor = (reason: string, isTampering: boolean): object => ({
  kind: 'refused',
  hold: expect.objectContaining({ reason, isTampering }),
});

describe('a worker with a keyring', () => {
  it('lets pass what a producer signed, with what the journal is to note', () => {
    const payout = aSignedPayout();
    const signed = { intent: intentHashOf(payout), key: 'shop', issuedAt: clock.wallNow() };
    expect(authority.permit(payout)).toEqual({
      kind: 'granted',
      signed: {
        ...{ ...signed, expiresAt: clock.wallNow() + 7 * DAY_MS, doubtMs: DOUBT_MS },
        proof: { signature: payout.signed?.signature, audience: payout.signed?.audience },
      },
    });
  });

  it('holds what is not signed', () => {
    const { signed, ...unsigned } = aSignedPayout();
    expect(signed).toBeDefined();
    expect(authority.permit(unsigned)).toEqual(refusedFor('unsigned', false));
  });

  it.each<[string, Partial<Payout>]>([
    ['address', { addressTo: 'wallet-2' }],
    ['amount', { amount: '12.50' }],
    ['currency', { paymentId: 8 }],
    ['id', { payoutId: 'q' }],
    ['reference', { reference: 'another' }],
  ])('holds an altered %s, and calls it tampering', (_, change) => {
    expect(authority.permit({ ...aSignedPayout(), ...change })).toEqual(refusedFor('bad_signature', true));
  });

  it('holds what expired', () => {
    const payout = aSignedPayout();
    clock.wallOffsetMs += 7 * DAY_MS;
    expect(authority.permit(payout)).toEqual(refusedFor('expired', false));
  });

  it('holds what was signed before its journal began, until the host states that nothing is missing', async () => {
    const payout = aSignedPayout();
    journal.given({ v: 3, journalId: 'j', bornAt: clock.wallNow() + 1 });
    expect(authority.permit(payout)).toEqual(refusedFor('before_birth', false));
    await journal.noteComplete({ at: clock.wallNow(), by: 'ann', reason: 'new host' });
    expect(authority.permit(payout).kind).toBe('granted');
  });

  it('holds what the journal may have forgotten, also with the clock set back', () => {
    const payout = aSignedPayout();
    journal.given({ v: 3, journalId: 'j', bornAt: 0, prunedUpTo: clock.wallNow() + 7 * DAY_MS });
    expect(authority.permit(payout)).toEqual(refusedFor('forgotten', false));
  });
});

describe('a payout that the journal has as sent', () => {
  it.each([0, 1, 5])('is held whatever Redis says of its attempts: %i', async (attempt) => {
    const payout = aSignedPayout();
    await sent(payout, 1);
    expect(authority.permit({ ...payout, attempt })).toEqual(refusedFor('sent_before', true));
  });

  it('is held with the command that names the attempt which the journal has, not that of Redis', async () => {
    const payout = aSignedPayout();
    await sent(payout, 1);
    const act = anAct({ intent: intentHashOf(payout), attempt: 2 });
    const permit = authority.permit({ ...payout, attempt: 2, act });
    expect(permit).toMatchObject({ hold: { message: expect.stringContaining('release --attempt 1 --key FILE') } });
    const named = anAct({ intent: intentHashOf(payout), attempt: 1 });
    expect(authority.permit({ ...payout, attempt: 2, act: named }).kind).toBe('granted');
  });

  it('is let pass once it is proved that it was not sent', async () => {
    const payout = aSignedPayout();
    await sent(payout, 1);
    journal.noteOutcome({ payoutId: 'p', attempt: 1, token: 't1' }, { kind: 'not_sent', reason: 'no slot' }, 0);
    expect(authority.permit({ ...payout, attempt: 1 }).kind).toBe('granted');
  });

  it('is let pass by the act of an operator, once', async () => {
    const payout = aSignedPayout();
    await sent(payout, 1);
    const again = { ...payout, attempt: 1, act: anAct({ intent: intentHashOf(payout) }) };
    expect(authority.permit(again)).toMatchObject({ kind: 'granted', signed: { clears: [1] } });
    await sent(again, 2);
    expect(authority.permit({ ...again, attempt: 2 })).toEqual(refusedFor('sent_before', true));
  });

  it.each<[string, Partial<Act>]>([
    ['of another payout', { payoutId: 'q' }],
    ['of another attempt', { attempt: 2 }],
    ['of another intent', { intent: '0'.repeat(64) }],
    ['for something else', { act: 'resume' }],
    ['that expired', { expiresAt: new Date(0).toISOString() }],
    ['of a producer', { by: 'shop' }],
  ])('is held with an act %s', async (_, change) => {
    const payout = aSignedPayout();
    await sent(payout, 1);
    const act = anAct({ intent: intentHashOf(payout), ...change });
    expect(authority.permit({ ...payout, attempt: 1, act })).toEqual(refusedFor('sent_before', true));
  });

  it.each([
    [DOUBT_MS + 60_000, 'refused'],
    [DOUBT_MS - 1_000, 'granted'],
  ])('counts an act once the request is over by the settings of who sent it, too: %i ms', async (doubtMs, kind) => {
    const payout = aSignedPayout();
    const options = { platformId: PLATFORM_ID, keyring: KEYRING, journal, clock };
    const granted = new SignedAuthority({ ...options, doubtMs }).permit(payout);
    if (granted.kind !== 'granted') throw new Error('not granted');
    await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
    const { signed } = granted;
    await journal.append(journaled({ payoutId: 'p', attempt: 1, token: 't1' }, { signed, at: clock.wallNow() }));
    clock.wallOffsetMs += DOUBT_MS;
    const act = anAct({ intent: intentHashOf(payout) });
    expect(authority.permit({ ...payout, attempt: 1, act }).kind).toBe(kind);
  });

  it('is held with an act of a moment at which its request could be on its way, unless the gateway had rejected it', async () => {
    const attempt = { payoutId: 'p', attempt: 1, token: 't' };
    const payout = aSignedPayout();
    const permit = authority.permit(payout);
    if (permit.kind !== 'granted') throw new Error('not granted');
    await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
    await journal.append(journaled(attempt, { signed: permit.signed, at: clock.wallNow() }));
    const again = { ...payout, attempt: 1, act: anAct({ intent: intentHashOf(payout) }) };
    expect(authority.permit(again)).toMatchObject({
      hold: { message: expect.stringContaining('could still be on its way') },
    });
    journal.noteOutcome(attempt, { kind: 'rejected', message: 'no' }, clock.wallNow());
    expect(authority.permit(again).kind).toBe('granted');
  });

  it('is held with an act that is none', async () => {
    const payout = aSignedPayout();
    await sent(payout, 1);
    expect(authority.permit({ ...payout, attempt: 1, act: '{"act":' })).toEqual(refusedFor('sent_before', true));
  });
});

describe('the act that ends a pause', () => {
  const resume = { act: 'resume', payoutId: '', intent: '', attempt: undefined } as const;

  it('is accepted once', async () => {
    const act = anAct(resume);
    const verdict = authority.judgeResume(act, clock.wallNow());
    if (verdict.kind !== 'accepted') throw new Error(verdict.message);
    await journal.noteResumed({ at: clock.wallNow(), act: verdict.actHash });
    expect(authority.judgeResume(act, clock.wallNow())).toEqual({
      kind: 'refused',
      message: 'the act was used before',
    });
  });

  it('is refused where it was signed before the pause', () => {
    const act = anAct(resume);
    expect(authority.judgeResume(act, clock.wallNow() + 1).kind).toBe('refused');
  });

  it('is refused where there is none, or it is for a payout', () => {
    expect(authority.judgeResume(undefined, 0).kind).toBe('refused');
    expect(authority.judgeResume(anAct({}), 0).kind).toBe('refused');
  });
});
