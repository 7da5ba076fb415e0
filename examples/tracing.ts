/**
 * One trace from an HTTP request in a shop to `completed`. The shop and the worker are one process here; they need not
 * be, because the job carries the trace. A real program exports to a collector in place of memory.
 *
 *     GATEWAY_BASE_URL=http://127.0.0.1:8080 GATEWAY_PLATFORM_ID=4242 GATEWAY_SECRET_KEY=k-sandbox-only \
 *       npx tsx examples/tracing.ts
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { context, propagation, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { createLogger, createPayoutWorker, PayoutProducer } from 'payout-queue';

// What an OpenTelemetry SDK does for you (`@opentelemetry/sdk-node`).
const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

const { REDIS_URL: redisUrl = 'redis://127.0.0.1:6379', SEND_JOURNAL_DIR: journalDir = './data/journal' } = process.env;
const { GATEWAY_BASE_URL: baseUrl = '', GATEWAY_SECRET_KEY: secretKey = '', GATEWAY_PLATFORM_ID } = process.env;
const platformId = Number(GATEWAY_PLATFORM_ID);
const account = { platformId, baseUrl, secretKey, quarantineMs: 1_000, inFlightMaxMs: 1_000 };

const worker = await createPayoutWorker({ redisUrl, journalDir, accounts: [account], logger: createLogger('info') });
const producer = new PayoutProducer({ redisUrl, platformId });

// The span of the request is what instrumentation of your HTTP framework makes.
const shop = createServer((_request, response) => {
  const span = trace.getTracer('shop').startSpan('POST /withdrawals', { kind: SpanKind.SERVER });
  void context.with(trace.setSpan(context.active(), span), async () => {
    const wallet = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    await producer.enqueue({ payoutId: 'traced-1', paymentId: 6, amount: '12.5', addressTo: wallet });
    response.end();
    span.end();
  });
}).listen(0, '127.0.0.1');
await once(shop, 'listening');

await fetch(`http://127.0.0.1:${(shop.address() as AddressInfo).port}/withdrawals`, { method: 'POST' });
await producer.waitFor('traced-1', { timeoutMs: 60_000 });
shop.close();
await producer.close();
await worker.stop();

for (const span of exporter.getFinishedSpans()) {
  const { name, kind, attributes, parentSpanContext } = span;
  const { traceId, spanId } = span.spanContext();
  const line = { name, kind: SpanKind[kind], traceId, spanId, parent: parentSpanContext?.spanId, attributes };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
