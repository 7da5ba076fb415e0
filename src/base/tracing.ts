import type * as Otel from '@opentelemetry/api';
import type { Attributes, Context, Span, SpanKind } from '@opentelemetry/api';
import { callWatcher, type Logger } from './logger.js';

/**
 * Spans through @opentelemetry/api. Until an application registers a provider, the API is not even loaded and every call
 * does nothing. A provider that throws is counted as a watcher, and changes nothing.
 */

type Api = typeof Otel;

let api: Api | undefined;

/** Where every copy of the API's version 1 keeps what an application registers, so that copies find each other. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** Loads the API if an application has registered something with it. Otherwise there are no spans, at no cost. */
export async function loadTracing(): Promise<void> {
  if (REGISTERED in globalThis) api ??= await import('@opentelemetry/api');
}

export interface SpanOptions {
  /** `consumer` continues the trace of a job, `client` asks another program. @defaultValue internal */
  readonly kind?: 'producer' | 'consumer' | 'client';
  /** Never an address, an amount or a secret. */
  readonly attributes?: Attributes;
  /** A carrier of {@link activeTrace}: the parent if no span is active. */
  readonly carrier?: string | undefined;
}

function call<Result>(work: (api: Api) => Result): Result | undefined {
  const loaded = api;
  return loaded === undefined ? undefined : callWatcher('telemetry', () => work(loaded), undefined);
}

/** Runs work once in a span of its own, which ends with it. An internal span is made only within another one. */
export async function inSpan<Result>(name: string, options: SpanOptions, work: () => Promise<Result>): Promise<Result> {
  const opened = call((loaded) => {
    const parent = parentOf(loaded, options);
    const isPart = options.kind === undefined && loaded.trace.getSpan(parent) === undefined;
    return isPart ? undefined : open(loaded, name, options, parent);
  });
  if (opened === undefined) return work();
  let running: Promise<Result> | undefined;
  const once = (): void => {
    running ??= work();
  };
  call(({ context }) => {
    context.with(opened.context, once);
  });
  once();
  const { span } = opened;
  try {
    return await (running as Promise<Result>);
  } catch (error) {
    call(({ SpanStatusCode }) => {
      span.setAttribute('error.type', (error as { code?: string }).code ?? (error as Error).name);
      // Without a message: it may name an address.
      span.setStatus({ code: SpanStatusCode.ERROR });
    });
    throw error;
  } finally {
    call(() => {
      span.end();
    });
  }
}

/** Begins a span below the active one. @returns undefined if none is active: what is outside a trace begins none */
export function beginSpan(
  name: string,
  options: SpanOptions,
  agoMs = 0,
): { readonly end: (attributes?: Attributes, failed?: boolean) => void } | undefined {
  const span = call((loaded) => {
    const parent = loaded.context.active();
    return loaded.trace.getSpan(parent) === undefined ? undefined : open(loaded, name, options, parent, agoMs).span;
  });
  if (span === undefined) return undefined;
  return {
    end: (attributes = {}, failed = false) => {
      call(({ SpanStatusCode }) => {
        span.setAttributes(attributes);
        if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
    },
  };
}

/** The active trace as a text for a job, as bullmq-otel writes it; undefined if there is none. */
export function activeTrace(): string | undefined {
  return call(({ context, propagation }) => {
    const carrier: Record<string, string> = {};
    propagation.inject(context.active(), carrier);
    return Object.keys(carrier).length === 0 ? undefined : JSON.stringify(carrier);
  });
}

function parentOf({ context, propagation, trace }: Api, { carrier }: SpanOptions): Context {
  const active = context.active();
  if (carrier === undefined || trace.getSpan(active) !== undefined) return active;
  return propagation.extract(active, JSON.parse(carrier) as object);
}

function open(
  { trace, SpanKind }: Api,
  name: string,
  { kind, attributes = {} }: SpanOptions,
  parent: Context,
  agoMs = 0,
): { readonly span: Span; readonly context: Context } {
  const kinds: Readonly<Record<string, SpanKind>> = {
    producer: SpanKind.PRODUCER,
    consumer: SpanKind.CONSUMER,
    client: SpanKind.CLIENT,
  };
  const span = trace
    .getTracer('payout-queue')
    .startSpan(
      name,
      { kind: kinds[kind ?? ''] ?? SpanKind.INTERNAL, attributes, startTime: Date.now() - agoMs },
      parent,
    );
  return { span, context: trace.setSpan(parent, span) };
}

/** The same logger; lines within a trace carry `trace_id` and `span_id`. */
export function tracedLogger(logger: Logger): Logger {
  const log =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object, message: string): void => {
      const active = call(({ context, trace }) => trace.getSpan(context.active())?.spanContext());
      const ids = active && { trace_id: active.traceId, span_id: active.spanId };
      logger[level]({ ...fields, ...ids }, message);
    };
  const [debug, info, warn, error] = [log('debug'), log('info'), log('warn'), log('error')];
  return { debug, info, warn, error, child: (fields) => tracedLogger(logger.child(fields)) };
}
