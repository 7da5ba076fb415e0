import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { BullMQOtel } from 'bullmq-otel';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { openAccount, type AccountAccess } from '../../src/queues/open-account.js';
import { names } from '../ledger/support/use-account.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { payoutInput } from './support/payout-input.js';

const exporter = new InMemorySpanExporter();
const platformId = newPlatformId();
let producer: PayoutProducer;
let account: AccountAccess;

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const telemetry = new BullMQOtel({ tracerName: 'payouts' });
  producer = new PayoutProducer({ platformId, redisUrl: testRedisUrl(), telemetry });
  account = openAccount({ platformId, redisUrl: testRedisUrl() });
});

afterAll(async () => {
  await account.close();
});

/** Runs work in a trace of its own. @returns the trace's id */
const traced = async (work: () => Promise<unknown>): Promise<string> =>
  trace.getTracer('test').startActiveSpan('checkout', async (span) => {
    await work();
    span.end();
    return span.spanContext().traceId;
  });

async function readTraceOfJob(jobId: string): Promise<string | undefined> {
  const metadata = (await account.queues.withdraw.getJob(jobId))?.opts.telemetry?.metadata ?? '{}';
  return (JSON.parse(metadata) as { traceparent?: string }).traceparent?.split('-')[1];
}

it("each job has its caller's trace, also where calls share a script call and a batch", async () => {
  const payoutIds = names(30);
  const traces = await Promise.all(
    payoutIds.map(async (payoutId) => traced(async () => producer.enqueue(payoutInput({ payoutId })))),
  );
  const many = await traced(async () => producer.enqueueMany([payoutInput({ payoutId: 'many' })]));
  await producer.close();
  expect(await Promise.all(payoutIds.map(async (payoutId) => readTraceOfJob(`${payoutId}~0`)))).toEqual(traces);
  expect(await readTraceOfJob('many~0')).toBe(many);

  const spans = exporter.getFinishedSpans();
  const ofTrace = (traceId: string): string[] =>
    spans.filter((span) => span.spanContext().traceId === traceId).map(({ name }) => name);
  // Of the batch, which has jobs of all of them, each trace has its own part only.
  for (const traceId of [...traces, many]) expect(ofTrace(traceId).sort()).toEqual(['add withdraw', 'checkout']);
});
