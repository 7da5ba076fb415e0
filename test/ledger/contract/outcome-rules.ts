import { describe, expect, it } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import { begin } from './ledger-rig.js';
import {
  ACCEPTED,
  beginOne,
  begun,
  change,
  clock,
  enqueue,
  finish,
  nextBegin,
  read,
  REJECTED,
  rig,
  sender,
  stateOf,
  takeLease,
  unchanged,
  UNKNOWN,
} from '../support/use-account.js';

/** What is recorded of an attempt: once, only by that attempt, and late only what is better than not knowing. */

const HEX = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const SAME_TRANSACTION = [
  [HEX, HEX.toUpperCase()],
  [HEX.toUpperCase(), HEX],
  [`0x${HEX}`, `0x${HEX.toUpperCase()}`],
  [`0X${HEX}`, HEX],
  ['0xabc', '0xABC'],
] as const;

const RECORDED = { recorded: true };
const IGNORED = { recorded: false };
const LATE_PAYMENT = { recorded: false, latePayment: true };

const paidAs = (gatewayId: string) => ({ ...ACCEPTED, gatewayId });
const isAwaitingAnswer = async () => (await sender.readSender()).awaitingAnswer;
const ignores = async (attempt: SendAttempt, ...results: SentOutcome[]) => {
  for (const result of results) expect(await unchanged(async () => finish(attempt, result))).toEqual(IGNORED);
};
const becameUnknown = async (payoutId = 'p'): Promise<SendAttempt> => {
  const attempt = await begun(payoutId);
  expect(await finish(attempt, UNKNOWN)).toEqual(RECORDED);
  return attempt;
};

describe('an outcome', () => {
  it.each([
    ['acceptance', ACCEPTED, { state: 'in_progress', gatewayId: 'h' }, undefined],
    ['rejection', { ...REJECTED, message: 'two\nlines\tand a tab' }, { state: 'rejected' }, 'two lines and a tab'],
    ['silence', UNKNOWN, { state: 'unknown' }, 'silence'],
  ] as const)('is recorded once: %s', async (_, result, expected, message) => {
    const attempt = await begun();
    expect(await finish(attempt, result)).toEqual(RECORDED);
    const payout = await read();
    expect(payout).toMatchObject({ ...expected, attempt: 1 });
    expect([payout?.message, payout?.gatewayId === undefined]).toEqual([message, result.kind !== 'accepted']);
    const entry = { at: payout?.updatedAt, from: 'sending', to: payout?.state };
    expect(payout?.history.at(-1)).toEqual(message === undefined ? entry : { ...entry, reason: message });
    // Where nothing is known, the request may still be on its way.
    expect(await isAwaitingAnswer()).toBe(result.kind === 'unknown');
    await ignores(attempt, result);
  });

  it('is noted with a spend that a policy counts: as accepted, as unpaid, and not at all where nothing is known', async () => {
    const lease = await takeLease(sender, 'one');
    const unanswered: SendAttempt[] = [];
    for (const [payoutId, result] of Object.entries({ p: ACCEPTED, q: REJECTED, r: UNKNOWN, s: undefined })) {
      await enqueue(payoutId);
      const asked = await nextBegin(sender, lease, payoutId);
      const spend = { id: payoutId, payoutId, attempt: 1, paymentId: 7, amount: '1', addressTo: 'w', inFlightMs: 0 };
      await sender.beginSend({ ...asked, spend: { spend, since: 0 } });
      await (result === undefined ? sender.revertSend(asked, 'not sent') : finish(asked, result));
      if (payoutId === 'r') unanswered.push(asked);
    }
    // The last send counts for nothing, which says nothing of one before it.
    await enqueue('uncounted');
    await finish(await begin(sender, lease, 'uncounted'), paidAs('hash-of-uncounted'));
    for (const late of unanswered) await finish(late, paidAs('hash-of-r'));
    const noted = (await sender.readSpends()).map(
      (event) => `${event.kind} ${'id' in event ? event.id : event.spend.id}`,
    );
    const expected = ['begun p', 'accepted p', 'begun q', 'unpaid q', 'begun r', 'begun s', 'unpaid s', 'accepted r'];
    expect(noted).toEqual(expected);
  });

  it('is ignored for another number or token, and a payout that is not there', async () => {
    const attempt = await begun();
    for (const wrong of [{ attempt: 0 }, { attempt: 2 }, { token: 'another' }, { payoutId: 'q' }]) {
      await ignores({ ...attempt, ...wrong }, ACCEPTED, REJECTED, UNKNOWN);
    }
    expect(await stateOf()).toBe('sending');
    await enqueue('never-begun');
    await ignores({ payoutId: 'never-begun', attempt: 0, token: '' }, ACCEPTED);
  });

  it('does not turn one response into another', async () => {
    const attempt = await begun();
    await finish(attempt, ACCEPTED);
    await ignores(attempt, REJECTED, UNKNOWN);
    const other = await begun('other');
    await finish(other, REJECTED);
    await ignores(other, UNKNOWN);
    expect(await finish(other, paidAs('hash-2'))).toEqual(LATE_PAYMENT);
    expect(await stateOf('other')).toBe('rejected');
  });

  it('is no news once its gatewayId turned out to be of another payment', async () => {
    const attempt = await begun();
    await finish(attempt, ACCEPTED);
    await change('p', 'in_progress', 'unknown', { gatewayId: 'h' });
    await ignores(attempt, ACCEPTED);
    await change('p', 'unknown', 'queued');
    await ignores(attempt, ACCEPTED);
    expect(await finish(await begun('other'), ACCEPTED)).toEqual(RECORDED);
    expect([await stateOf('other'), await stateOf()]).toEqual(['in_progress', 'queued']);
  });

  it('is ignored for an attempt that was put back, unless it is an acceptance', async () => {
    const attempt = await begun();
    await sender.revertSend(attempt, 'no connection');
    await ignores(attempt, REJECTED, UNKNOWN);
    expect(await finish(attempt, ACCEPTED)).toEqual(RECORDED);
  });
});

describe('a late response', () => {
  it('of acceptance leads from unknown to in_progress, and clears message and flag', async () => {
    const attempt = await becameUnknown();
    expect(await finish(attempt, ACCEPTED)).toEqual(RECORDED);
    const payout = await read();
    expect(payout).toMatchObject({ state: 'in_progress', gatewayId: 'h' });
    expect(payout).not.toHaveProperty('message');
    expect(payout?.history.map(({ to }) => to)).toEqual(['queued', 'sending', 'unknown', 'in_progress']);
    expect(await isAwaitingAnswer()).toBe(false);
    await ignores(attempt, ACCEPTED);
  });

  it('of rejection leads from unknown to rejected', async () => {
    expect(await finish(await becameUnknown(), REJECTED)).toEqual(RECORDED);
    expect(await read()).toMatchObject({ state: 'rejected', message: 'no funds' });
    expect(await isAwaitingAnswer()).toBe(false);
  });

  it('counts also after another holder made the payout unknown', async () => {
    const attempt = await begun();
    await sender.markSendsUnknown(await takeLease(sender, 'two'), [attempt], 'the sender ended', 0);
    await ignores({ ...attempt, token: 'another' }, ACCEPTED);
    expect(await finish(attempt, ACCEPTED)).toEqual(RECORDED);
    expect(await stateOf()).toBe('in_progress');
  });

  it.each([
    ['written_off', {}],
    ['in_progress', { gatewayId: 'by-hand' }],
  ] as const)('is noted as a late payment once an operator has made the payout %s', async (to, extra) => {
    const attempt = await becameUnknown();
    await change('p', 'unknown', to, extra);
    for (const result of [UNKNOWN, REJECTED]) expect(await finish(attempt, result)).toEqual(IGNORED);
    expect(await read()).not.toHaveProperty('lateGatewayId');
    expect(await finish(attempt, ACCEPTED)).toEqual(LATE_PAYMENT);
    expect(await read()).toMatchObject({ state: to, lateGatewayId: 'h', ...extra });
    clock.advance(5);
    expect(await unchanged(async () => finish(attempt, ACCEPTED))).toEqual(LATE_PAYMENT);
  });

  it('of acceptance stops a payout taken for not sent from being sent again', async () => {
    const attempt = await becameUnknown();
    await change('p', 'unknown', 'queued');
    await ignores(attempt, UNKNOWN);
    expect(await finish(attempt, REJECTED)).toEqual(IGNORED);
    expect(await stateOf()).toBe('queued');
    expect(await finish(attempt, ACCEPTED)).toEqual(RECORDED);
    expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: 'h' });
  });

  it('of an earlier attempt is a late payment while the next one is sending', async () => {
    const first = await becameUnknown();
    await change('p', 'unknown', 'queued');
    const second = await beginOne('p');
    await ignores(first, REJECTED);
    expect(await finish(first, ACCEPTED)).toEqual(LATE_PAYMENT);
    expect(await read()).toMatchObject({ state: 'sending', lateGatewayId: 'h' });
    expect(await finish(second, paidAs('hash-2'))).toEqual(RECORDED);
  });

  it('of an earlier attempt counts also after the number of another was used up', async () => {
    const first = await becameUnknown();
    await change('p', 'unknown', 'queued');
    await sender.revertSend({ payoutId: 'p', attempt: 2, token: 'never-began' }, 'no reply');
    expect(await finish(first, ACCEPTED)).toEqual(RECORDED);
    expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: 'h' });
  });
});

describe('one gatewayId for two payouts', () => {
  it('makes both unknown, each with the reason', async () => {
    await finish(await begun('first'), ACCEPTED);
    expect(await finish(await begun('second'), ACCEPTED)).toEqual(RECORDED);
    const reason = 'the gateway gave the same payment to payout second';
    expect(await read('first')).toMatchObject({ state: 'unknown', message: reason });
    const second = await read('second');
    const message = 'the gateway gave the payment of payout first: h';
    expect(second).toMatchObject({ state: 'unknown', message });
    expect(second).not.toHaveProperty('gatewayId');
    expect(await isAwaitingAnswer()).toBe(false);
  });

  it.each(SAME_TRANSACTION)('counts %s and %s as one', async (one, other) => {
    await finish(await begun('first'), paidAs(one));
    await finish(await begun('second'), paidAs(other));
    expect([await stateOf('first'), await stateOf('second')]).toEqual(['unknown', 'unknown']);
    const second = { payoutId: 'second', from: 'unknown', to: 'in_progress', gatewayId: other } as const;
    expect(await rig.change(second)).toBe('gatewayId');
    const sent = await rig.adoptSend({ payoutId: 'third', attempt: 1, token: 'sent' }, paidAs(other));
    expect(sent).toMatchObject({ state: 'unknown' });
  });

  it.each(SAME_TRANSACTION)('frees %s under %s, when it turned out to be of another payment', async (one, other) => {
    await finish(await begun('first'), paidAs(one));
    await change('first', 'in_progress', 'unknown', { gatewayId: other });
    await finish(await begun('second'), paidAs(other));
    expect(await stateOf('second')).toBe('in_progress');
  });

  it.each([['h', 'h'], ...SAME_TRANSACTION])('sees no late payment in %s, given by hand as %s', async (one, other) => {
    const attempt = await becameUnknown();
    await change('p', 'unknown', 'in_progress', { gatewayId: other });
    expect(await finish(attempt, paidAs(one))).toEqual(IGNORED);
    await rig.adoptSend(attempt, paidAs(one));
    expect(await read()).not.toHaveProperty('lateGatewayId');
  });

  it('tells hashes apart that are no hexadecimal numbers, in another case', async () => {
    const gatewayId = '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW';
    await finish(await begun('first'), paidAs(gatewayId));
    await finish(await begun('second'), paidAs(gatewayId.toLowerCase()));
    expect([await stateOf('first'), await stateOf('second')]).toEqual(['in_progress', 'in_progress']);
  });

  it.each(['completed', 'failed', 'unknown'] as const)('that was replaced decides nothing: not %s', async (to) => {
    await finish(await begun(), ACCEPTED);
    await change('p', 'in_progress', 'unknown', { gatewayId: 'h' });
    await change('p', 'unknown', 'in_progress', { gatewayId: 'by-hand' });
    expect(await rig.change({ payoutId: 'p', from: 'in_progress', to, gatewayId: 'h' })).toBe('attempt');
    expect(await read()).toMatchObject({ state: 'in_progress', gatewayId: 'by-hand' });
    await change('p', 'in_progress', to, { gatewayId: 'by-hand' });
    expect(await read()).toMatchObject({ state: to, gatewayId: 'by-hand' });
  });

  it('leaves a payout alone that is completed: the transaction is its own', async () => {
    await finish(await begun('first'), ACCEPTED);
    await change('first', 'in_progress', 'completed');
    const second = await begun('second');
    await finish(second, ACCEPTED);
    expect([await stateOf('first'), await stateOf('second')]).toEqual(['completed', 'unknown']);
    await ignores(second, ACCEPTED);
  });
});

describe('the flag of a request without a response', () => {
  it('stays through another holder, a recovery and the decision of an operator', async () => {
    const attempt = await begun();
    const lease = await takeLease(sender, 'two');
    expect(await isAwaitingAnswer()).toBe(true);
    await sender.markSendsUnknown(lease, [attempt], 'the sender ended', 0);
    await change('p', 'unknown', 'written_off');
    expect(await isAwaitingAnswer()).toBe(true);
  });

  it('belongs to the last attempt begun: an earlier one does not clear it', async () => {
    const earlier = await becameUnknown('earlier');
    const later = await begun('later');
    await finish(earlier, ACCEPTED);
    expect([await isAwaitingAnswer(), (await sender.readSender()).sendCount]).toEqual([true, 2]);
    await finish(later, paidAs('hash-2'));
    expect(await isAwaitingAnswer()).toBe(false);
  });
});

const RULE = { maxRejectionsInARow: 3, maxUnknownsInARow: 2 };

const OWN: SentOutcome = { kind: 'rejected', message: 'wrong address' };
const RESULTS: Record<string, SentOutcome> = { A: ACCEPTED, R: REJECTED, P: OWN, U: UNKNOWN };

const THREE = '3 rejections in a row, the last: no funds';
const TWO = '2 sends in a row without a trustworthy response, the last: silence';
const FOUR =
  '4 rejections in a row, for their own data: correct where these payouts come from, the last: wrong address';

let count = 0;
/** Sends one payout with the result of this letter. @returns the reason of the pause that this made */
async function sendOne(letter: string, given = RULE): Promise<string | undefined> {
  count += 1;
  const rule = letter === 'P' ? { ...given, maxPayoutRejectionsInARow: 4 } : given;
  const result = letter === 'A' ? { ...ACCEPTED, gatewayId: `hash-${count}` } : (RESULTS[letter] ?? UNKNOWN);
  return (await finish(await begun(`p${count}`), result, rule)).pausedReason;
}
const pausedReason = async () => (await sender.readSender()).pausedReason;

it.each([
  ['RRR', THREE],
  ['UU', TWO],
  ['RRUR', THREE],
  ['RRARRR', THREE],
  ['PPPP', FOUR],
  ['RPPRPP', FOUR],
  ['PUPPP', FOUR],
  ['RPPPRR', THREE],
  ['UPUU', TWO],
  ['UAUU', TWO],
  ['URUU', TWO],
])('the breaker trips with the last of %s and not before', async (letters, reason) => {
  for (const letter of letters.slice(0, -1)) expect(await sendOne(letter)).toBeUndefined();
  expect(await pausedReason()).toBeUndefined();
  expect(await sendOne(letters.at(-1) ?? '')).toBe(reason);
  expect(await pausedReason()).toBe(reason);
});

it.each(['RRARRARR', 'UAUAURURA', 'PPPAPPPA', 'RRPPPARRPPP', 'UPUPUP'])(
  'the breaker does not trip with %s',
  async (letters) => {
    for (const letter of letters) expect(await sendOne(letter)).toBeUndefined();
    expect(await pausedReason()).toBeUndefined();
  },
);

it('the breaker trips at once when the response looks like a block, with that reason', async () => {
  const rule = { ...RULE, maxRejectionsInARow: 1, blockedReason: 'the gateway says: blocked' };
  expect(await sendOne('R', rule)).toBe(rule.blockedReason);
  expect(await pausedReason()).toBe(rule.blockedReason);
});

it('the breaker counts from zero after an operator has resumed', async () => {
  for (const letter of 'RRPPPU') await sendOne(letter);
  expect(await sendOne('U')).toBe(TWO);
  await rig.resume();
  for (const letter of 'RRPPPU') expect(await sendOne(letter)).toBeUndefined();
  expect(await sendOne('R')).toBe(THREE);
});

it('the breaker adds its pause to that of a person, once, and the first reason stays', async () => {
  const attempt = await begun();
  expect(await rig.pause('holiday')).toBe(true);
  expect(await rig.pause('another reason')).toBe(false);
  expect(await finish(attempt, REJECTED, { ...RULE, blockedReason: 'blocked' })).toEqual({
    ...{ recorded: true, pausedReason: 'blocked' },
  });
  const { pausedReason: first, pauses } = await sender.readSender();
  expect([first, pauses.map(({ by, reason }) => `${by}: ${reason}`)]).toEqual([
    'holiday',
    [expect.stringMatching(/: holiday$/), 'worker: blocked'],
  ]);
});

it('the breaker counts a late response like one in time', async () => {
  const attempt = await begun();
  for (const result of [UNKNOWN, ACCEPTED]) await finish(attempt, result, RULE);
  expect(await sendOne('U')).toBeUndefined();
});

it('the breaker does not count what is not recorded, nor what a recovery finds', async () => {
  const attempt = await begun();
  await sender.markSendsUnknown(await takeLease(sender, 'two'), [attempt], 'the sender ended', 0);
  await finish(attempt, UNKNOWN, RULE);
  expect(await sendOne('U')).toBeUndefined();
});
