import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock, type Clock } from '../../src/base/clock.js';
import type { PayoutInput } from '../../src/ledger/payout.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { JobLane, PayoutIntake } from '../../src/producer/payout-intake.js';
import { parsePayout } from '../../src/producer/parse-payouts.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import { openLedger, type LedgerAccess } from '../../src/queues/open-ledger.js';
import type { PayoutQueues } from '../../src/queues/payout-queues.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { payoutInput } from './support/payout-input.js';

let platformId: number;
let account: LedgerAccess;
let producer: PayoutProducer;

beforeEach(() => {
  platformId = newPlatformId();
  account = openLedger({ platformId, redisUrl: testRedisUrl() });
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl() });
});

afterEach(async () => {
  await producer.close();
  await account.close();
});

const redis = (): LedgerAccess['ledger']['connection']['redis'] => account.ledger.connection.redis;
const key = (name: string): string => `{payouts:${platformId}}:${name}`;
const outbox = async (): Promise<string[]> => redis().zrange(key('outbox'), '0', '-1');
/** The ids of the waiting payouts, in the order in which they will be sent. */
const waiting = async (): Promise<string[]> => toIds((await redis().lrange(key('withdraw:wait'), 0, -1)).reverse());
const toIds = (jobIds: readonly string[]): string[] => jobIds.map((jobId) => jobId.replace('~0', ''));
const ids = (count: number, name = 'p'): string[] => Array.from({ length: count }, (_, index) => `${name}-${index}`);

async function enqueueEach(payoutIds: readonly string[], changes: Partial<PayoutInput> = {}): Promise<void> {
  for (const payoutId of payoutIds) await producer.enqueue(payoutInput({ payoutId, ...changes }));
}

describe('the order of calls one after the other', () => {
  it('is that of the queue, over many batches, with a list of many in the middle', async () => {
    await enqueueEach(ids(200, 'before'));
    await producer.enqueueMany(ids(1_200, 'many').map((payoutId) => payoutInput({ payoutId })));
    await enqueueEach(ids(200, 'behind'));
    await producer.close();
    expect(await waiting()).toEqual([...ids(200, 'before'), ...ids(1_200, 'many'), ...ids(200, 'behind')]);
    expect(await outbox()).toEqual([]);
  });

  it('is kept among payouts of a priority', async () => {
    for (const payoutId of ids(150)) {
      await producer.enqueue(payoutInput({ payoutId, priority: payoutId.endsWith('7') ? 1 : 9 }));
    }
    await producer.close();
    const urgent = ids(150).filter((payoutId) => payoutId.endsWith('7'));
    const others = ids(150).filter((payoutId) => !payoutId.endsWith('7'));
    expect(toIds(await redis().zrange(key('withdraw:prioritized'), '0', '-1'))).toEqual([...urgent, ...others]);
  });

  it('is kept among payouts for the same time, over many batches and in each', async () => {
    const notBefore = new Date(Date.now() + 3_600_000);
    await enqueueEach(ids(100, 'each'), { notBefore });
    await producer.enqueueMany(ids(1_500, 'many').map((payoutId) => payoutInput({ payoutId, notBefore })));
    await enqueueEach(ids(100, 'last'), { notBefore });
    await producer.close();
    const delayed = await redis().zrange(key('withdraw:delayed'), '0', '-1');
    expect(toIds(delayed)).toEqual([...ids(100, 'each'), ...ids(1_500, 'many'), ...ids(100, 'last')]);
  });
});

describe('closing', () => {
  it('adds the jobs of all that was accepted, and of calls that wait for the ledger', async () => {
    const calls = ids(150).map(async (payoutId) => producer.enqueue(payoutInput({ payoutId })));
    await new Promise((resolve) => setImmediate(resolve));
    await producer.close();
    expect(await Promise.all(calls)).toHaveLength(150);
    expect(await waiting()).toEqual(ids(150));
    expect(await outbox()).toEqual([]);
  });

  it('waits some seconds at most for a slow queue, and leaves the payouts to the outbox', async () => {
    const intake = await PayoutIntake.open(withQueues(async () => systemClock.sleep(3_000)));
    for (const payoutId of ids(600)) await intake.enqueue(parsePayout(payoutInput({ payoutId }), { checksums: false }));
    const startedAt = performance.now();
    await intake.close();
    expect(performance.now() - startedAt).toBeLessThan(6_500);
    expect(await outbox()).toContain('queued p-599');
  });
});

it('a payout of a call before stays in the outbox: the job that it has may be finished', async () => {
  await account.ledger.enqueue([parsePayout(payoutInput(), { checksums: false })]);
  await redis().hset(key('withdraw:p-1~0'), { timestamp: '1', finishedOn: '2' });
  expect(await producer.enqueue(payoutInput())).toMatchObject({ created: false });
  await producer.close();
  expect(await waiting()).toEqual([]);
  expect(await outbox()).toEqual(['queued p-1']);
});

describe('a cancelled payout', () => {
  it('leaves no job behind that is added after its cancellation', async () => {
    for (const payoutId of ids(20)) {
      await producer.enqueue(payoutInput({ payoutId }));
      await producer.cancel(payoutId);
    }
    await producer.close();
    expect(await waiting()).toEqual([]);
  });
});

function addingBy(queues: PayoutQueues, addWithdrawJobs: PayoutQueues['addWithdrawJobs']): PayoutQueues {
  const beginTrace = (): undefined => undefined;
  return Object.assign(Object.create(queues) as PayoutQueues, { addWithdrawJobs, beginTrace });
}

/** The account, whose queue adds jobs in another way. */
function withQueues(addWithdrawJobs: PayoutQueues['addWithdrawJobs'], clock = systemClock): LedgerAccess {
  const { ledger, openQueues } = account;
  return {
    ...account,
    clock,
    openQueues: async () => {
      const queues = addingBy((await openQueues()).queues, addWithdrawJobs);
      const limited = new PayoutLedger({ ...ledger.connection, clock });
      return { queues, relay: new OutboxRelay(limited, queues) };
    },
  };
}

/** On it no time limit ends, and no job is late, however busy the machine is. */
const withoutLimits: Clock = {
  ...systemClock,
  now: () => 0,
  // Without a timer, which would outlive the test.
  sleep: async (ms, signal) => (ms < 1_000 ? systemClock.sleep(ms, signal) : new Promise(() => undefined)),
};

interface BlockedLane {
  now: number;
  readonly release: () => void;
  readonly deliver: (payoutIds: readonly string[]) => Promise<void>;
  readonly delivered: readonly Promise<void>[];
}

describe('a queue that is slower than the calls', () => {
  it('makes callers wait once a thousand jobs wait, and no order is lost', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const { queues } = await account.openQueues();
    let taken = 0;
    const add = async (...args: Parameters<PayoutQueues['addWithdrawJobs']>): Promise<void> => {
      taken += args[0].length;
      await released;
      await queues.addWithdrawJobs(...args);
    };
    const intake = await PayoutIntake.open(withQueues(add, withoutLimits));
    let accepted = 0;
    const all = (async (): Promise<void> => {
      for (const payoutId of ids(1_300)) {
        await intake.enqueue(parsePayout(payoutInput({ payoutId }), { checksums: false }));
        accepted += 1;
      }
    })();
    // With that of the caller that waits they are a thousand; the first batch has what came before the queue was asked.
    await until('a thousand jobs wait', () => accepted - taken === 999);
    await systemClock.sleep(300);
    expect(accepted - taken).toBe(999);
    release();
    await all;
    await intake.close();
    expect(await waiting()).toEqual(ids(1_300));
  });

  /** A lane whose first batch waits for `release`, and whose clock is `lane.now`. Later batches are added by `add`. */
  async function blockedLane(add: PayoutQueues['addWithdrawJobs'], warnings: object[] = []): Promise<BlockedLane> {
    const delivered: Promise<void>[] = [];
    const { ledger } = account;
    const { queues } = await account.openQueues();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let isFirst = true;
    const slow = addingBy(queues, async (payouts) => {
      if (!isFirst) return add(payouts);
      isFirst = false;
      await released;
      await queues.addWithdrawJobs(payouts);
    });
    const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
    const rig = { now: 0, release, deliver, delivered };
    const lane = new JobLane(
      { queues: slow, relay: new OutboxRelay(ledger, slow, { logger }) },
      { ...systemClock, now: () => rig.now },
    );
    async function deliver(payoutIds: readonly string[]): Promise<void> {
      const fresh = payoutIds.map((payoutId) => parsePayout(payoutInput({ payoutId }), { checksums: false }));
      await ledger.enqueue(fresh);
      // Not awaited: the caller waits for the script alone.
      delivered.push(
        ...fresh.map(async (payout) => lane.deliver({ fresh: [payout], waiting: [] }, { isAwaited: true })),
      );
    }
    return rig;
  }

  it('adds what has waited for more than five seconds in its order, but no job of a payout that was sent', async () => {
    const { queues } = await account.openQueues();
    const added: string[] = [];
    const lane = await blockedLane(async (payouts) => {
      added.push(...payouts.map(({ payoutId }) => payoutId));
      await queues.addWithdrawJobs(payouts);
    });
    await lane.deliver(['first']);
    await lane.deliver([...ids(600, 'late'), 'sent']);
    lane.now = 5_001;
    await lane.deliver(ids(300, 'in-time'));
    await account.ledger.change({ payoutId: 'sent', from: 'queued', to: 'sending' });
    lane.release();
    await Promise.all(lane.delivered);
    expect(added).not.toContain('sent');
    expect(await waiting()).toEqual(['first', ...ids(600, 'late'), ...ids(300, 'in-time')]);
    expect(await outbox()).toEqual([]);
  });

  it('leaves what is late to the worker if that fails too, and says so', async () => {
    const { queues } = await account.openQueues();
    const warnings: object[] = [];
    const lane = await blockedLane(async (payouts) => {
      if (payouts.some(({ payoutId }) => payoutId.startsWith('late'))) throw new Error('Redis is slow');
      await queues.addWithdrawJobs(payouts);
    }, warnings);
    await lane.deliver(['first']);
    await lane.deliver(ids(600, 'late'));
    lane.now = 5_001;
    await lane.deliver(['in-time']);
    lane.release();
    await Promise.all(lane.delivered);
    expect(await waiting()).toEqual(['first', 'in-time']);
    expect((await outbox()).sort()).toEqual(ids(600, 'queued late').sort());
    expect(warnings).toEqual([{ payoutId: 'late-0', payouts: 600, reason: 'Redis is slow' }]);
  });
});

describe('a list of many', () => {
  it("asks for the next chunk's script before it prepares the jobs of the one before", async () => {
    const steps: string[] = [];
    const { ledger } = account;
    const { queues } = await account.openQueues();
    const access = withQueues(async (payouts) => {
      for (const { payoutId } of payouts) if (payoutId.endsWith('-0')) steps.push(`jobs of ${payoutId}`);
      await queues.addWithdrawJobs(payouts);
    });
    const watched = Object.assign(Object.create(ledger) as typeof ledger, {
      enqueue: async (payouts: Parameters<typeof ledger.enqueue>[0]) => {
        steps.push(`script of ${payouts[0]?.payoutId ?? ''}`);
        return ledger.enqueue(payouts);
      },
      clearOutbox: ledger.clearOutbox.bind(ledger),
    });
    const intake = await PayoutIntake.open({ ...access, ledger: watched });
    const chunks = ['a', 'b', 'c'].map((name) =>
      ids(5, name).map((payoutId) => parsePayout(payoutInput({ payoutId }), { checksums: false })),
    );
    for await (const results of intake.enqueueChunks(chunks, undefined)) expect(results).toHaveLength(5);
    expect(steps).toEqual([
      'script of a-0',
      'script of b-0',
      'jobs of a-0',
      'script of c-0',
      'jobs of b-0',
      'jobs of c-0',
    ]);
    expect(await waiting()).toEqual([...ids(5, 'a'), ...ids(5, 'b'), ...ids(5, 'c')]);
  });
});
