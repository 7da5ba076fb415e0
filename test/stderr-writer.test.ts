import { describe, expect, it } from '@jest/globals';
import { createStderrWriter } from '../src/base/create-logger.js';

function errorWith(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

/** A stderr that takes a limited number of bytes a call, or fails, as its script says call by call, and then takes all. */
function scriptedStderr(...script: (number | string)[]): { text: () => string; take: (bytes: Uint8Array) => number } {
  let text = '';
  const take = (bytes: Uint8Array): number => {
    const step = script.shift() ?? bytes.length;
    if (typeof step === 'string') throw errorWith(step);
    text += Buffer.from(bytes.subarray(0, step)).toString();
    return Math.min(step, bytes.length);
  };
  return { text: () => text, take };
}

describe('lines to stderr', () => {
  it('are written whole, however little is taken at a time', () => {
    const stderr = scriptedStderr(1, 2);
    const writer = createStderrWriter(stderr.take);
    writer.write('{"msg":"one"}\n');
    writer.write('{"msg":"two"}\n');
    expect(stderr.text()).toBe('{"msg":"one"}\n{"msg":"two"}\n');
  });

  it('that fail are lost one by one: the next is tried again, and no memory is kept of them', () => {
    const stderr = scriptedStderr('ENOSPC', 'EPIPE');
    const writer = createStderrWriter(stderr.take);
    expect(() => {
      writer.write('lost\n');
    }).toThrow('ENOSPC');
    expect(() => {
      writer.write('lost too\n');
    }).toThrow('EPIPE');
    writer.write('there\n');
    expect(stderr.text()).toBe('there\n');
  });

  it('are not glued to one that a full disk tore', () => {
    const stderr = scriptedStderr(4, 'ENOSPC', 'ENOSPC');
    const writer = createStderrWriter(stderr.take);
    for (const line of ['{"msg":"one"}\n', '{"msg":"two"}\n']) {
      expect(() => {
        writer.write(line);
      }).toThrow('ENOSPC');
    }
    writer.write('{"msg":"three"}\n');
    writer.write('{"msg":"four"}\n');
    expect(stderr.text()).toBe('{"ms\n{"msg":"three"}\n{"msg":"four"}\n');
  });

  it('wait a moment for a pipe that is full, but not for long', () => {
    const busy = scriptedStderr('EAGAIN', 'EAGAIN');
    createStderrWriter(busy.take).write('late\n');
    expect(busy.text()).toBe('late\n');
    const stuck = createStderrWriter(() => {
      throw errorWith('EAGAIN');
    });
    expect(() => {
      stuck.write('lost\n');
    }).toThrow('EAGAIN');
    expect(() => {
      createStderrWriter(() => 0).write('lost\n');
    }).toThrow('takes nothing');
  });
});
