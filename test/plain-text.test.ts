import { expect, it } from '@jest/globals';
import { toPlainLog } from '../src/base/plain-text.js';

const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/u;

it('a log line shows nothing but text, also once a viewer has read its JSON', () => {
  const line = `${JSON.stringify({ msg: 'a\u001b[2J\u0007\r\b\u202e\u0085\ud800', path: 'C:\\u001b\\temp', n: 1 })}\n`;
  const plain = toPlainLog(line);
  expect(plain.endsWith('}\n')).toBe(true);
  expect(UNSHOWN.test(plain.trimEnd())).toBe(false);
  const read = JSON.parse(plain) as Record<string, unknown>;
  expect(read).toEqual({
    msg: 'a\\u{1b}[2J\\u{7}\\u{d}\\u{8}\\u{202e}\\u{85}\\u{d800}',
    path: 'C:\\u001b\\temp',
    n: 1,
  });
});

it('a log line keeps the line breaks of a stack trace, and everything that is shown', () => {
  const line = `${JSON.stringify({ stack: 'Error: "x"\n\tat y', name: 'Zoë 漢 😀', slash: 'a\\n' })}\n`;
  expect(toPlainLog(line)).toBe(line);
});
