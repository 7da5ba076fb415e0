import { SpanKind, TelemetryAttributes, type Telemetry } from 'bullmq';

export interface JobTrace {
  /** Carried by the jobs, so that their worker continues the caller's trace. */
  readonly context: string;
  end(): void;
}

/**
 * Begins a span in the active trace, like BullMQ's `add`. A batch has jobs of several callers, and BullMQ would put all
 * into one trace.
 */
export function beginJobTrace({ tracer, contextManager }: Telemetry, queue: string, jobs: number): JobTrace {
  const span = tracer.startSpan(`add ${queue}`, { kind: SpanKind.PRODUCER });
  span.setAttributes({
    [TelemetryAttributes.QueueName]: queue,
    [TelemetryAttributes.QueueOperation]: 'add',
    [TelemetryAttributes.BulkCount]: jobs,
  });
  const context: unknown = span.setSpanOnContext(contextManager.active());
  return {
    context: contextManager.getMetadata(context),
    end: () => {
      span.end();
    },
  };
}
