import { describe, expect, it } from '@jest/globals';
import { readActivity } from '../../../src/ledger/reads/activity.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import {
  ACCEPTED,
  beginOne,
  begun,
  change,
  enqueue,
  enter,
  finish,
  HOLD,
  JOURNAL,
  NO_BREAKER,
  OBJECTION,
  read,
  REJECTED,
  rig,
  sender,
  stateOf,
  takeLease,
  unchanged,
  UNKNOWN,
} from '../support/use-account.js';

it('recovery turns into unknown, once, what an earlier holder left in sending', async () => {
  const attempt = await begun();
  const lease = await takeLease(sender, 'two');
  expect(await sender.readSending()).toEqual([attempt]);
  expect(await sender.markSendsUnknown(lease, [attempt], 'the sender ended', 0)).toEqual(['p']);
  expect(await read()).toMatchObject({
    ...{ state: 'unknown', attempt: attempt.attempt, message: 'the sender ended' },
    history: [{}, {}, { from: 'sending', to: 'unknown', reason: 'the sender ended' }],
  });
  expect(await sender.readSending()).toEqual([]);
  expect(await sender.markSendsUnknown(lease, [attempt], 'again', 0)).toEqual([]);
});

it('recovery knows that there was no response when the lease was lost with its epoch', async () => {
  await takeLease(sender, 'zero');
  const attempt = await begun();
  await rig.loseSender();
  const lease = await takeLease(sender, 'two');
  expect(await sender.readSender()).toMatchObject({ awaitingAnswer: true });
  expect(await sender.markSendsUnknown(lease, [attempt], 'the sender ended', 0)).toEqual(['p']);
});

it('recovery leaves another attempt than was seen, and payouts in other states, alone', async () => {
  const accepted = await begun('accepted');
  await finish(accepted, ACCEPTED);
  const rejected = await begun('rejected');
  await finish(rejected, REJECTED);
  const attempt = await begun();
  const lease = await takeLease(sender, 'two');
  const wrong = [{ token: 'another' }, { attempt: 2 }].map((other) => ({ ...attempt, ...other }));
  const mark = async () => sender.markSendsUnknown(lease, [...wrong, accepted, rejected], 'r', 0);
  expect(await unchanged(mark)).toEqual([]);
  expect(await sender.markSendsUnknown(lease, [...wrong, attempt], 'r', 0)).toEqual(['p']);
});

it.each(['deleted', 'of another type', 'in another state'])(
  'recovery removes an entry of sending whose record is %s, and says so, once',
  async (what) => {
    const other = await begun();
    const { redis, connection } = rig.account;
    await redis.zadd(connection.keys.state('sending'), 1, 'gone');
    if (what === 'of another type') await redis.zadd(connection.keys.payout('gone'), 1, 'x');
    if (what === 'in another state') await enqueue('gone');
    const lease = await takeLease(sender, 'two');
    const left = await sender.readSending();
    expect(left.map(({ payoutId }) => payoutId)).toEqual(['gone', 'p']);
    expect(await sender.markSendsUnknown(lease, left, 'the sender ended', 0)).toEqual(['p']);
    expect(await sender.removeSendingEntries({ owner: 'one', epoch: 1 }, ['gone'], 'r')).toBeUndefined();
    expect(await sender.removeSendingEntries(lease, ['gone', other.payoutId], 'no record')).toEqual(['gone']);
    expect(await sender.removeSendingEntries(lease, ['gone'], 'no record')).toEqual([]);
    expect(await sender.readSending()).toEqual([]);
    const { activities } = await readActivity(connection, 1);
    expect(activities).toMatchObject([{ what: 'entry_removed', payoutId: 'gone', by: 'worker', reason: 'no record' }]);
  },
);

it.each(['attempt', 'tokens'])('recovery ends a send whose %s someone has altered', async (field) => {
  await begun();
  const { redis, connection } = rig.account;
  await redis.hset(connection.keys.payout('p'), field, 'x');
  const lease = await takeLease(sender, 'two');
  expect(await sender.markSendsUnknown(lease, await sender.readSending(), 'the sender ended', 0)).toEqual(['p']);
});

it('recovery is for the holder only', async () => {
  const attempt = await begun();
  const { epoch } = await takeLease(sender, 'two');
  for (const wrong of [
    { owner: 'one', epoch: 1 },
    { owner: 'one', epoch },
    { owner: 'two', epoch: 9 },
  ]) {
    const mark = async () => sender.markSendsUnknown(wrong, [attempt], 'r', 0);
    expect(await unchanged(mark)).toBeUndefined();
  }
});

describe('adoption of a send that the journal knows', () => {
  const SENT: SendAttempt = { payoutId: 'p', attempt: 7, token: 'sent' };
  const UNSENT: SendAttempt = { payoutId: 'p', attempt: 0, token: '' };
  const RESULTS = { in_progress: { ...ACCEPTED, gatewayId: 't' }, rejected: REJECTED, unknown: UNKNOWN };

  type State = 'queued' | 'cancelled' | 'written_off' | 'sending' | keyof typeof RESULTS;

  async function bring(state: State): Promise<SendAttempt> {
    if (state === 'queued' || state === 'cancelled') {
      await enqueue('p');
      if (state === 'cancelled') await change('p', 'queued', 'cancelled');
      return UNSENT;
    }
    const attempt = await begun();
    if (state === 'written_off') {
      await finish(attempt, UNKNOWN);
      await change('p', 'unknown', state);
    } else if (state !== 'sending') await finish(attempt, RESULTS[state]);
    return attempt;
  }

  it.each([
    [undefined, 'unknown', { message: 'forgotten' }],
    [ACCEPTED, 'in_progress', { gatewayId: 'h' }],
    [REJECTED, 'rejected', { message: 'no funds' }],
  ])('puts a payout in that the ledger forgot, as what came of it: %j', async (outcome, state, fields) => {
    expect(await rig.adoptSend(SENT, outcome)).toEqual({ payoutId: 'p', state });
    const payout = await read();
    const history = [{ to: state, by: 'ann', reason: 'forgotten' }];
    expect(payout).toMatchObject({ state, attempt: 7, amount: '12.5', history, ...fields });
    expect([payout?.message, payout?.gatewayId]).toContain(undefined);
    expect(await sender.findForgottenSends([SENT])).toEqual([]);
  });

  it.each<State>(['queued', 'cancelled', 'written_off', 'rejected'])(
    'makes a payout unknown that is %s',
    async (state) => {
      await bring(state);
      expect(await rig.adoptSend(SENT)).toEqual({ payoutId: 'p', state: 'unknown' });
      const payout = await read();
      expect(payout).toMatchObject({ state: 'unknown', attempt: 7, message: 'forgotten' });
      expect(payout?.history.at(-1)).toMatchObject({ from: state, to: 'unknown', by: 'ann', reason: 'forgotten' });
    },
  );

  it.each<State>(['queued', 'cancelled', 'written_off', 'rejected', 'unknown'])(
    'brings a payout into progress that is %s, where the journal knows the gatewayId',
    async (state) => {
      await bring(state);
      expect(await rig.adoptSend(SENT, ACCEPTED)).toEqual({ payoutId: 'p', state: 'in_progress' });
      expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: 'h' });
    },
  );

  it('makes it unknown where the gatewayId is that of another payout', async () => {
    await finish(await begun('other'), ACCEPTED);
    expect(await rig.adoptSend(SENT, ACCEPTED)).toMatchObject({ state: 'unknown' });
    expect(await read()).toMatchObject({ message: 'the gateway gave the payment of payout other: h' });
  });

  it('takes a rejection for no word about other attempts of an unknown payout', async () => {
    await bring('unknown');
    expect(await rig.adoptSend(SENT, REJECTED)).toBeUndefined();
    expect(await read()).toMatchObject({ state: 'unknown', attempt: 7 });
  });

  it.each(['another attempt', 'this attempt, by another gatewayId,'])(
    'notes what %s paid as a late payment',
    async (who) => {
      const known = await bring('in_progress');
      expect(await rig.adoptSend(who === 'another attempt' ? SENT : known, ACCEPTED)).toBeUndefined();
      expect(await read()).toMatchObject({ gatewayId: 't', lateGatewayId: 'h' });
    },
  );

  it('distinguishes a number that was used up from a send of the same number', async () => {
    await bring('queued');
    const [usedUp, sent] = [
      { ...SENT, attempt: 1, token: 'used-up' },
      { ...SENT, attempt: 1 },
    ];
    await sender.revertSend(usedUp, 'its begin got no reply');
    expect(await sender.findForgottenSends([usedUp, sent])).toEqual([{ send: sent, state: 'queued' }]);
    expect(await rig.adoptSend(sent)).toMatchObject({ state: 'unknown' });
    expect(await sender.findForgottenSends([usedUp, sent])).toEqual([]);
    expect(await read()).toMatchObject({ state: 'unknown', attempt: 1 });
  });

  it('distinguishes sends of the same number and epoch that two timelines made', async () => {
    const attempt = await begun();
    const other = { ...attempt, token: 'of-another-timeline' };
    expect(await sender.findForgottenSends([attempt, other])).toEqual([{ send: other, state: 'sending' }]);
    await sender.revertSend(other, 'not sent');
    expect(await stateOf()).toBe('sending');
  });

  it('notes the attempt of a payout sent before: its late response still counts', async () => {
    await bring('unknown');
    expect(await rig.adoptSend(SENT)).toBeUndefined();
    expect(await read()).toMatchObject({ state: 'unknown', attempt: 7 });
    expect(await finish(SENT, ACCEPTED)).toEqual({ recorded: true });
  });

  it.each<State>(['sending', 'in_progress', 'rejected', 'unknown'])(
    'of a known send changes nothing but the outcome of one sending or unknown: %s',
    async (state) => {
      const attempt = await bring(state);
      expect(await unchanged(async () => rig.adoptSend(attempt))).toBeUndefined();
      if (state === 'in_progress' || state === 'rejected') return;
      expect(await rig.adoptSend(attempt, ACCEPTED)).toEqual({ payoutId: 'p', state: 'in_progress' });
      expect(await read()).toMatchObject({ gatewayId: 'h', attempt: 1 });
    },
  );
});

it('adoption of a ledger raises epoch and sends above the journal, ends the lease, and sets the flag', async () => {
  const old = await takeLease(sender, 'one');
  const raised = await rig.adoptLedger({ epoch: 5, sendCount: 9 });
  expect(raised).toMatchObject({ epoch: 6, sendCount: 10, objections: 0 });
  expect(await sender.readSender()).toMatchObject({
    lease: { owner: '', epoch: 6, heartbeat: 0, released: false },
    ...{ sendCount: 10, last: raised.token, awaitingAnswer: true },
  });
  expect(await sender.renewLease(old)).toBeUndefined();
  expect(await takeLease(sender, 'two')).toEqual({ owner: 'two', epoch: 7 });
});

it('adoption of a ledger ends only the objections of the journals that were read or given up', async () => {
  const objections = ['j-one', 'j-two', 'j-three'].map((journalId) => ({ ...OBJECTION, journalId }));
  for (const objection of objections) await sender.object(objection);
  await sender.acquireLease('three', await sender.readSender(), { ...JOURNAL, journalId: 'j-three' }, 0);
  await takeLease(sender, 'one');
  const journal = { ...JOURNAL, sends: 9, token: 'ninth' };
  const adopt = async (journals: Parameters<typeof rig.adoptLedger>[1]) =>
    (await rig.adoptLedger({ epoch: 1, sendCount: 9 }, journals)).objections;
  expect(await adopt({ read: [journal], givenUp: [] })).toBe(2);
  expect(await adopt({ read: [], givenUp: ['j-three'] })).toBe(1);
  expect(await sender.readSender()).toMatchObject({ objections: [objections[1]], journals: [journal] });
});

it('adoption of a ledger keeps the flag though an attempt of before is put back, until the next send', async () => {
  const attempt = await begun();
  await rig.adoptLedger({ epoch: 5, sendCount: 9 });
  await rig.resume();
  await sender.revertSend(attempt, 'it was not sent');
  expect(await stateOf()).toBe('queued');
  expect((await sender.readSender()).awaitingAnswer).toBe(true);
  await finish(await begun('q'), ACCEPTED);
  expect(await sender.readSender()).toMatchObject({ sendCount: 11, awaitingAnswer: false });
});

it('adoption of a ledger works on an empty ledger, and never lowers what the ledger has', async () => {
  expect(await rig.adoptLedger({ epoch: 3, sendCount: 4 })).toMatchObject({ epoch: 4, sendCount: 5 });
  // People look first at what came back.
  expect((await sender.readSender()).pauses).toMatchObject([{ by: 'adoption' }]);
  await rig.resume();
  await finish(await begun(), ACCEPTED);
  expect(await rig.adoptLedger({ epoch: 0, sendCount: 0 })).toMatchObject({ epoch: 6, sendCount: 7 });
});

it('an objection stands once for each journal, with its newest reason', async () => {
  const later = { ...OBJECTION, at: OBJECTION.at + 5 };
  for (const objection of [OBJECTION, later]) await sender.object(objection);
  expect((await sender.readSender()).objections).toEqual([OBJECTION]);
  const newer = { ...later, reason: 'it forgot more' };
  await sender.object(newer);
  expect((await sender.readSender()).objections).toEqual([newer]);
});

/** A payout that was sent more than once, or may have been: what is said of one attempt settles no other. */

const NOT_SENT = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
const IGNORED = { recorded: false };

const attemptOf = (token: string, attempt = 1): SendAttempt => ({ payoutId: 'p', attempt, token });
const THEIRS = attemptOf('theirs');

describe('a rejection of an attempt that another timeline made', () => {
  it('leaves the one that is being sent as it is, and unknown once it gets no response', async () => {
    const mine = await begun();
    expect(await rig.adoptSend(THEIRS, REJECTED)).toBeUndefined();
    expect(await stateOf()).toBe('sending');
    await finish(mine, UNKNOWN);
    expect(await stateOf()).toBe('unknown');
  });

  it.each([1, 2])('leaves it unknown, also when told again, as attempt %i', async (attempt) => {
    await finish(await begun(), UNKNOWN);
    const theirs = attemptOf('theirs', attempt);
    expect(await rig.adoptSend(theirs, REJECTED)).toBeUndefined();
    expect(await finish(theirs, REJECTED)).toEqual(IGNORED);
    expect(await stateOf()).toBe('unknown');
  });

  it.each([
    ['another attempt was adopted', [THEIRS], async () => rig.adoptSend(attemptOf('other'))],
    ['it was held, because any may have been sent since', [THEIRS], async () => rig.holdSendable()],
    ['a second one, and another', [THEIRS, attemptOf('two')], async () => rig.adoptSend(attemptOf('other'))],
    ['a second one, and it was held', [THEIRS, attemptOf('two')], async () => rig.holdSendable()],
  ])('says nothing, told again, after %s', async (_, attempts, happens) => {
    for (const attempt of attempts) await rig.adoptSend(attempt, REJECTED);
    expect([{ payoutId: 'p', state: 'unknown' }, 1]).toContainEqual(await happens());
    for (const attempt of attempts) expect(await finish(attempt, REJECTED)).toEqual(IGNORED);
    expect(await stateOf()).toBe('unknown');
  });

  it('says nothing where the send was adopted before its outcome was known', async () => {
    await finish(await begun(), UNKNOWN);
    await rig.adoptSend(THEIRS);
    expect(await rig.adoptSend(THEIRS, REJECTED)).toBeUndefined();
    expect(await stateOf()).toBe('unknown');
  });

  it('lets the rejection of an attempt count that began after an operator had decided', async () => {
    await finish(await begun(), UNKNOWN);
    await rig.adoptSend(THEIRS, REJECTED);
    await change('p', 'unknown', 'queued');
    const next = await beginOne('p');
    await finish(next, UNKNOWN);
    expect(await finish(next, REJECTED)).toEqual({ recorded: true });
    expect(await stateOf()).toBe('rejected');
  });
});

describe('a payout that turned out to be paid by an earlier attempt', () => {
  /** The first attempt was taken for not sent; the second is under way. */
  const sentTwice = async (): Promise<[first: SendAttempt, second: SendAttempt]> => {
    const first = await begun();
    await finish(first, UNKNOWN);
    await change('p', 'unknown', 'queued');
    return [first, await beginOne('p')];
  };

  it('becomes unknown, not queued, when the present attempt is put back', async () => {
    const [first, second] = await sentTwice();
    await finish(first, ACCEPTED);
    await sender.revertSend(second, 'the connection ended before its first byte');
    const message = 'not sent, because an earlier attempt was paid as h';
    expect(await read()).toMatchObject({ state: 'unknown', message });
    expect((await sender.readSender()).awaitingAnswer).toBe(false);
  });

  it.each([
    ['rejected', REJECTED, 'cancelled', {}],
    ['unknown', UNKNOWN, 'in_progress', { gatewayId: 'h' }],
  ] as const)('is not sent again once the present attempt is %s', async (from, result, to, more) => {
    const [first, second] = await sentTwice();
    if (from === 'rejected') await finish(second, result);
    expect(await finish(first, ACCEPTED)).toEqual({ recorded: false, latePayment: true });
    if (from === 'unknown') await finish(second, result);
    expect(await unchanged(async () => rig.change({ ...NOT_SENT, from }))).toBe('lateGatewayId');
    await change('p', from, to, more);
  });
});

it('an acceptance told again does not undo what was decided about two payouts with one gatewayId', async () => {
  await finish(await begun(), ACCEPTED);
  const other = await begun('other');
  await finish(other, ACCEPTED);
  await change('p', 'unknown', 'in_progress', { gatewayId: 'h' });
  await change('other', 'unknown', 'queued');
  expect(await finish(other, ACCEPTED)).toEqual(IGNORED);
  expect([await stateOf(), await stateOf('other')]).toEqual(['in_progress', 'queued']);
});

describe('a request that may still be on its way', () => {
  it('keeps an unknown payout for so long from a resend, not from being written off', async () => {
    await sender.finishSend(await begun(), UNKNOWN, NO_BREAKER, 60_000);
    await sender.markSendsUnknown({ owner: 'one', epoch: 2 }, [await begun('q')], 'ended', 60_000);
    for (const payoutId of ['p', 'q']) {
      expect(await unchanged(async () => rig.change({ ...NOT_SENT, payoutId }))).toBe('state');
      await change(payoutId, 'unknown', 'written_off');
    }
    await finish(await begun('after'), UNKNOWN);
    await change('after', 'unknown', 'queued');
  });

  it('keeps one from a resend that was unknown already, where it is of a forgotten send', async () => {
    await finish(await begun(), UNKNOWN);
    expect(await rig.adoptSend(attemptOf('theirs', 2), undefined, 60_000)).toBeUndefined();
    expect(await rig.change(NOT_SENT)).toBe('state');
  });

  it('keeps one from a resend that the ledger forgot', async () => {
    await rig.adoptSend(THEIRS, undefined, 60_000);
    expect(await rig.change(NOT_SENT)).toBe('state');
  });

  it('is doubted no shorter because of a forgotten send', async () => {
    await sender.finishSend(await begun(), UNKNOWN, NO_BREAKER, 60_000);
    await rig.adoptSend(attemptOf('theirs', 2), undefined, 0);
    expect(await rig.change(NOT_SENT)).toBe('state');
  });
});

it('giving up sends that no journal has makes what is queued, held or rejected unknown', async () => {
  await enter('in_progress', 'accepted');
  await enter('rejected', 'rejected');
  await enqueue('held', 'one', 'two');
  await sender.holdPayout('held', 0, HOLD);
  await rig.adoptSend(THEIRS, REJECTED);
  expect(await rig.holdSendable()).toBe(5);
  for (const payoutId of ['one', 'two', 'rejected', 'held', 'p']) {
    const payout = await read(payoutId);
    expect(payout).toMatchObject({ state: 'unknown', message: 'no journal has it' });
    expect(payout).not.toHaveProperty('held');
  }
  expect(await stateOf('accepted')).toBe('in_progress');
  expect(await rig.holdSendable()).toBe(0);
});
