// Preloaded by `node --import`: what an OpenTelemetry SDK does for a process. Prints each span on stderr, as JSON.
import { writeSync } from 'node:fs';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';

const printer = {
  onStart() {},
  onEnd({ name, kind, status, attributes, parentSpanContext, spanContext }) {
    const { traceId, spanId } = spanContext.call(arguments[0]);
    const parent = parentSpanContext?.spanId;
    const isFailed = status.code === SpanStatusCode.ERROR;
    const span = { name, kind: SpanKind[kind], pid: process.pid, traceId, spanId, parent, isFailed, attributes };
    writeSync(2, `${JSON.stringify(span)}\n`);
  },
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [printer] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
