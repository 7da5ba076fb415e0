import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FINAL_STATES, PAYOUT_STATES, type PayoutState, reachableFrom, TRANSITIONS } from '../../src/ledger/states.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

/** How a payout comes into each state. */
const WAYS: Record<PayoutState, readonly PayoutState[]> = {
  queued: [],
  held: ['held'],
  sending: ['sending'],
  in_progress: ['sending', 'in_progress'],
  completed: ['sending', 'in_progress', 'completed'],
  failed: ['sending', 'in_progress', 'failed'],
  rejected: ['sending', 'rejected'],
  unknown: ['sending', 'unknown'],
  cancelled: ['cancelled'],
};

async function bring(state: PayoutState): Promise<void> {
  await account.ledger.enqueue([aPayout('p')]);
  let from: PayoutState = 'queued';
  for (const to of WAYS[state]) {
    await account.ledger.change({ payoutId: 'p', from, to });
    from = to;
  }
}

const isTransition = (from: PayoutState, to: PayoutState): boolean =>
  TRANSITIONS.some((transition) => transition.from === from && transition.to === to);

const PAIRS = PAYOUT_STATES.flatMap((from) => PAYOUT_STATES.map((to) => [from, to] as const));

describe('the scripts', () => {
  it.each(PAIRS.filter(([from, to]) => isTransition(from, to)))('make the transition %s → %s', async (from, to) => {
    await bring(from);
    await account.ledger.change({ payoutId: 'p', from, to });
    expect((await account.ledger.get('p'))?.state).toBe(to);
    const indexes = await Promise.all(
      PAYOUT_STATES.map(async (state) => account.redis.zrange(account.connection.keys.state(state), '0', '-1')),
    );
    expect(Object.fromEntries(PAYOUT_STATES.map((state, index) => [state, indexes[index]]))).toEqual({
      ...Object.fromEntries(PAYOUT_STATES.map((state) => [state, []])),
      [to]: ['p'],
    });
  });

  it.each(PAIRS.filter(([from, to]) => !isTransition(from, to)))(
    'refuse %s → %s, which the table does not know, before anything is written',
    async (from, to) => {
      await bring(from);
      const before = await account.dump();
      const change = account.ledger.change({ payoutId: 'p', from, to, txhash: 'h', fee: '1', message: 'm' });
      await expect(change).rejects.toThrow(`no transition from ${from} to ${to}`);
      expect(await account.dump()).toEqual(before);
    },
  );
});

describe('the table', () => {
  it('names no transition twice and none from a state to itself', () => {
    expect(new Set(TRANSITIONS.map(({ from, to }) => `${from} ${to}`)).size).toBe(TRANSITIONS.length);
    expect(TRANSITIONS.filter(({ from, to }) => from === to)).toEqual([]);
  });

  it('has three final states, and leads from every other to one of them', () => {
    expect(FINAL_STATES).toEqual(['completed', 'failed', 'cancelled']);
    for (const state of PAYOUT_STATES) {
      const reached = new Set<PayoutState>([state]);
      for (const from of reached) for (const to of reachableFrom(from)) reached.add(to);
      expect(FINAL_STATES.some((final) => reached.has(final))).toBe(true);
    }
  });

  it('never leads back to queued from a state in which money may have moved, except by an operator or a proof', () => {
    const back = TRANSITIONS.filter(({ to }) => to === 'queued').map(({ from, when }) => [from, when]);
    expect(back).toEqual([
      [
        'held',
        'the policy lets it pass, an operator releases it after the cause is gone, or it is enqueued again with a new signature',
      ],
      ['sending', 'it is proved that nothing was sent'],
      ['rejected', 'an operator retries it'],
      ['unknown', 'an operator states that it was not sent'],
    ]);
  });
});

describe('a change that is about one attempt', () => {
  it('is refused once another one was begun, and nothing is changed', async () => {
    await bring('unknown');
    await account.redis.hset(account.connection.keys.payout('p'), 'attempt', 2);
    const before = await account.dump();
    const change = { payoutId: 'p', from: 'unknown', to: 'queued' } as const;
    await expect(account.ledger.change({ ...change, attempt: 1 })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/was sent again meanwhile \(attempt 2\)/),
    });
    expect(await account.dump()).toEqual(before);
    await account.ledger.change({ ...change, attempt: 2 });
    expect((await account.ledger.get('p'))?.state).toBe('queued');
  });
});
