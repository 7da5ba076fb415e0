import { describe, expect, it } from '@jest/globals';
import type { SentOutcome } from '../../../src/gateway/gateway.js';
import type { BreakerRule, Lease } from '../../../src/ledger/sender-ledger.js';
import { begin, send, takeLease } from './ledger-rig.js';
import { ledger, rig } from '../support/use-redis-rig.js';

const RULE: BreakerRule = { maxRejectionsInARow: 3, maxUnknownsInARow: 2 };

/** `A` accepted, `R` rejected, `P` rejected for the payout's own data, `U` unknown. */
const RESULTS: Record<string, SentOutcome> = {
  A: { kind: 'accepted', txhash: 'set below' },
  R: { kind: 'rejected', message: 'no funds' },
  P: { kind: 'rejected', message: 'wrong address' },
  U: { kind: 'unknown', reason: 'timeout' },
};

const OWN = '4 rejections in a row, for their own data: correct where these payouts come from, the last: wrong address';

/** When the account is paused in the same step as a result is recorded. */
let count = 0;
const sendOne = async (lease: Lease, letter: string, given = RULE): Promise<string | undefined> => {
  count += 1;
  const rule = letter === 'P' ? { ...given, maxPayoutRejectionsInARow: 4 } : given;
  const known = RESULTS[letter];
  if (known === undefined) throw new Error(`no result ${letter}`);
  const result = known.kind === 'accepted' ? { ...known, txhash: `hash-${count}` } : known;
  return (await send(rig, lease, { payoutId: `p${count}`, result, rule })).pausedReason;
};
const pausedReason = async (): Promise<string | undefined> => (await ledger.readSender()).pausedReason;

describe('breaker', () => {
  it.each([
    ['RRR', '3 rejections in a row, the last: no funds'],
    ['UU', '2 sends in a row without a trustworthy response, the last: timeout'],
    ['RRUR', '3 rejections in a row, the last: no funds'],
    ['RRARRR', '3 rejections in a row, the last: no funds'],
    ['PPPP', OWN],
    ['RPPRPP', OWN],
    ['PUPPP', OWN],
    ['RPPPRR', '3 rejections in a row, the last: no funds'],
    ['UPUU', '2 sends in a row without a trustworthy response, the last: timeout'],
    ['UAUU', '2 sends in a row without a trustworthy response, the last: timeout'],
    ['URUU', '2 sends in a row without a trustworthy response, the last: timeout'],
  ])('trips with the last of %s and not before', async (letters, reason) => {
    const lease = await takeLease(ledger, 'one');
    for (const letter of letters.slice(0, -1)) {
      expect(await sendOne(lease, letter)).toBeUndefined();
      expect(await pausedReason()).toBeUndefined();
    }
    expect(await sendOne(lease, letters.at(-1) ?? '')).toBe(reason);
    expect(await pausedReason()).toBe(reason);
  });

  it.each(['RRARRARR', 'UAUAURURA', 'PPPAPPPA', 'RRPPPARRPPP', 'UPUPUP'])('does not trip with %s', async (letters) => {
    const lease = await takeLease(ledger, 'one');
    for (const letter of letters) expect(await sendOne(lease, letter)).toBeUndefined();
    expect(await pausedReason()).toBeUndefined();
  });

  it('trips at once when the response looks like a block, with that reason', async () => {
    const lease = await takeLease(ledger, 'one');
    const rule = { ...RULE, maxRejectionsInARow: 1, blockedReason: 'the gateway says: blocked' };
    expect(await sendOne(lease, 'R', rule)).toBe('the gateway says: blocked');
    expect(await pausedReason()).toBe('the gateway says: blocked');
  });

  it('counts from zero after an operator has resumed', async () => {
    const lease = await takeLease(ledger, 'one');
    for (const letter of 'RRPPPUU') await sendOne(lease, letter);
    await rig.resume();
    for (const letter of 'RRPPPU') expect(await sendOne(lease, letter)).toBeUndefined();
    expect(await sendOne(lease, 'R')).toMatch(/^3 rejections/);
  });

  it('leaves the first reason, and says only of the result that paused the account that it did', async () => {
    await rig.enqueue('p');
    const attempt = await begin(ledger, await takeLease(ledger, 'one'), 'p');
    expect(await rig.pause('holiday')).toBe(true);
    expect(await rig.pause('another reason')).toBe(false);
    const result = { kind: 'rejected', message: 'account blocked' } as const;
    const rule = { ...RULE, blockedReason: 'blocked' };
    expect(await ledger.finishSend(attempt, result, rule, 0)).toEqual({ recorded: true });
    expect(await pausedReason()).toBe('holiday');
  });

  it('counts a late response like one in time', async () => {
    const lease = await takeLease(ledger, 'one');
    await rig.enqueue('late');
    const attempt = await begin(ledger, lease, 'late');
    await ledger.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, RULE, 0);
    await ledger.finishSend(attempt, { kind: 'accepted', txhash: 'late-hash' }, RULE, 0);
    expect(await sendOne(lease, 'U')).toBeUndefined();
  });

  it('does not count what is not recorded, nor what a recovery finds', async () => {
    await rig.enqueue('p');
    const attempt = await begin(ledger, await takeLease(ledger, 'one'), 'p');
    const lease = await takeLease(ledger, 'two');
    await ledger.markSendsUnknown(lease, [attempt], 'the sender ended', 0);
    await ledger.finishSend(attempt, { kind: 'unknown', reason: 'timeout' }, RULE, 0);
    expect(await sendOne(lease, 'U')).toBeUndefined();
  });

  it('says of an account that is not paused that there is nothing to resume', async () => {
    expect(await rig.resume()).toBe(false);
  });
});
