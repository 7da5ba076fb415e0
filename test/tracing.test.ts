import { afterEach, expect, it, jest } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { silentLogger } from '../src/base/logger.js';
import { activeTrace, beginSpan, inSpan, loadTracing, tracedLogger } from '../src/base/tracing.js';

afterEach(() => {
  trace.disable();
  jest.restoreAllMocks();
});

/** Everything that a payout calls. @returns how often the API of OpenTelemetry was called meanwhile */
async function countCalls(): Promise<number> {
  const spies = [
    ...(['active', 'with', 'bind'] as const).map((name) => jest.spyOn(context, name)),
    ...(['getTracer', 'getSpan', 'setSpan'] as const).map((name) => jest.spyOn(trace, name)),
    ...(['inject', 'extract'] as const).map((name) => jest.spyOn(propagation, name)),
  ];
  await loadTracing();
  const logger = tracedLogger(silentLogger);
  for (let index = 0; index < 100; index += 1) {
    const work = jest.fn(async () => Promise.resolve(index));
    expect(await inSpan('send payout', { kind: 'consumer', carrier: '{}' }, work)).toBe(index);
    expect(work).toHaveBeenCalledTimes(1);
    beginSpan('journal sync', {}, 5)?.end();
    activeTrace();
    logger.info({}, 'withdraw sent');
  }
  return spies.reduce((calls, spy) => calls + spy.mock.calls.length, 0);
}

it('costs not one call of OpenTelemetry until an application registers a provider', async () => {
  expect(await countCalls()).toBe(0);
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  expect(await countCalls()).toBeGreaterThan(500);
});
