import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { BullMQOtel } from 'bullmq-otel';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { createPayoutWorker, type PayoutWorker } from '../../src/control/payout-worker.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';

const SECRET_KEY = 'k-telemetry';
const exporter = new InMemorySpanExporter();
const platformId = newPlatformId();

let dir: string;
let sandbox: Sandbox;
let worker: PayoutWorker;
let producer: PayoutProducer;

beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  dir = await mkdtemp(join(tmpdir(), 'payouts-telemetry-'));
  sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY }], settleAfterMs: 100 });
  const telemetry = new BullMQOtel({ tracerName: 'payouts' });
  const redisUrl = testRedisUrl();
  producer = new PayoutProducer({ redisUrl, platformId, telemetry });
  worker = await createPayoutWorker({
    redisUrl,
    journalDir: dir,
    telemetry,
    accounts: [
      { platformId, baseUrl: sandbox.url, secretKey: SECRET_KEY, leaseMs: 500, quarantineMs: 0, pollMinMs: 100 },
    ],
  });
});

afterAll(async () => {
  await worker.stop();
  await producer.close();
  await sandbox.close();
  await rm(dir, { recursive: true, force: true });
});

it('one trace runs from the enqueue to the send', async () => {
  const traceId = await trace.getTracer('test').startActiveSpan('checkout', async (span) => {
    await producer.enqueue({ payoutId: 'traced', paymentId: 1, amount: '1', addressTo: 'wallet-traced' });
    span.end();
    return span.spanContext().traceId;
  });
  await producer.waitFor('traced', { timeoutMs: 30_000 });
  const names = exporter
    .getFinishedSpans()
    .filter((span) => span.spanContext().traceId === traceId)
    .map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining([
      'checkout',
      expect.stringMatching(/add.*withdraw/i),
      expect.stringMatching(/process.*withdraw/i),
    ]),
  );
});
