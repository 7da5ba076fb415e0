import { beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '../../src/base/logger.js';
import type { Act } from '../../src/control/approvals/act.js';
import { publishLoaded } from '../../src/control/worker/account-policy.js';
import { HoldReleaser } from '../../src/control/worker/hold-releaser.js';
import { SignedAuthority } from '../../src/control/worker/signed-authority.js';
import type { HeldFor, Hold, Payout } from '../../src/ledger/payout.js';
import { MemoryJournal } from '../doubles/memory-journal.js';
import { journaled } from '../worker/support/send-rig.js';
import { keyEntry, keyringOf, TEST_AUDIENCE, testKey } from './support/keys.js';
import { DAY_MS, entryOf, HOUR_MS, intentHashOf, iso, PLATFORM, signAct, signIntent } from './support/signed.js';
import { DOUBT_MS, HOURLY, policyOf, PolicyRig, TestClock } from './support/policy-rig.js';

const KEYRING = keyringOf(keyEntry(testKey(1)), entryOf(2, 'ann', 'operator'));

let clock: TestClock;
let journal: MemoryJournal;
let authority: SignedAuthority;
const open = (): SignedAuthority => new SignedAuthority({ platformId: PLATFORM, keyring: KEYRING, journal, clock });
let payout: Payout;
beforeEach(() => {
  clock = new TestClock();
  journal = new MemoryJournal();
  authority = open();
  const [fields, at] = [{ payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' }, clock.wallNow()];
  const times = { createdAt: iso(at), updatedAt: iso(at), history: [] };
  payout = {
    ...fields,
    ...times,
    state: 'queued',
    final: false,
    attempt: 0,
    requeueCount: 0,
    signed: signIntent(fields, { at }),
  };
});

function anAct(given: Partial<Act> = {}) {
  const now = clock.wallNow();
  const about = { act: 'resend', payoutId: 'p', intent: intentHashOf(payout), attempt: 1 } as const;
  const times = { at: iso(now), expiresAt: iso(now + DAY_MS) };
  return signAct(2, { audience: TEST_AUDIENCE, ...about, reason: 'looked it up', by: 'ann', ...times, ...given });
}

const attemptOf = (attempt: number) => ({ payoutId: 'p', attempt, token: `t${attempt}` });

/** This worker journals an attempt. @param at - long ago, unless it is said */
async function sent(given: Payout, attempt: number, at?: number, inFlightMs = DOUBT_MS) {
  const permit = authority.permit(given);
  if (permit.kind !== 'granted') throw new Error('not granted');
  await journal.bind({ ledgerId: 'l', epoch: 1, sends: 0, token: '' });
  const { signed } = permit;
  await journal.append(journaled(attemptOf(attempt), { signed, inFlightMs, ...(at !== undefined && { at }) }));
}

const refused = (reason: string, isTampering: boolean): object => ({
  ...{ kind: 'refused', hold: expect.objectContaining({ reason, isTampering }) },
});

describe('a worker with a keyring', () => {
  it('lets pass what a producer signed, with what the journal is to note', () => {
    const [issuedAt, { signature, audience }] = [clock.wallNow(), { ...payout.signed }];
    const times = { issuedAt, expiresAt: issuedAt + 7 * DAY_MS };
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
    journal.given({ v: 1, journalId: 'j', bornAt: clock.wallNow() + 1 });
    expect(authority.permit(payout)).toEqual(refused('before_birth', false));
    await journal.noteComplete({ at: clock.wallNow(), by: 'ann', reason: 'new host' });
    expect(authority.permit(payout).kind).toBe('granted');
  });

  it('holds what the journal may have forgotten, also with the clock set back', () => {
    const end = clock.wallNow() + 7 * DAY_MS;
    journal.given({ v: 1, journalId: 'j', bornAt: 0, prunedUpTo: end - 1 });
    expect(authority.permit(payout).kind).toBe('granted');
    journal.given({ v: 1, journalId: 'j', bornAt: 0, prunedUpTo: end });
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

  it('is let pass by no act a second time, also where Redis forgot an attempt, so that the next has its number', async () => {
    await sent(payout, 1);
    const again = { ...payout, attempt: 1, act: anAct() };
    await sent(again, 1);
    const message = expect.stringContaining('the act was used before');
    expect(authority.permit(again)).toMatchObject({ kind: 'refused', hold: { message, isTampering: true } });
  });

  it.each([
    [DOUBT_MS + 60_000, 'refused'],
    [DOUBT_MS - 1_000, 'granted'],
  ])('counts an act once the request is over by what its sender told: %i ms', async (inFlightMs, kind) => {
    await sent(payout, 1, clock.wallNow(), inFlightMs);
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

const WAITS = { kind: 'policy', reason: 'wait', rule: 'hour', message: 'm' } as const;

let rig: PolicyRig;
let payouts: Map<string, Payout>;
let marked: string[];
let done: string[];
let releaser: HoldReleaser;

const change = (payoutId: string, given: Partial<Payout>) => {
  payouts.set(payoutId, { ...(payouts.get(payoutId) ?? rig.payout(payoutId, '0')), ...given });
};
const hold = (payoutId: string, amount: string, held: HeldFor = WAITS) => {
  payouts.set(payoutId, rig.payout(payoutId, amount, { state: 'held', held }));
};
const does = async (what: string): Promise<void> => Promise.resolve(void done.push(what));

beforeEach(async () => {
  rig = new PolicyRig(clock, policyOf(HOURLY));
  payouts = new Map();
  [marked, done] = [[], []];
  (await rig.begin(rig.payout('spent', '60')))?.('accepted');
  const held = (): Payout[] => [...payouts.values()].filter(({ state }) => state === 'held');
  const runtime: ConstructorParameters<typeof HoldReleaser>[0] = {
    senderLedger: {
      readSpends: async () => Promise.resolve([]),
      holdPayout: async (payoutId: string, _attempt: number, given: Hold) => {
        change(payoutId, { held: given, state: 'held' });
        await does(`hold ${payoutId} ${given.rule ?? ''} ${given.reason}`);
        return true;
      },
    },
    ledger: {
      change: async ({ payoutId, from, to }) => {
        change(payoutId, { state: to });
        await does(`${payoutId} ${from} ${to}`);
      },
    },
    relay: { tryDeliver: async (state, payoutIds) => does(`job ${state} ${payoutIds.join(' ')}`) },
    ...{ journal: rig.journal, clock, logger: silentLogger },
  };
  releaser = new HoldReleaser(runtime, rig.authority, {
    read: async (payoutId) => Promise.resolve(payouts.get(payoutId)),
    held: async () => Promise.resolve({ payouts: held(), next: undefined }),
    queued: async () => Promise.resolve({ payouts: [], next: undefined }),
    marked: async () => Promise.resolve([...marked]),
    unmark: async (payoutIds) => {
      marked = [];
      for (const payoutId of payoutIds) await does(`unmark ${payoutId}`);
    },
  });
});

/** What a check does, after a takeover and what happened then. */
async function checked(meanwhile: () => void = () => undefined) {
  await releaser.takeOver();
  meanwhile();
  done = [];
  await releaser.check();
  return done;
}
const released = (payoutId: string) => [`${payoutId} held queued`, `job queued ${payoutId}`];

it('forms the lines of a takeover in the order of the holds, releases in that order, and skips who is gone', async () => {
  for (const [payoutId, amount] of Object.entries({ large: '80', gone: '90', small: '20' })) hold(payoutId, amount);
  expect(await checked(() => void rig.askFor('late', '1'))).toEqual([]);
  expect(rig.askFor('late', '1')).toMatch(/190 are wanted by payouts before it/);
  change('gone', { state: 'cancelled' });
  clock.pass(HOUR_MS + 2_000);
  await releaser.check();
  await releaser.check();
  expect(done).toEqual([...released('large'), ...released('small')]);
});

it('unmarks what was marked before it looks: what is said in between marks it once more', async () => {
  hold('p', '10', { kind: 'policy', reason: 'approve', rule: 'old', message: 'm', needs: { by: 'x', persons: 1 } });
  expect(await checked(() => (marked = ['p']))).toEqual(['unmark p', ...released('p')]);
});

it('finds what another process held meanwhile, and touches nothing that a signature holds', async () => {
  hold('forged', '10', { kind: 'signature', reason: 'bad_signature', message: 'm' });
  const meanwhile = () => {
    hold('stray', '10');
    marked = ['forged'];
  };
  expect(await checked(meanwhile)).toEqual(['unmark forged', ...released('stray')]);
});

it('judges everything by a policy that was read again, and counts what is held, by rule and verdict', async () => {
  hold('refused', '10', { kind: 'policy', reason: 'refuse', rule: 'gone', message: 'm' });
  hold('waits', '80');
  const tight = policyOf({ ...HOURLY, name: 'tight', cap: { amount: '70', within: '1h' } });
  const expected = [...released('refused'), 'hold waits tight refuse'];
  expect(await checked(() => (rig.current.policy = tight))).toEqual(expected);
  expect(releaser.held).toMatchObject([{ rule: 'tight', reason: 'refuse', count: 1 }]);
});

it('has rejections on disk before it holds for one, and those for which it holds nothing soon after', async () => {
  rig.authority.keepRejections = async () => does('keep');
  hold('p', '200', { ...WAITS, rule: 'old' });
  await releaser.check();
  expect(done).toEqual(['keep', 'hold p hour refuse', 'keep']);
});

it('each policy that was loaded is told, in their order, once Redis is there', async () => {
  const end = new AbortController();
  const loaded = [['a'], ['b'], []];
  const sleep = async (): Promise<void> => {
    if (loaded.length === 0) end.abort();
    return Promise.resolve();
  };
  const tell = async (hash: string, about: string): Promise<void> => {
    if (loaded.length === 2) throw new Error('Redis is down');
    await does(`${hash} ${about}`);
  };
  const policy = { file: '/etc/payouts/policy.yaml', takeLoaded: () => loaded.shift() ?? [] };
  const runtime = { clock: { now: () => 0, wallNow: () => 0, sleep }, logger: silentLogger };
  await publishLoaded(policy, 'host:7', tell, runtime, end.signal);
  expect(done).toEqual(['a policy.yaml, by host:7', 'b policy.yaml, by host:7']);
});
