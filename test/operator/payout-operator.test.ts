import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  ClosedError,
  ConflictError,
  InvalidConfigError,
  InvalidInputError,
  NotFoundError,
  RedisUnavailableError,
  UnsupportedFormatError,
} from '../../src/base/errors.js';
import { PayoutOperator } from '../../src/control/payout-operator.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { ANN, openOperatorRig, type OperatorRig } from './support/operator-rig.js';

let rig: OperatorRig;
beforeEach(async () => {
  rig = await openOperatorRig();
});
afterEach(async () => rig.close());

describe('retry', () => {
  it('queues a rejected payout again, with a job of its own, and records who and why', async () => {
    await rig.bring('p', 'rejected');
    expect(await rig.operator.retry('p', ANN)).toMatchObject({ state: 'queued', requeueCount: 1 });
    expect((await rig.account.ledger.get('p'))?.history.at(-1)).toMatchObject({
      from: 'rejected',
      to: 'queued',
      ...ANN,
    });
    expect(await rig.withdrawJobs()).toContain('p~1');
    expect(await rig.outbox()).toEqual([]);
  });

  it('refuses a payout that is not rejected, and one that does not exist', async () => {
    await rig.bring('p', 'unknown');
    await expect(rig.operator.retry('p', ANN)).rejects.toThrow(
      new ConflictError(
        'Cannot move payout p from unknown to queued: that needs rejected. Allowed from unknown: in_progress, rejected, queued, cancelled',
      ),
    );
    await expect(rig.operator.retry('nobody', ANN)).rejects.toThrow(new NotFoundError('Payout nobody not found'));
  });
});

describe('release', () => {
  const hold = async (payoutId = 'p'): Promise<void> => {
    await rig.bring(payoutId, 'queued');
    expect(await rig.account.sender.holdPayout(payoutId, 0, HOLD)).toBe(true);
  };

  it('queues a held payout again, with a job of its own, and records who and why', async () => {
    await hold();
    const released = await rig.operator.release('p', ANN);
    expect(released).toMatchObject({ state: 'queued', requeueCount: 1 });
    expect(released).not.toHaveProperty('held');
    expect(released.history.at(-1)).toMatchObject({ from: 'held', to: 'queued', ...ANN });
    const { redis, keys } = rig.account.connection;
    expect(await redis.hexists(keys.payout('p'), 'held')).toBe(0);
    expect(await rig.withdrawJobs()).toContain('p~1');
    expect(await rig.outbox()).toEqual([]);
  });

  it('puts it at the end of the queue', async () => {
    await hold();
    await rig.bring('q', 'queued');
    await rig.operator.release('p', ANN);
    const { redis, keys } = rig.account.connection;
    expect(await redis.zrange(keys.state('queued'), '0', '-1')).toEqual(['q', 'p']);
  });

  it('refuses what is not held, and says what is meant instead', async () => {
    await rig.bring('p', 'rejected');
    await expect(rig.operator.release('p', ANN)).rejects.toThrow(
      new ConflictError(
        'Cannot move payout p from rejected to queued: that needs held. Allowed from rejected: queued, cancelled. `payouts retry` queues it again',
      ),
    );
    await rig.bring('q', 'unknown');
    await expect(rig.operator.release('q', ANN)).rejects.toThrow(/\. `payouts resolve` decides what became of it$/);
    await rig.bring('r', 'queued');
    await expect(rig.operator.release('r', ANN)).rejects.toThrow(/from queued to queued: that needs held\. Allowed/);
    await expect(rig.operator.release('nobody', ANN)).rejects.toThrow(NotFoundError);
  });

  it('is what retry and resolve name for a held payout', async () => {
    await hold();
    const named =
      /that needs (rejected|unknown)\. Allowed from held: queued, cancelled\. It was not sent: `payouts release` queues/;
    await expect(rig.operator.retry('p', ANN)).rejects.toThrow(named);
    await expect(rig.operator.resolve('p', { kind: 'not_sent' }, ANN)).rejects.toThrow(named);
    await expect(rig.operator.resolve('p', { kind: 'write_off' }, ANN)).rejects.toThrow(named);
  });

  it('does not queue what was paid late', async () => {
    await hold();
    await rig.account.redis.hset(rig.account.connection.keys.payout('p'), 'lateTxhash', 'hash-1');
    await expect(rig.operator.release('p', ANN)).rejects.toThrow(/was paid as hash-1/);
  });
});

describe('resolve as not sent', () => {
  it('queues the payout again', async () => {
    await rig.bring('p', 'unknown');
    expect(await rig.operator.resolve('p', { kind: 'not_sent' }, ANN)).toMatchObject({ state: 'queued' });
    expect(await rig.withdrawJobs()).toContain('p~1');
  });

  it('refuses while the request may still be on its way', async () => {
    await rig.bring('p', 'unknown');
    const { redis, keys } = rig.account.connection;
    await redis.hset(keys.payout('p'), 'doubtUntil', Date.now() + 60_000);
    const resolving = rig.operator.resolve('p', { kind: 'not_sent' }, ANN);
    await expect(resolving).rejects.toThrow(ConflictError);
    await expect(resolving).rejects.toThrow(/may still be on its way to the gateway for \d+ s/);
  });

  it('refuses where the attempt that was decided about is not the last one', async () => {
    await rig.bring('p', 'unknown');
    await rig.account.redis.hset(rig.account.connection.keys.payout('p'), 'attempt', 2);
    const decided = { payoutId: 'p', attempt: 1 };
    await expect(rig.operator.resolve(decided, { kind: 'not_sent' }, ANN)).rejects.toThrow(/sent again meanwhile/);
    expect(await rig.operator.resolve({ ...decided, attempt: 2 }, { kind: 'not_sent' }, ANN)).toMatchObject({
      state: 'queued',
    });
  });
});

describe('resolve as written off', () => {
  it('cancels the payout', async () => {
    await rig.bring('p', 'unknown');
    expect(await rig.operator.resolve('p', { kind: 'write_off' }, ANN)).toMatchObject({ state: 'cancelled' });
    expect(await rig.withdrawJobs()).not.toContain('p~1');
  });

  it('refuses a payout that is not unknown', async () => {
    await rig.bring('p', 'in_progress');
    await expect(rig.operator.resolve('p', { kind: 'write_off' }, ANN)).rejects.toThrow(ConflictError);
    await expect(rig.operator.resolve('nobody', { kind: 'write_off' }, ANN)).rejects.toThrow(NotFoundError);
  });
});

describe('cancel', () => {
  it.each(['queued', 'held', 'rejected'] as const)('cancels a payout that is %s and removes its job', async (state) => {
    await rig.bring('p', state === 'held' ? 'queued' : state);
    if (state === 'held') await rig.account.sender.holdPayout('p', 0, HOLD);
    expect(await rig.operator.cancel('p', ANN)).toMatchObject({ state: 'cancelled' });
    expect(await rig.withdrawJobs()).toEqual([]);
  });

  it('refuses what may have been paid, and what does not exist', async () => {
    await rig.bring('p', 'unknown');
    await expect(rig.operator.cancel('p', ANN)).rejects.toThrow(
      /^Cannot move payout p from unknown to cancelled: that needs queued, held or rejected\. Allowed/,
    );
    await expect(rig.operator.cancel('nobody', ANN)).rejects.toThrow(NotFoundError);
  });
});

describe('pause and resume', () => {
  it('stop and start the account, and say whether they changed anything', async () => {
    const { platformId } = rig.account.connection;
    const paused = {
      platformId,
      paused: true,
      pausedReason: ANN.reason,
      pausedBy: 'ann',
      pausedAt: expect.any(String),
    };
    expect(await rig.operator.pause(ANN)).toEqual({ ...paused, changed: true });
    expect(await rig.operator.pause({ by: 'bob', reason: 'lunch' })).toEqual({ ...paused, changed: false });
    const running = { platformId, paused: false, pausedReason: null, pausedBy: null, pausedAt: null };
    expect(await rig.operator.resume(ANN)).toEqual({ ...running, changed: true });
    expect(await rig.operator.resume(ANN)).toEqual({ ...running, changed: false });
  });

  it('do not resume while a send journal objects to the ledger', async () => {
    await rig.object();
    await expect(rig.operator.resume(ANN)).rejects.toThrow(ConflictError);
    await expect(rig.operator.resume(ANN)).rejects.toThrow(/^Send journal j-two contradicts this ledger/);
  });
});

describe('every call', () => {
  const calls: [string, (operator: PayoutOperator, actor: typeof ANN) => Promise<unknown>][] = [
    ['retry', async (operator, actor) => operator.retry('p', actor)],
    ['resolve', async (operator, actor) => operator.resolve('p', { kind: 'not_sent' }, actor)],
    ['cancel', async (operator, actor) => operator.cancel('p', actor)],
    ['pause', async (operator, actor) => operator.pause(actor)],
    ['resume', async (operator, actor) => operator.resume(actor)],
    ['adoptLedger', async (operator, actor) => operator.adoptLedger({ journalDirs: [] }, actor)],
  ];

  it.each(calls)('%s refuses an actor without a name or a reason', async (_, call) => {
    for (const [actor, field] of [
      [{ ...ANN, by: '' }, 'by'] as const,
      [{ ...ANN, reason: 'a\nb' }, 'reason'] as const,
    ]) {
      const refused = call(rig.operator, actor);
      await expect(refused).rejects.toThrow(InvalidInputError);
      await expect(refused).rejects.toMatchObject({ problems: [{ field }] });
    }
  });

  it.each(calls)('%s refuses a ledger of a newer version', async (_, call) => {
    await rig.bring('p', 'queued');
    await rig.account.redis.hset(rig.account.connection.keys.ledger, 'format', '9');
    await expect(call(rig.operator, ANN)).rejects.toThrow(UnsupportedFormatError);
  });

  it.each(calls)('%s fails within seconds where Redis is unavailable', async (_, call) => {
    const operator = new PayoutOperator({ platformId: 1, redisUrl: 'redis://127.0.0.1:1' });
    await expect(call(operator, ANN)).rejects.toThrow(RedisUnavailableError);
    await operator.close();
  });

  it.each(calls)('%s fails once the operator is closed', async (_, call) => {
    await rig.operator.close();
    await rig.operator.close();
    await expect(call(rig.operator, ANN)).rejects.toThrow(new ClosedError('Operator is closed; create a new one'));
  });
});

describe('an operator', () => {
  it('cannot be made with options that cannot be used', () => {
    expect(() => new PayoutOperator({ platformId: 0, redisUrl: 'redis://127.0.0.1' })).toThrow(InvalidConfigError);
    expect(() => new PayoutOperator({ platformId: 1 })).toThrow(/^redisUrl: is missing/);
  });
});
