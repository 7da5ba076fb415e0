import type { Readable } from 'node:stream';
import { InvalidInputError } from '../../errors.js';

export interface Line {
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/**
 * The lines of a text in UTF-8, also the last one where no line break ends it.
 * @throws InvalidInputError when a line is longer than `maxLength` characters, so that it cannot fill the memory
 */
export async function* splitLines(bytes: Readable, maxLength: number): AsyncGenerator<Line> {
  let line = 1;
  let rest = '';
  for await (const chunk of bytes.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      yield { line, text };
      line += 1;
    }
    if (rest.length > maxLength) {
      throw new InvalidInputError([{ field: `line ${line}`, message: `is longer than ${maxLength} characters` }]);
    }
  }
  if (rest !== '') yield { line, text: rest };
}
