import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { ContextManager, Span, Telemetry } from 'bullmq';
import { watcherFailures } from '../../src/base/logger.js';
import { failsafeTelemetry } from '../../src/queues/account-queues.js';
import { throwingTelemetry } from '../support/throwing-watchers.js';

type Run = (context: unknown, work: () => unknown) => unknown;

const managerWith = (own: object): ContextManager =>
  failsafeTelemetry({ ...throwingTelemetry, contextManager: { ...throwingTelemetry.contextManager, ...own } })
    .contextManager;

function fail(): never {
  throw new Error('its own');
}

/** Calls everything that spans and instruments have, none of which may throw. */
function useAll({ tracer, meter }: Telemetry) {
  const span = tracer.startSpan('add');
  expect(span.setSpanOnContext('context')).toBe('context');
  span.setAttribute('a', 1);
  span.setAttributes({ a: 1 });
  span.addEvent('event');
  span.recordException('error');
  span.end();
  meter?.createCounter('jobs').add(1);
  meter?.createHistogram('durations').record(1);
  meter?.createGauge('waiting').record(1);
}

it('telemetry that throws everywhere has contexts, spans and instruments that do nothing, and is counted', () => {
  const telemetry = failsafeTelemetry(throwingTelemetry);
  const { contextManager } = telemetry;
  expect(contextManager.active()).toBeUndefined();
  expect(contextManager.root?.()).toBeUndefined();
  expect(contextManager.getMetadata('context')).toBe('');
  expect(contextManager.fromMetadata('active', 'metadata')).toBe('active');
  useAll(telemetry);
  const before = watcherFailures('telemetry');
  telemetry.tracer.startSpan('add');
  expect(watcherFailures('telemetry')).toBe(before + 1);
});

it('telemetry whose spans and instruments throw throws nothing', () => {
  const span: Span = {
    ...{ setSpanOnContext: fail, setAttribute: fail, setAttributes: fail },
    ...{ addEvent: fail, recordException: fail, end: fail },
  };
  const [counter, recorder] = [() => ({ add: fail }), () => ({ record: fail })];
  const meter = { createCounter: counter, createHistogram: recorder, createGauge: recorder };
  useAll(failsafeTelemetry({ ...throwingTelemetry, tracer: { startSpan: () => span }, meter }));
});

it.each<[string, Run]>([
  ['throws before it runs it', fail],
  ['throws after it ran it', (_, work) => [work(), fail()]],
  ['never runs it', () => undefined],
  ['runs it twice', (_, work) => [work(), work()]],
  ['rejects', async (_, work) => Promise.resolve(work()).then(() => Promise.reject(new Error('later')))],
])('work in a context runs once, with its own result or error: the manager %s', async (_, run) => {
  const manager = managerWith({ with: run });
  const runs: string[] = [];
  const counted = <Result>(name: string, result: () => Result) => {
    return (): Result => {
      runs.push(name);
      return result();
    };
  };
  const works = counted('works', async () => turn().then(() => 'the result'));
  expect(await manager.with('context', works)).toBe('the result');
  const late = counted('late', async () => Promise.reject(new Error('its own')));
  await expect(manager.with('context', late)).rejects.toThrow('its own');
  expect(() => manager.with('context', counted('early', fail))).toThrow('its own');
  for (let turns = 0; turns < 2; turns += 1) await turn();
  expect(runs).toEqual(['works', 'late', 'early']);
});

it('work in a context is in that of the manager', () => {
  const storage = new AsyncLocalStorage<unknown>();
  const manager = managerWith({ with: (context: unknown, work: () => unknown) => storage.run(context, work) });
  expect(manager.with('a context', () => storage.getStore())).toBe('a context');
});
