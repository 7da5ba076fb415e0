import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { createStderrWriter } from '../src/base/create-logger.js';
import { callWatcher, failsafeLogger, failsafeMethods, watcherFailures } from '../src/base/logger.js';
import { loggerWithThrowingChildren, throwingLogger } from './support/throwing-watchers.js';
import { recordingLogger } from './gateway/support/test-client.js';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

it.each(LEVELS)(
  'a failsafe logger lets no %s line throw, also of a descendant, and counts each that is lost',
  (level) => {
    for (const logger of [throwingLogger, loggerWithThrowingChildren].map(failsafeLogger)) {
      const child = logger.child({ platformId: 1 });
      const grandchild = child.child({ epoch: 2 });
      const before = watcherFailures('logger');
      for (const each of [logger, child, grandchild]) each[level]({}, 'a line');
      expect(watcherFailures('logger')).toBe(before + 3);
    }
  },
);

it('a failsafe logger passes on what the logger can take, with the fields of its children', () => {
  const recording = recordingLogger();
  const logger = failsafeLogger(recording);
  for (const level of LEVELS) logger.child({ platformId: 1 })[level]({ level }, 'a line');
  expect(recording.lines).toEqual(LEVELS.map((level) => ({ message: 'a line', fields: { platformId: 1, level } })));
});

function fail(): never {
  throw new Error('no');
}

it('a call of a watcher that throws is counted for its kind, and its fallback returned', () => {
  const before = { logger: watcherFailures('logger'), telemetry: watcherFailures('telemetry') };
  expect(callWatcher('telemetry', () => 7, 0)).toBe(7);
  expect(callWatcher('telemetry', fail, 'untraced')).toBe('untraced');
  expect(watcherFailures('telemetry')).toBe(before.telemetry + 1);
  expect(watcherFailures('logger')).toBe(before.logger);
});

it('a call of a watcher whose promise rejects later ends no process, and is counted', async () => {
  const before = watcherFailures('logger');
  void callWatcher('logger', async () => Promise.reject(new Error('late')), undefined);
  await turn();
  expect(watcherFailures('logger')).toBe(before + 1);
});

it('methods keep their object and their arguments, and never throw', () => {
  const heard: unknown[] = [];
  const target = {
    name: 'target',
    log(...args: unknown[]) {
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

function errorWith(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

/** A stderr that takes a limited number of bytes a call, or fails, as its script says call by call, and then takes all. */
function scriptedStderr(...script: (number | string)[]): { text: () => string; take: (bytes: Uint8Array) => number } {
  let text = '';
  const take = (bytes: Uint8Array) => {
    const step = script.shift() ?? bytes.length;
    if (typeof step === 'string') throw errorWith(step);
    text += Buffer.from(bytes.subarray(0, step)).toString();
    return Math.min(step, bytes.length);
  };
  return { text: () => text, take };
}

const writing = (writer: ReturnType<typeof createStderrWriter>, line: string) => () => {
  writer.write(line);
};

it('lines to stderr that fail are lost one by one: the next is tried again, and no memory is kept of them', () => {
  const stderr = scriptedStderr('ENOSPC', 'EPIPE', 1, 2);
  const writer = createStderrWriter(stderr.take);
  for (const code of ['ENOSPC', 'EPIPE']) expect(writing(writer, 'lost\n')).toThrow(code);
  writer.write('there\n');
  expect(stderr.text()).toBe('there\n');
});

it('lines to stderr are not glued to one that a full disk tore', () => {
  const stderr = scriptedStderr(4, 'ENOSPC', 'ENOSPC');
  const writer = createStderrWriter(stderr.take);
  for (const line of ['{"msg":"one"}\n', '{"msg":"two"}\n']) expect(writing(writer, line)).toThrow('ENOSPC');
  writer.write('{"msg":"three"}\n');
  writer.write('{"msg":"four"}\n');
  expect(stderr.text()).toBe('{"ms\n{"msg":"three"}\n{"msg":"four"}\n');
});

it('lines to stderr wait a moment for a pipe that is full, but not for long', () => {
  const busy = scriptedStderr('EAGAIN', 'EAGAIN');
  createStderrWriter(busy.take).write('late\n');
  expect(busy.text()).toBe('late\n');
  const stuck = createStderrWriter(scriptedStderr(...Array<string>(100_000).fill('EAGAIN')).take);
  expect(writing(stuck, 'lost\n')).toThrow('EAGAIN');
  const closed = createStderrWriter(() => 0);
  expect(writing(closed, 'lost\n')).toThrow('takes nothing');
});
