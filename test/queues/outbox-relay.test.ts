import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import type { PayoutQueues } from '../../src/queues/payout-queues.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { rig, useRig } from './support/queue-rig.js';

useRig();

const soon = (): number => rig.account.clock.wallNow() + 1;
const withdrawJobs = async () => (await rig.queues.withdraw.getWaiting()).map((job) => job.id).sort();
const statusJobs = async () => (await rig.queues.transactionstatus.getDelayed()).map((job) => job.id).sort();

const relay = async (signal?: AbortSignal) => rig.relay.relayOutbox(soon(), signal);
const outbox = async () => rig.account.redis.zrange(rig.account.connection.keys.outbox, '0', '-1');
const names = (count: number, prefix = 'p'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);
const accept = async (...payoutIds: string[]) =>
  rig.account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));

async function makeInProgress(payoutId: string): Promise<void> {
  const { ledger } = rig.account;
  await ledger.change({ payoutId, from: 'queued', to: 'sending' });
  await ledger.change({ payoutId, from: 'sending', to: 'in_progress', txhash: `hash-${payoutId}` });
}

describe('relayOutbox', () => {
  it('adds the jobs that a crash left out, and then has nothing to do', async () => {
    await accept('p', 'q');
    await makeInProgress('q');
    expect(await relay()).toBe(3);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect(await statusJobs()).toEqual(['q~0']);
    expect(await relay()).toBe(0);
  });

  it('goes through more than one page, and ends between two when it is told to', async () => {
    await accept(...names(600));
    expect(await relay(AbortSignal.abort())).toBe(250);
    expect(await relay()).toBe(350);
    expect(await rig.queues.withdraw.count()).toBe(600);
  });

  it('adds no job for a payout that has moved on', async () => {
    await accept('p');
    await rig.account.ledger.change({ payoutId: 'p', from: 'queued', to: 'cancelled' });
    expect(await relay()).toBe(1);
    expect(await withdrawJobs()).toEqual([]);
    expect(await relay()).toBe(0);
  });
});

describe('relayOutbox, where someone has altered notBefore', () => {
  it('reports it once, and adds the jobs of all', async () => {
    const { redis, connection } = rig.account;
    await accept('p', 'strange');
    await redis.hset(connection.keys.payout('strange'), 'notBefore', 'now');
    expect(await relay()).toBe(2);
    expect(await withdrawJobs()).toEqual(['p~0', 'strange~0']);
    await rig.relay.deliver('queued', ['strange']);
    expect(rig.errors).toEqual([[{ payoutId: 'strange', notBefore: 'now' }, expect.stringContaining('is no time')]]);
  });
});

describe('relayOutbox, where members of the outbox make no sense to it', () => {
  const STRANGE = ['refunding p-1', 'queued', 'queued ', 'queued  p', 'queued p q', ' queued p', '', '%s %d'];

  it('ends, delivers the others, leaves the strange ones and reports each once', async () => {
    const { redis, connection } = rig.account;
    for (const member of STRANGE) await redis.zadd(connection.keys.outbox, 1, member);
    await accept('p');
    expect(await relay()).toBe(1);
    expect(await relay()).toBe(0);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect((await outbox()).sort()).toEqual([...STRANGE].sort());
    expect(rig.errors).toHaveLength(1);
    expect(rig.errors[0]?.[0]).toMatchObject({ count: STRANGE.length });

    await redis.zadd(connection.keys.outbox, 1, `settling ${'x'.repeat(1_000)}`);
    await relay();
    expect(rig.errors.slice(1)).toEqual([
      [{ count: 1, members: [`settling ${'x'.repeat(91)}`] }, expect.stringContaining('does not understand')],
    ]);
  });

  it('finds the others behind more than a page of them', async () => {
    const { redis, connection } = rig.account;
    const strange = Array.from({ length: 1_200 }, (_, index) => [1, `refunding p${index}`] as const);
    await redis.zadd(connection.keys.outbox, ...strange.flat());
    await accept('p');
    expect(await relay()).toBe(1);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect(await redis.zcard(connection.keys.outbox)).toBe(1_200);
  });

  it('ends with more than a page of members that no text can name, and finds the others behind them', async () => {
    const { redis, connection } = rig.account;
    // Decoded, they look like payouts, but what is sent back to Redis is another member than the one that is there.
    const broken = Array.from({ length: 600 }, (_, index) => [
      1,
      Buffer.concat([Buffer.from(`queued p${index}-`), Buffer.of(0xff)]),
    ]);
    await redis.zadd(connection.keys.outbox, ...broken.flat());
    await accept('p');
    const limited = AbortSignal.timeout(30_000);
    expect(await relay(limited)).toBe(1);
    expect(limited.aborted).toBe(false);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect(await redis.zcard(connection.keys.outbox)).toBe(600);
    expect(rig.errors).toHaveLength(3);
  });
});

describe('deliver', () => {
  it('adds a job in the place of one that is finished, or of which only a part is left', async () => {
    const { redis } = rig.account;
    await accept('finished', 'part');
    const key = (jobId: string): string => rig.queues.withdraw.toKey(jobId);
    await redis.hset(key('finished~0'), { timestamp: '1', finishedOn: '2' });
    await redis.zadd(key('failed'), 2, 'finished~0');
    // As BullMQ leaves it where it promotes a delayed job that has no hash.
    await redis.hset(key('part~0'), 'delay', '0');
    expect(await rig.relay.deliver('queued', ['finished', 'part', 'nobody'])).toBe(2);
    expect(await withdrawJobs()).toEqual(['finished~0', 'part~0']);
    expect(await rig.queues.withdraw.getFailedCount()).toBe(0);
    expect(await rig.relay.deliver('queued', ['finished', 'part'])).toBe(0);
  });
});

describe('tryDeliverSent', () => {
  it('adds the poll job of a payout that was accepted, and takes it out of the outbox', async () => {
    await accept('p');
    await relay();
    await makeInProgress('p');
    await rig.relay.tryDeliverSent('p');
    expect(await statusJobs()).toEqual(['p~0']);
    expect(await relay()).toBe(0);
  });

  it('keeps a payout in the outbox whose poll job could not be added', async () => {
    await accept('p');
    await relay();
    await makeInProgress('p');
    const queues = Object.assign(Object.create(rig.queues) as PayoutQueues, {
      addStatusJobs: async () => Promise.reject(new RedisUnavailableError('Redis is gone')),
    });
    await new OutboxRelay(rig.account.ledger, queues).tryDeliverSent('p');
    expect(await statusJobs()).toEqual([]);
    expect(await relay()).toBe(1);
    expect(await statusJobs()).toEqual(['p~0']);
  });
});

describe('tryDeliver', () => {
  it('takes accepted payouts that are new out of the outbox, and leaves the others to the worker', async () => {
    const [fresh, waiting] = [aPayout('fresh'), aPayout('waiting')];
    await rig.account.ledger.enqueue([fresh, waiting]);
    expect(await rig.relay.tryAddAccepted([fresh, waiting])).toBe(true);
    await rig.relay.tryClearAccepted([fresh]);
    expect(await withdrawJobs()).toEqual(['fresh~0', 'waiting~0']);
    expect(await outbox()).toEqual(['queued waiting']);
  });

  it.each<[string, () => Promise<never>, string, number]>([
    [
      'waits 5 s at most for a queue that hangs',
      async () => new Promise(() => undefined),
      'Redis did not respond within 5000 ms',
      5_000,
    ],
    [
      'does not throw where Redis is unavailable',
      async () => Promise.reject(new RedisUnavailableError('Redis is gone')),
      'Redis is gone',
      0,
    ],
  ])('%s: logs it, and the outbox keeps the payout', async (_, add, reason, waitedMs) => {
    const sleeps: number[] = [];
    const warnings: object[] = [];
    const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
      if (waitedMs === 0) return systemClock.sleep(60_000, signal);
      sleeps.push(ms);
      // The entries of the outbox have to be read first, from a real Redis.
      return systemClock.sleep(200, signal);
    };
    const queues = Object.assign(Object.create(rig.queues) as PayoutQueues, {
      addWithdrawJobs: add,
      queueOf: () => rig.queues.withdraw,
    });
    const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
    const clock = { ...systemClock, sleep };
    const relay = new OutboxRelay(new PayoutLedger({ ...rig.account.connection, clock }), queues, { logger });
    const payout = aPayout('p-1');
    await rig.account.ledger.enqueue([payout]);
    await relay.tryDeliver('queued', ['p-1']);
    expect(await relay.tryAddAccepted([payout])).toBe(false);
    expect(warnings).toEqual(Array(2).fill({ payoutId: 'p-1', payouts: 1, reason }));
    expect(sleeps).toEqual(waitedMs === 0 ? [] : [waitedMs, waitedMs]);
    expect(await outbox()).toEqual(['queued p-1']);
  });
});

describe('relayOutbox, where a payout cannot be read', () => {
  it.each([
    ['metadata', '{'],
    ['state', 'refunding'],
    ['h0', 'yesterday\tqueued'],
  ])('delivers the others, keeps it in the outbox and reports it once: %s', async (field, value) => {
    const { redis, connection } = rig.account;
    await accept('broken', 'sound');
    const before = (await redis.hget(connection.keys.payout('broken'), field)) ?? '';
    await redis.hset(connection.keys.payout('broken'), field, value);
    expect(await relay()).toBe(1);
    expect(await relay()).toBe(0);
    expect(await withdrawJobs()).toEqual(['sound~0']);
    expect(await outbox()).toEqual(['queued broken']);
    expect(rig.errors).toEqual([
      [{ payoutId: 'broken', error: expect.stringContaining('payout broken') }, expect.stringContaining('no job')],
    ]);

    if (before === '') await redis.hdel(connection.keys.payout('broken'), field);
    else await redis.hset(connection.keys.payout('broken'), field, before);
    expect(await relay()).toBe(1);
    expect(await withdrawJobs()).toEqual(['broken~0', 'sound~0']);
  });

  it('ends with more than a page of them, and finds the others behind', async () => {
    const { redis, connection } = rig.account;
    await accept(...names(600, 'broken'));
    for (let index = 0; index < 600; index += 1) {
      await redis.hset(connection.keys.payout(`broken${index}`), 'metadata', '{');
    }
    rig.account.clock.advance(1);
    await accept('sound');
    const limited = AbortSignal.timeout(30_000);
    expect(await relay(limited)).toBe(1);
    expect(limited.aborted).toBe(false);
    expect(await withdrawJobs()).toEqual(['sound~0']);
  });
});
