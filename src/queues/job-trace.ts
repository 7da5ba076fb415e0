import { SpanKind, TelemetryAttributes, type Telemetry } from 'bullmq';

/** The span of a caller whose jobs are added later. */
export interface JobTrace {
  /** What the jobs carry, so that their worker continues the caller's trace. */
  readonly context: string;
  /** To be called once the jobs were added, or are left to others. */
  end(): void;
}

/**
 * Begins a span in the trace that is active now, as BullMQ does in `add`: a batch has jobs of several callers, and BullMQ
 * would put all of them into one trace.
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
