import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { splitLines, type Line } from '../../../src/cli/import/split-lines.js';

async function split(chunks: Iterable<string>, maxLength = 100): Promise<Line[]> {
  const lines: Line[] = [];
  const bytes = Readable.from(
    Array.from(chunks, (chunk) => Buffer.from(chunk)),
    { objectMode: false },
  );
  for await (const line of splitLines(bytes, maxLength)) lines.push(line);
  return lines;
}

it('numbers the lines, drops the byte order mark, and says whether the last one is ended', async () => {
  expect(await split(['\uFEFFa', 'b\n\nc', 'd'])).toEqual([
    { line: 1, text: 'ab', isCut: false, isEnded: true },
    { line: 2, text: '', isCut: false, isEnded: true },
    { line: 3, text: 'cd', isCut: false, isEnded: false },
  ]);
  expect(await split(['a\n'])).toHaveLength(1);
});

it('keeps no more of a line without an end than the limit and one chunk', async () => {
  const lines = await split([...Array.from({ length: 50 }, () => 'x'.repeat(60)), '\nb\n']);
  expect(lines).toMatchObject([{ isCut: true }, { line: 2, text: 'b', isCut: false }]);
  expect(lines[0]?.text.length).toBeLessThanOrEqual(100 + 60);
});
