import { describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError } from '../../src/base/errors.js';
import { readActivity } from '../../src/ledger/reads/activity.js';
import type { PayoutState } from '../../src/ledger/states.js';
import { HOLD } from './contract/ledger-rig.js';
import {
  beginOne,
  connection,
  enqueue,
  enter,
  keys,
  ledger,
  NO_BREAKER,
  redis,
  REJECTED,
  sendAs,
  sender,
  stateOf,
  unchanged,
  UNKNOWN,
  useAccount,
} from './support/use-account.js';

useAccount();

type Named = { readonly payoutId: string } & Partial<Record<'gatewayId' | 'fee' | 'message' | 'act', string>> & {
    readonly attempt?: number;
  };

async function decide(from: PayoutState, to: PayoutState, payouts: (string | Named)[], isOneAct = true) {
  const named = payouts.map((payout) => (typeof payout === 'string' ? { payoutId: payout } : payout));
  return ledger.changeMany({ from, to, payouts: named, isOneAct, by: 'ann', reason: 'a wrong\nfile' });
}

async function reject(...payoutIds: string[]) {
  await enqueue(...payoutIds);
  await sendAs(REJECTED, ...payoutIds);
}

const acts = async () => (await readActivity(connection, 9)).activities;
const CONFLICT: unknown = expect.any(ConflictError);

describe('a decision about many payouts', () => {
  it('moves those that it was made about, and says of each other why it was left', async () => {
    await reject('rejected', 'sent-again');
    await enqueue('queued');
    const again = { payoutId: 'sent-again', attempt: 7 };
    const payouts = ['queued', 'nobody', again, { payoutId: 'rejected', attempt: 1 }];
    const results = await decide('rejected', 'queued', payouts);
    expect(results).toEqual([CONFLICT, expect.any(NotFoundError), CONFLICT, undefined]);
    expect([await stateOf('rejected'), await stateOf('sent-again')]).toEqual(['queued', 'rejected']);
    expect((await ledger.get('queued'))?.history).toHaveLength(1);
  });

  it('is in the history of each payout, and in the outbox where it is to be sent', async () => {
    await reject('p', 'q');
    await ledger.clearOutbox('queued', ['p', 'q']);
    await decide('rejected', 'queued', ['p', 'q']);
    for (const payoutId of ['p', 'q']) {
      const payout = await ledger.get(payoutId);
      expect(payout).toMatchObject({ requeueCount: 1 });
      expect(payout?.history.at(-1)).toMatchObject({ to: 'queued', by: 'ann', reason: 'a wrong file' });
    }
    expect(await ledger.readOutbox(9, Infinity)).toHaveLength(2);
  });

  it('changes nothing where it names a payout twice, or a transition that does not exist', async () => {
    await enqueue('p');
    await unchanged(async () => {
      await expect(decide('queued', 'cancelled', ['p', 'p'])).rejects.toThrow(' p is named twice');
      await expect(decide('queued', 'completed', ['p'])).rejects.toThrow('no transition from queued to completed');
      // Nor where it moves nothing.
      await decide('rejected', 'cancelled', ['p']);
    });
    expect(await acts()).toEqual([]);
  });

  it('changes nothing more when it is repeated, and is no second act', async () => {
    await reject('p', 'q');
    expect(await decide('rejected', 'cancelled', ['p', 'q'])).toEqual([undefined, undefined]);
    const again = await unchanged(async () => decide('rejected', 'cancelled', ['p', 'q']));
    expect(again).toEqual([undefined, undefined]);
    expect(await acts()).toMatchObject([{ payoutId: undefined, count: 2 }]);
  });

  it.each(['queued', 'held', 'rejected'] as const)(
    'cancelled from %s after a late payment is written off: nothing says that it was not paid',
    async (from) => {
      if (from === 'queued') await enqueue('late', 'other');
      else await enter(from, 'late', 'other');
      await redis.hset(keys.payout('late'), 'lateGatewayId', 'hash-1');
      for (let time = 0; time < 2; time += 1)
        expect(await decide(from, 'cancelled', ['late', 'other'])).toEqual([undefined, undefined]);
      expect([await stateOf('late'), await stateOf('other')]).toEqual(['written_off', 'cancelled']);
    },
  );

  it('cancelled while the journal has a send or an end of it is written off: nothing says that it was not paid', async () => {
    await enqueue('sent', 'ended', 'unsigned', 'released');
    for (const [payoutId, reason] of [
      ['sent', 'sent_before'],
      ['ended', 'ended_before'],
      ['unsigned', 'before_birth'],
      ['released', 'sent_before'],
    ] as const)
      await sender.holdPayout(payoutId, 0, { ...HOLD, kind: 'journal', reason });
    expect(await decide('held', 'queued', ['released'])).toEqual([undefined]);
    expect(await decide('queued', 'cancelled', ['released'])).toEqual([undefined]);
    const cancelled = await decide('held', 'cancelled', ['sent', 'ended', 'unsigned']);
    expect(cancelled).toEqual([undefined, undefined, undefined]);
    const states = await Promise.all(['sent', 'ended', 'unsigned', 'released'].map(stateOf));
    expect(states).toEqual(['written_off', 'written_off', 'cancelled', 'cancelled']);
    // Which the same word says again.
    expect(await decide('held', 'cancelled', ['sent'])).toEqual([undefined]);
  });

  it('queues again none whose request may be on its way, or that was paid late', async () => {
    await enqueue('doubted');
    await sender.finishSend(await beginOne('doubted'), UNKNOWN, NO_BREAKER, 60_000);
    await enter('unknown', 'late', 'p');
    await redis.hset(keys.payout('late'), 'lateGatewayId', 'hash-1');
    const errors = await decide('unknown', 'queued', ['doubted', 'late', 'p']);
    expect(errors.map((error) => error?.message)).toEqual([
      expect.stringMatching(
        /^The request of payout doubted may still arrive at the gateway until .* UTC, in (59 s|1 min): /,
      ),
      expect.stringMatching(/^Payout late was paid as hash-1/),
      undefined,
    ]);
    // Not to be sent again is possible at any time.
    expect(await decide('unknown', 'written_off', ['doubted', 'late'])).toEqual([undefined, undefined]);
  });

  it('is an act for each payout if it is not one act', async () => {
    await enqueue('p', 'q');
    await decide('queued', 'cancelled', ['p', 'q'], false);
    expect(await acts()).toMatchObject([
      { payoutId: 'q', count: 1 },
      { payoutId: 'p', count: 1 },
    ]);
  });

  it('gives each payout what is its own, also a signed act', async () => {
    await reject('s', 't');
    await decide('rejected', 'queued', [{ payoutId: 's', act: 'of s' }, 't']);
    expect((await ledger.get('s'))?.act).toBe('of s');
    expect((await ledger.get('t'))?.act).toBeUndefined();
    await enter('in_progress', 'p', 'q', 'r');
    const payouts = [{ payoutId: 'p', fee: '0.1', message: 'two\nlines' }, 'q', { payoutId: 'r', fee: '0.3' }];
    await decide('in_progress', 'completed', payouts);
    expect(await ledger.get('p')).toMatchObject({ state: 'completed', fee: '0.1', message: 'two lines' });
    expect(await ledger.get('r')).toMatchObject({ state: 'completed', fee: '0.3' });
    expect(await stateOf('q')).toBe('completed');
    expect(await ledger.get('q')).not.toHaveProperty('fee');
  });
});

describe('the transactions of many payouts', () => {
  const HEXADECIMAL = 'ab'.repeat(32);

  const follow = async (given: Record<string, string>) =>
    decide(
      'unknown',
      'in_progress',
      Object.entries(given).map(([payoutId, gatewayId]) => ({ payoutId, gatewayId })),
    );
  const ownerOf = async (gatewayId: string) => ledger.findByGatewayId(gatewayId);

  it('are found by them, whether their hash has one spelling or several', async () => {
    await enter('unknown', 'p', 'q', 'r');
    const given = { p: HEXADECIMAL, q: 'h', r: 'i' };
    expect(await follow(given)).toEqual([undefined, undefined, undefined]);
    for (const [payoutId, gatewayId] of Object.entries(given)) {
      expect(await ownerOf(gatewayId)).toBe(payoutId);
      expect(await ledger.get(payoutId)).toMatchObject({ gatewayId, vouchedGatewayId: gatewayId });
    }
    expect(await ownerOf('other')).toBeUndefined();
  });

  it('belong to one payout each: the second of a call is refused, in any spelling', async () => {
    await enter('unknown', 'p', 'q');
    const [first, second] = await follow({ p: HEXADECIMAL, q: `0x${HEXADECIMAL.toUpperCase()}` });
    expect(first).toBeUndefined();
    expect(second).toMatchObject({ message: expect.stringMatching(/belongs to payout p$/), fields: ['gatewayId'] });
    expect(await stateOf('q')).toBe('unknown');
    expect(await ownerOf(HEXADECIMAL)).toBe('p');
  });

  it('do not belong to a payout that is refused', async () => {
    await enter('unknown', 'q');
    await enqueue('p');
    expect(await follow({ p: 'h', q: 'h' })).toEqual([CONFLICT, undefined]);
    expect(await ownerOf('h')).toBe('q');
  });

  it('that prove wrong are free again, unless they are of another payout', async () => {
    await enter('unknown', 'p', 'q');
    await follow({ p: 'h', q: 'i' });
    const proveWrong = async (payoutId: string) =>
      decide('in_progress', 'unknown', [{ payoutId, gatewayId: 'h' }], false);
    expect(await proveWrong('q')).toEqual([CONFLICT]);
    // As an earlier version may have left it.
    await redis.hset(keys.payout('q'), 'gatewayId', 'h');
    expect(await proveWrong('q')).toEqual([undefined]);
    expect(await ownerOf('h')).toBe('p');
    expect(await proveWrong('p')).toEqual([undefined]);
    expect([await stateOf('p'), await stateOf('q')]).toEqual(['unknown', 'unknown']);
    await enter('unknown', 'r', 's');
    const [freed, kept] = await follow({ r: 'h', s: 'i' });
    expect(freed).toBeUndefined();
    expect(kept?.message).toMatch(/already belongs to payout q$/);
  });
});
