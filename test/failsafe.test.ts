import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { callWatcher, failsafeMethods, watcherFailures } from '../src/base/logger.js';

function fail(): never {
  throw new Error('no');
}

describe('a call of a watcher', () => {
  it('gives back what it returns', () => {
    const before = watcherFailures('observer');
    expect(callWatcher('observer', () => 7, 0)).toBe(7);
    expect(watcherFailures('observer')).toBe(before);
  });

  it('that throws is counted for its kind, and its fallback returned', () => {
    const before = { logger: watcherFailures('logger'), telemetry: watcherFailures('telemetry') };
    expect(callWatcher('telemetry', fail, 'untraced')).toBe('untraced');
    expect(watcherFailures('telemetry')).toBe(before.telemetry + 1);
    expect(watcherFailures('logger')).toBe(before.logger);
  });

  it('whose promise rejects later ends no process, and is counted', async () => {
    const before = watcherFailures('logger');
    void callWatcher('logger', async () => Promise.reject(new Error('late')), undefined);
    await turn();
    expect(watcherFailures('logger')).toBe(before + 1);
  });
});

it('methods keep their object and their arguments, and never throw', () => {
  const heard: unknown[] = [];
  const target = {
    name: 'target',
    log(...args: unknown[]): void {
      heard.push([this.name, ...args]);
      if (args[0] === 'bad') fail();
    },
  };
  const { log } = failsafeMethods('logger', target, ['log']);
  log('good', 1);
  log('bad', 2);
  expect(heard).toEqual([
    ['target', 'good', 1],
    ['target', 'bad', 2],
  ]);
});
