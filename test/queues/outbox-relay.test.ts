import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { RedisUnavailableError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import type { PayoutQueues } from '../../src/queues/payout-queues.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { clock, connection, keys, ledger, names, redis } from '../ledger/support/use-account.js';
import { makeInProgress, queues, rig, useRig } from './support/queue-rig.js';

useRig();

const withdrawJobs = async () => (await queues.withdraw.getWaiting()).map((job) => job.id).sort();
const statusJobs = async () => (await queues.transactionstatus.getDelayed()).map((job) => job.id);
const relay = async (signal?: AbortSignal) => rig.relay.relayOutbox(clock.wallNow() + 1, signal);
const outbox = async () => redis.zrange(keys.outbox, '0', '-1');
const setField = async (payoutId: string, field: string, value: string) =>
  redis.hset(keys.payout(payoutId), field, value);
const accept = async (...payoutIds: string[]) => ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
const queuesWith = (own: object) => Object.assign(Object.create(queues) as PayoutQueues, own);
const GONE = new RedisUnavailableError('Redis is gone');

/** Relays all, however long that takes, and not endlessly. */
async function relayToTheEnd(): Promise<number> {
  const signal = AbortSignal.timeout(30_000);
  const relayed = await relay(signal);
  expect(signal.aborted).toBe(false);
  return relayed;
}

describe('relayOutbox', () => {
  it('adds the jobs that a crash left out, none for a payout that has moved on, and then has nothing to do', async () => {
    await accept('p', 'q', 'gone');
    await makeInProgress(rig, 'q');
    await ledger.change({ payoutId: 'gone', from: 'queued', to: 'cancelled' });
    expect([await relay(), await relay()]).toEqual([4, 0]);
    expect([await withdrawJobs(), await statusJobs()]).toEqual([['p~0'], ['q~0']]);
  });

  it('goes through more than one page, and ends between two when it is told to', async () => {
    await accept(...names(600));
    expect(await relay(AbortSignal.abort())).toBe(250);
    expect(await relay()).toBe(350);
    expect(await queues.withdraw.count()).toBe(600);
  });

  it('reports once a notBefore that someone has altered, and adds the jobs of all', async () => {
    await accept('p', 'strange');
    await setField('strange', 'notBefore', 'now');
    expect(await relay()).toBe(2);
    expect(await withdrawJobs()).toEqual(['p~0', 'strange~0']);
    await rig.relay.deliver('queued', ['strange']);
    expect(rig.errors).toEqual([[{ payoutId: 'strange', notBefore: 'now' }, expect.stringContaining('is no time')]]);
  });

  it('leaves members that make no sense to it, reports each once, and delivers the others', async () => {
    const strange = ['refunding p-1', 'queued', 'queued ', 'queued  p', 'queued p q', ' queued p', '', '%s %d'];
    for (const member of strange) await redis.zadd(keys.outbox, 1, member);
    await accept('p');
    expect([await relay(), await relay()]).toEqual([1, 0]);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect((await outbox()).sort()).toEqual(strange.sort());
    expect(rig.errors).toMatchObject([[{ count: strange.length }, expect.anything()]]);
    await redis.zadd(keys.outbox, 1, `settling ${'x'.repeat(1_000)}`);
    await relay();
    expect(rig.errors.slice(1)).toEqual([
      [{ count: 1, members: [`settling ${'x'.repeat(91)}`] }, expect.stringContaining('does not understand')],
    ]);
  });

  it.each([
    ['that are no payouts', 1_200, (index: number) => `refunding p${index}`],
    // Decoded, they look like payouts, but what is sent back to Redis is another member than the one that is there.
    ['that no text can name', 600, (index: number) => Buffer.from([...Buffer.from(`queued p${index}-`), 0xff])],
  ])('finds the others behind more than a page of members %s', async (_, count, member) => {
    const members = Array.from({ length: count }, (__, index) => [1, member(index)]);
    await redis.zadd(keys.outbox, ...members.flat());
    await accept('p');
    expect(await relayToTheEnd()).toBe(1);
    expect(await withdrawJobs()).toEqual(['p~0']);
    expect(await outbox()).toHaveLength(count);
  });

  it.each([
    ['metadata', '{', '"mended"'],
    ['state', 'refunding', 'queued'],
    ['h0', 'yesterday\tqueued', '1\tqueued'],
  ])('delivers the others, keeps one that cannot be read and reports it once: %s', async (field, broken, mended) => {
    await accept('broken', 'sound');
    await setField('broken', field, broken);
    expect([await relay(), await relay()]).toEqual([1, 0]);
    expect([await withdrawJobs(), await outbox()]).toEqual([['sound~0'], ['queued broken']]);
    expect(rig.errors).toEqual([
      [{ payoutId: 'broken', error: expect.stringContaining('payout broken') }, expect.stringContaining('no job')],
    ]);
    await setField('broken', field, mended);
    expect(await relay()).toBe(1);
    expect(await withdrawJobs()).toEqual(['broken~0', 'sound~0']);
  });
});

it('deliver adds a job in the place of one that is finished, or of which only a part is left', async () => {
  await accept('finished', 'part');
  const key = (jobId: string): string => queues.withdraw.toKey(jobId);
  await redis.hset(key('finished~0'), { timestamp: '1', finishedOn: '2' });
  await redis.zadd(key('failed'), 2, 'finished~0');
  // As BullMQ leaves it where it promotes a delayed job that has no hash.
  await redis.hset(key('part~0'), 'delay', '0');
  expect(await rig.relay.deliver('queued', ['finished', 'part', 'nobody'])).toBe(2);
  expect(await withdrawJobs()).toEqual(['finished~0', 'part~0']);
  expect(await queues.withdraw.getFailedCount()).toBe(0);
  expect(await rig.relay.deliver('queued', ['finished', 'part'])).toBe(0);
});

it('tryDeliverSent adds the poll job of a payout that was accepted; the outbox keeps it where that failed', async () => {
  await accept('p', 'q');
  await relay();
  for (const payoutId of ['p', 'q']) await makeInProgress(rig, payoutId);
  await rig.relay.tryDeliverSent('p');
  expect(await statusJobs()).toEqual(['p~0']);
  const failing = queuesWith({ addStatusJobs: async () => Promise.reject(GONE) });
  await new OutboxRelay(ledger, failing).tryDeliverSent('q');
  expect(await statusJobs()).toEqual(['p~0']);
  expect(await relay()).toBe(1);
  expect(await statusJobs()).toHaveLength(2);
});

describe('tryDeliver', () => {
  it('takes accepted payouts that are new out of the outbox, and leaves the others to the worker', async () => {
    const [fresh, waiting] = [aPayout('fresh'), aPayout('waiting')];
    await ledger.enqueue([fresh, waiting]);
    expect(await rig.relay.tryAddAccepted([fresh, waiting])).toBe(true);
    await rig.relay.tryClearAccepted([fresh]);
    expect(await withdrawJobs()).toEqual(['fresh~0', 'waiting~0']);
    expect(await outbox()).toEqual(['queued waiting']);
  });

  it.each<[string, () => Promise<never>, string, number[]]>([
    [
      'waits 5 s at most for a queue that hangs',
      async () => new Promise(() => undefined),
      'Redis did not respond within 5000 ms',
      [5_000, 5_000],
    ],
    ['does not throw where Redis is unavailable', async () => Promise.reject(GONE), 'Redis is gone', []],
  ])('%s: logs it, and the outbox keeps the payout', async (_, add, reason, waits) => {
    const sleeps: number[] = [];
    const warnings: object[] = [];
    const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
      if (waits.length === 0) return systemClock.sleep(60_000, signal);
      sleeps.push(ms);
      // The entries of the outbox have to be read first, from a real Redis.
      return systemClock.sleep(200, signal);
    };
    const failing = queuesWith({ addWithdrawJobs: add, queueOf: () => queues.withdraw });
    const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
    const ledger = new PayoutLedger({ ...connection, clock: { ...systemClock, sleep } });
    const hanging = new OutboxRelay(ledger, failing, { logger });
    await accept('p-1');
    await hanging.tryDeliver('queued', ['p-1']);
    expect(await hanging.tryAddAccepted([aPayout('p-1')])).toBe(false);
    expect(warnings).toEqual(Array(2).fill({ payoutId: 'p-1', payouts: 1, reason }));
    expect(sleeps).toEqual(waits);
    expect(await outbox()).toEqual(['queued p-1']);
  });
});
