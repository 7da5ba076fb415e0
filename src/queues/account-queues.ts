import type { ContextManager, Counter, Gauge, Histogram, Meter, Span, Telemetry, Tracer } from 'bullmq';
import { callWatcher, failsafeMethods } from '../base/logger.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import { OutboxRelay } from './outbox-relay.js';
import { PayoutQueues, type QueuesOptions } from './payout-queues.js';

export interface AccountQueues {
  readonly queues: PayoutQueues;
  readonly relay: OutboxRelay;
}

export function createAccountQueues(ledger: PayoutLedger, options: QueuesOptions): AccountQueues {
  const telemetry = options.telemetry && failsafeTelemetry(options.telemetry);
  const queues = new PayoutQueues(ledger.connection, { ...options, telemetry });
  return { queues, relay: new OutboxRelay(ledger, queues, options) };
}

/**
 * BullMQ calls telemetry while it adds and runs jobs, and does not catch errors: an enqueue would be lost, a job fail.
 * This wrapper catches them, and the work continues untraced.
 */

const FAILSAFE = new WeakSet<Telemetry>();

export function failsafeTelemetry(telemetry: Telemetry): Telemetry {
  if (FAILSAFE.has(telemetry)) return telemetry;
  const { tracer, contextManager, meter } = telemetry;
  const failsafe: Telemetry = {
    tracer: failsafeTracer(tracer),
    contextManager: failsafeContextManager(contextManager),
    ...(meter === undefined ? {} : { meter: failsafeMeter(meter) }),
  };
  FAILSAFE.add(failsafe);
  return failsafe;
}

function call<Result>(work: () => Result, fallback: Result): Result {
  return callWatcher('telemetry', work, fallback);
}

function failsafeTracer(tracer: Tracer): Tracer {
  return {
    startSpan: (...args) => failsafeSpan(call(() => tracer.startSpan(...args), NO_SPAN)),
  };
}

const NO_SPAN: Span = {
  setSpanOnContext: (context: unknown) => context,
  setAttribute: () => undefined,
  setAttributes: () => undefined,
  addEvent: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};

function failsafeSpan(span: Span): Span {
  return {
    setSpanOnContext: (context: unknown) => call(() => span.setSpanOnContext(context) as unknown, context),
    ...failsafeMethods('telemetry', span, ['setAttribute', 'setAttributes', 'addEvent', 'recordException', 'end']),
  };
}

function failsafeContextManager(manager: ContextManager): ContextManager {
  return {
    with: (context: unknown, work) => runWith(manager, context, work),
    active: () => call(() => manager.active() as unknown, undefined),
    // BullMQ puts it into the job's options and would fail to write anything but a text.
    getMetadata: (context: unknown) => {
      const metadata: unknown = call(() => manager.getMetadata(context), '');
      return typeof metadata === 'string' ? metadata : '';
    },
    fromMetadata: (active: unknown, metadata) => call(() => manager.fromMetadata(active, metadata) as unknown, active),
    ...(manager.root === undefined ? {} : { root: () => call(() => manager.root?.() as unknown, undefined) }),
  };
}

function failsafeMeter(meter: Meter): Meter {
  return {
    createCounter: (...args) =>
      failsafeMethods(
        'telemetry',
        call(() => meter.createCounter(...args), NO_COUNTER),
        ['add'],
      ),
    createHistogram: (...args) => failsafeRecorder(call(() => meter.createHistogram(...args), NO_RECORDER)),
    createGauge: (...args) => failsafeRecorder(call(() => meter.createGauge(...args), NO_RECORDER)),
  };
}

const NO_COUNTER: Counter = { add: () => undefined };
const NO_RECORDER: Histogram & Gauge = { record: () => undefined };

function failsafeRecorder(recorder: Histogram | Gauge): Histogram & Gauge {
  return failsafeMethods('telemetry', recorder, ['record']);
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type AnyWork = (...args: any[]) => any;

type Outcome<Work extends AnyWork> = { readonly result: ReturnType<Work> } | { readonly error: unknown };

/**
 * Runs work in a context exactly once, with its own result or error, whatever the manager does. A manager that calls it
 * never or late finds it done.
 */
function runWith<Work extends AnyWork>(manager: ContextManager, context: unknown, work: Work): ReturnType<Work> {
  let outcome: Outcome<Work> | undefined;
  const settle = (): Outcome<Work> => (outcome ??= attempt(work));
  const once = (): unknown => {
    const settled = settle();
    // The manager need not see the work's error to pass it on.
    return 'result' in settled ? settled.result : undefined;
  };
  let returned: unknown;
  call(() => {
    returned = manager.with(context, once);
  }, undefined);
  // An asynchronous manager's promise rejects with the work, and has no other listener.
  if (returned instanceof Promise) returned.catch(() => undefined);
  const settled = settle();
  if ('error' in settled) throw settled.error;
  return settled.result;
}

function attempt<Work extends AnyWork>(work: Work): Outcome<Work> {
  try {
    return { result: work() as ReturnType<Work> };
  } catch (error) {
    return { error };
  }
}
