import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { ContextManager, Span, Telemetry } from 'bullmq';
import { watcherFailures } from '../../src/base/logger.js';
import { failsafeTelemetry } from '../../src/queues/account-queues.js';
import { throwingTelemetry } from '../support/throwing-watchers.js';

type With = ContextManager['with'];

/** A context manager whose `with` is the test's. */
function managerWith(run: (context: unknown, work: () => unknown) => unknown): ContextManager {
  return failsafeTelemetry({
    ...throwingTelemetry,
    contextManager: { ...throwingTelemetry.contextManager, with: run as With },
  }).contextManager;
}

/** Work that counts its runs. */
function countedWork<Result>(result: () => Result): { work: () => Result; runs: () => number } {
  let runs = 0;
  const work = (): Result => {
    runs += 1;
    return result();
  };
  return { work, runs: () => runs };
}

/** Calls everything that a span has, none of which may throw. */
function expectSpanKeepsContext(span: Span): void {
  expect(span.setSpanOnContext('context')).toBe('context');
  span.setAttribute('a', 1);
  span.setAttributes({ a: 1 });
  span.addEvent('event');
  span.recordException('error');
  span.end();
}

/** Measures with each kind of instrument, none of which may throw. */
function measure(meter: Telemetry['meter']): void {
  meter?.createCounter('jobs').add(1);
  meter?.createHistogram('durations').record(1);
  meter?.createGauge('waiting').record(1);
}

describe('telemetry that throws everywhere', () => {
  const { tracer, contextManager, meter } = failsafeTelemetry(throwingTelemetry);

  it('has contexts, spans and metadata that do nothing', () => {
    expect(contextManager.active()).toBeUndefined();
    expect(contextManager.root?.()).toBeUndefined();
    expect(contextManager.getMetadata('context')).toBe('');
    expect(contextManager.fromMetadata('active', 'metadata')).toBe('active');
    expectSpanKeepsContext(tracer.startSpan('add'));
  });

  it('has instruments that measure nothing', () => {
    measure(meter);
  });

  it('is counted', () => {
    const before = watcherFailures('telemetry');
    tracer.startSpan('add');
    expect(watcherFailures('telemetry')).toBe(before + 1);
  });
});

describe('spans and instruments that throw', () => {
  const fail = (): never => {
    throw new Error('no');
  };
  const span: Span = {
    ...{ setSpanOnContext: fail, setAttribute: fail, setAttributes: fail },
    ...{ addEvent: fail, recordException: fail, end: fail },
  };
  const { tracer, meter } = failsafeTelemetry({
    ...throwingTelemetry,
    tracer: { startSpan: () => span },
    meter: {
      createCounter: () => ({ add: fail }),
      createHistogram: () => ({ record: fail }),
      createGauge: () => ({ record: fail }),
    },
  });

  it('throw nothing', () => {
    expectSpanKeepsContext(tracer.startSpan('add'));
    measure(meter);
  });
});

describe('work in a context', () => {
  const honest = (_context: unknown, work: () => unknown): unknown => work();
  const managers: [string, (context: unknown, work: () => unknown) => unknown][] = [
    ['works', honest],
    [
      'throws before it runs it',
      () => {
        throw new Error('before');
      },
    ],
    [
      'throws after it ran it',
      (_, work) => {
        work();
        throw new Error('after');
      },
    ],
    ['never runs it', () => undefined],
    ['runs it twice', (_, work) => [work(), work()]],
    ['runs it later', async (_, work) => turn().then(work)],
    ['makes another promise of it', async (_, work) => await Promise.resolve(work())],
    ['rejects', async (_, work) => Promise.resolve(work()).then(() => Promise.reject(new Error('later')))],
    ['returns something else', (_, work) => (work(), 'something else')],
  ];

  it.each(managers)('runs once, with its own result: the manager %s', async (_name, run) => {
    const { work, runs } = countedWork(async () => turn().then(() => 'the result'));
    expect(await managerWith(run).with('context', work)).toBe('the result');
    await turn();
    await turn();
    expect(runs()).toBe(1);
  });

  it.each(managers)('runs once, with its own error: the manager %s', async (_name, run) => {
    const late = countedWork(async () => Promise.reject(new Error('its own')));
    await expect(managerWith(run).with('context', late.work)).rejects.toThrow('its own');
    const early = countedWork(() => {
      throw new Error('its own');
    });
    expect(() => managerWith(run).with('context', early.work)).toThrow('its own');
    await turn();
    await turn();
    expect([late.runs(), early.runs()]).toEqual([1, 1]);
  });

  it('is in the context that the manager gives it, and its error is not counted as the manager’s', () => {
    const storage = new AsyncLocalStorage<unknown>();
    const manager = managerWith((context, work) => storage.run(context, work));
    expect(manager.with('a context', () => storage.getStore())).toBe('a context');
    const before = watcherFailures('telemetry');
    expect(() =>
      manager.with('a context', () => {
        throw new Error('its own');
      }),
    ).toThrow('its own');
    expect(watcherFailures('telemetry')).toBe(before);
  });
});

it('what is no text is no metadata: it would have to be written into the job', () => {
  const getMetadata = (() => ({ self: 1n })) as unknown as ContextManager['getMetadata'];
  const { contextManager } = failsafeTelemetry({
    ...throwingTelemetry,
    contextManager: { ...throwingTelemetry.contextManager, getMetadata },
  });
  expect(contextManager.getMetadata('context')).toBe('');
});

it('keeps to what there is: no meter, no root, and no second layer', () => {
  const plain: Telemetry = {
    tracer: throwingTelemetry.tracer,
    contextManager: { ...throwingTelemetry.contextManager },
  };
  delete plain.contextManager.root;
  const failsafe = failsafeTelemetry(plain);
  expect(failsafe).not.toHaveProperty('meter');
  expect(failsafe.contextManager).not.toHaveProperty('root');
  expect(failsafeTelemetry(failsafe)).toBe(failsafe);
});
