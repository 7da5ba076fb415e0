import { describe, expect, it } from '@jest/globals';
import { failsafeLogger, type Logger, watcherFailures } from '../src/base/logger.js';
import { createLogger } from '../src/base/create-logger.js';
import { loggerWithThrowingChildren, throwingLogger } from './support/throwing-watchers.js';
import { recordingLogger } from './gateway/support/test-client.js';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

describe('a failsafe logger', () => {
  it.each(LEVELS)('lets no %s line throw, its own or a descendant’s, and counts each that is lost', (level) => {
    for (const logger of [throwingLogger, loggerWithThrowingChildren].map(failsafeLogger)) {
      const child = logger.child({ platformId: 1 });
      const grandchild = child.child({ epoch: 2 });
      const before = watcherFailures('logger');
      for (const each of [logger, child, grandchild]) each[level]({}, 'a line');
      expect(watcherFailures('logger')).toBe(before + 3);
    }
  });

  it('passes on what the logger can take, with the fields of its children', () => {
    const recording = recordingLogger();
    const logger = failsafeLogger(recording);
    for (const level of LEVELS) logger.child({ platformId: 1 })[level]({ level }, 'a line');
    expect(recording.lines).toEqual(LEVELS.map((level) => ({ message: 'a line', fields: { platformId: 1, level } })));
  });

  it('says a line through its parent where no child can be made', () => {
    const recording = recordingLogger();
    const childless: Logger = { ...recording, child: () => throwingLogger.child({}) };
    failsafeLogger(childless).child({ platformId: 1 }).info({}, 'a line');
    expect(recording.lines).toEqual([{ message: 'a line', fields: {} }]);
  });

  it('is left as it is when it is made failsafe again, with its children', () => {
    const logger = failsafeLogger(throwingLogger);
    expect(failsafeLogger(logger)).toBe(logger);
    const child = logger.child({});
    expect(failsafeLogger(child)).toBe(child);
    const ours = createLogger('silent');
    expect(failsafeLogger(ours)).toBe(ours);
  });
});
