import { expect, it } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { BullMQOtel } from 'bullmq-otel';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { closeAfterTest } from './support/close-after-test.js';
import { cents, openWorkerIn, worldOfTest } from './support/payout-world.js';

it('one trace runs from the enqueue to the send', async () => {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const telemetry = new BullMQOtel({ tracerName: 'payouts' });
  const world = await worldOfTest();
  const producer = closeAfterTest(new PayoutProducer({ ...world.account, telemetry }));
  await openWorkerIn(world, { telemetry });
  const traceId = await trace.getTracer('test').startActiveSpan('checkout', async (span) => {
    await producer.enqueueMany(cents(['P-1']));
    span.end();
    return span.spanContext().traceId;
  });
  await producer.waitFor('P-1', { timeoutMs: 30_000 });
  const spans = exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId);
  const steps: unknown[] = [/add.*withdraw/i, /process.*withdraw/i].map((step) => expect.stringMatching(step));
  expect(spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['checkout', ...steps]));
});
