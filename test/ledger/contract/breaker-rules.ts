import { describe, expect, it } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import { ACCEPTED, begun, finish, REJECTED, rig, sender, UNKNOWN } from '../support/use-account.js';
import { takeLease } from './ledger-rig.js';

const RULE = { maxRejectionsInARow: 3, maxUnknownsInARow: 2 };

/** Rejected for the payout's own data. */
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
  const result = letter === 'A' ? { ...ACCEPTED, txhash: `hash-${count}` } : (RESULTS[letter] ?? UNKNOWN);
  return (await finish(await begun(`p${count}`), result, rule)).pausedReason;
}
const pausedReason = async () => (await sender.readSender()).pausedReason;

describe('the breaker', () => {
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
  ])('trips with the last of %s and not before', async (letters, reason) => {
    for (const letter of letters.slice(0, -1)) expect(await sendOne(letter)).toBeUndefined();
    expect(await pausedReason()).toBeUndefined();
    expect(await sendOne(letters.at(-1) ?? '')).toBe(reason);
    expect(await pausedReason()).toBe(reason);
  });

  it.each(['RRARRARR', 'UAUAURURA', 'PPPAPPPA', 'RRPPPARRPPP', 'UPUPUP'])('does not trip with %s', async (letters) => {
    for (const letter of letters) expect(await sendOne(letter)).toBeUndefined();
    expect(await pausedReason()).toBeUndefined();
  });

  it('trips at once when the response looks like a block, with that reason', async () => {
    const rule = { ...RULE, maxRejectionsInARow: 1, blockedReason: 'the gateway says: blocked' };
    expect(await sendOne('R', rule)).toBe(rule.blockedReason);
    expect(await pausedReason()).toBe(rule.blockedReason);
  });

  it('counts from zero after an operator has resumed', async () => {
    for (const letter of 'RRPPPU') await sendOne(letter);
    expect(await sendOne('U')).toBe(TWO);
    await rig.resume();
    for (const letter of 'RRPPPU') expect(await sendOne(letter)).toBeUndefined();
    expect(await sendOne('R')).toBe(THREE);
  });

  it('leaves the first reason, and says only of the result that paused the account that it did', async () => {
    const attempt = await begun();
    expect(await rig.pause('holiday')).toBe(true);
    expect(await rig.pause('another reason')).toBe(false);
    expect(await finish(attempt, REJECTED, { ...RULE, blockedReason: 'blocked' })).toEqual({ recorded: true });
    expect(await pausedReason()).toBe('holiday');
  });

  it('counts a late response like one in time', async () => {
    const attempt = await begun();
    for (const result of [UNKNOWN, ACCEPTED]) await finish(attempt, result, RULE);
    expect(await sendOne('U')).toBeUndefined();
  });

  it('does not count what is not recorded, nor what a recovery finds', async () => {
    const attempt = await begun();
    await sender.markSendsUnknown(await takeLease(sender, 'two'), [attempt], 'the sender ended', 0);
    await finish(attempt, UNKNOWN, RULE);
    expect(await sendOne('U')).toBeUndefined();
  });
});
