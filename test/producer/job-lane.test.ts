import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { BullMQOtel } from 'bullmq-otel';
import { type Clock, systemClock } from '../../src/base/clock.js';
import { PayoutLedger } from '../../src/ledger/payout-ledger.js';
import type { PayoutInput, ValidPayout } from '../../src/ledger/payout.js';
import { parsePayout } from '../../src/producer/parse-payouts.js';
import { JobLane } from '../../src/producer/job-lane.js';
import { PayoutIntake } from '../../src/producer/payout-intake.js';
import { type LedgerAccess, openLedger } from '../../src/queues/open-ledger.js';
import { OutboxRelay } from '../../src/queues/outbox-relay.js';
import type { PayoutQueues } from '../../src/queues/payout-queues.js';
import { account, names } from '../ledger/support/use-account.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { payoutInput } from './support/payout-input.js';
import { inStructure, key, openProducer, outbox, producer, useProducer, waiting } from './support/use-producer.js';

let access: LedgerAccess;
afterEach(async () => access.close());
useProducer();
beforeEach(() => {
  access = openLedger({ platformId: account.platformId, redisUrl: testRedisUrl() });
});

const inputsOf = (payoutIds: readonly string[], changes: Partial<PayoutInput> = {}): PayoutInput[] =>
  payoutIds.map((payoutId) => payoutInput({ payoutId, ...changes }));
const parse = (payoutId: string): ValidPayout => parsePayout(payoutInput({ payoutId }), { checksums: false }).payout;

async function enqueueEach(payoutIds: readonly string[], changes: Partial<PayoutInput> = {}) {
  for (const input of inputsOf(payoutIds, changes)) await producer.enqueue(input);
}

it('calls one after the other have the order of the queue, and among payouts for the same time, over batches, with a list of many in the middle', async () => {
  const notBefore = new Date(Date.now() + 3_600_000);
  for (const [name, changes] of [
    ['now', {}],
    ['later', { notBefore }],
  ] as const) {
    await enqueueEach(names(60, `${name}-before`), changes);
    await producer.enqueueMany(inputsOf(names(1_100, `${name}-many`), changes));
    await enqueueEach(names(60, `${name}-behind`), changes);
  }
  await producer.close();
  const inOrder = (name: string) => [
    ...names(60, `${name}-before`),
    ...names(1_100, `${name}-many`),
    ...names(60, `${name}-behind`),
  ];
  expect(await waiting()).toEqual(inOrder('now'));
  expect(await inStructure('delayed')).toEqual(inOrder('later'));
  expect(await outbox()).toEqual([]);
});

it('closing adds the jobs of all that was accepted, and of calls that wait for the ledger', async () => {
  const calls = inputsOf(names(150)).map(async (input) => producer.enqueue(input));
  await new Promise((resolve) => setImmediate(resolve));
  await producer.close();
  expect(await Promise.all(calls)).toHaveLength(150);
  expect([await waiting(), await outbox()]).toEqual([names(150), []]);
});

it('closing waits some seconds at most for a slow queue, and leaves the payouts to the outbox', async () => {
  const intake = await PayoutIntake.open(withQueues(async () => systemClock.sleep(3_000)));
  for (const payoutId of names(600)) await intake.enqueue(parse(payoutId));
  const startedAt = performance.now();
  await intake.close();
  expect(performance.now() - startedAt).toBeLessThan(6_500);
  expect(await outbox()).toContain('queued p599');
});

it('a payout of a call before stays in the outbox: the job that it has may be finished', async () => {
  await account.ledger.enqueue([parse('p-1')]);
  await account.redis.hset(key('withdraw:p-1~0'), { timestamp: '1', finishedOn: '2' });
  expect(await producer.enqueue(payoutInput())).toMatchObject({ created: false });
  await producer.close();
  expect([await waiting(), await outbox()]).toEqual([[], ['queued p-1']]);
});

function addingBy(queues: PayoutQueues, addWithdrawJobs: PayoutQueues['addWithdrawJobs']): PayoutQueues {
  const beginTrace = (): undefined => undefined;
  return Object.assign(Object.create(queues) as PayoutQueues, { addWithdrawJobs, beginTrace });
}

/** The account, whose queue adds jobs in another way. */
function withQueues(addWithdrawJobs: PayoutQueues['addWithdrawJobs'], clock = systemClock): LedgerAccess {
  const { ledger, openQueues } = access;
  return {
    ...access,
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

describe('a queue that is slower than the calls', () => {
  /** Something that waits for `release`. */
  function gate() {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    return { release, released };
  }

  it('makes callers wait once a thousand jobs wait, and no order is lost', async () => {
    const { release, released } = gate();
    const { queues } = await access.openQueues();
    let taken = 0;
    const add = async (...args: Parameters<PayoutQueues['addWithdrawJobs']>): Promise<void> => {
      taken += args[0].length;
      await released;
      await queues.addWithdrawJobs(...args);
    };
    const intake = await PayoutIntake.open(withQueues(add, withoutLimits));
    let accepted = 0;
    const all = (async (): Promise<void> => {
      for (const payoutId of names(1_100)) {
        await intake.enqueue(parse(payoutId));
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
    expect(await waiting()).toEqual(names(1_100));
  });

  it('adds what has waited for more than five seconds in its order, but no job of a payout that was sent', async () => {
    const { queues } = await access.openQueues();
    const { release, released } = gate();
    const added: string[] = [];
    let now = 0;
    const slow = addingBy(queues, async (payouts) => {
      if (added.push(...payouts.map(({ payoutId }) => payoutId)) === 1) await released;
      await queues.addWithdrawJobs(payouts);
    });
    const relay = new OutboxRelay(access.ledger, slow);
    const lane = new JobLane({ queues: slow, relay }, { ...systemClock, now: () => now });
    const delivered: Promise<void>[] = [];
    const deliver = async (payoutIds: readonly string[]): Promise<void> => {
      const fresh = payoutIds.map(parse);
      await access.ledger.enqueue(fresh);
      // Not awaited: the caller waits for the script alone.
      for (const one of fresh) delivered.push(lane.deliver({ fresh: [one], waiting: [] }, { isAwaited: true }));
    };
    await deliver(['first']);
    await deliver([...names(600, 'late'), 'sent']);
    now = 5_001;
    await deliver(names(300, 'in-time'));
    await account.ledger.change({ payoutId: 'sent', from: 'queued', to: 'sending' });
    release();
    await Promise.all(delivered);
    expect(added).not.toContain('sent');
    expect(await waiting()).toEqual(['first', ...names(600, 'late'), ...names(300, 'in-time')]);
    expect(await outbox()).toEqual([]);
  });
});

it("each job has its caller's trace, also where calls share a script call and a batch", async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  const tracing = openProducer({ telemetry: new BullMQOtel({ tracerName: 'payouts' }) });
  const traces = await Promise.all(
    inputsOf(names(30)).map(async (input) =>
      trace.getTracer('test').startActiveSpan('checkout', async (span) => {
        await tracing.enqueue(input);
        return span.spanContext().traceId;
      }),
    ),
  );
  await tracing.close();
  const { queues } = await access.openQueues();
  const traceOfJob = async (payoutId: string): Promise<string | undefined> => {
    const metadata = (await queues.withdraw.getJob(`${payoutId}~0`))?.opts.telemetry?.metadata ?? '{}';
    return (JSON.parse(metadata) as { traceparent?: string }).traceparent?.split('-')[1];
  };
  expect(await Promise.all(names(30).map(traceOfJob))).toEqual(traces);
});
