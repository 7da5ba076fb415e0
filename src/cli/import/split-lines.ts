import type { Readable } from 'node:stream';

export interface Line {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** It is longer than the limit; the rest was dropped, because a line must not fill the memory. */
  readonly isCut: boolean;
  /** It ends with a line break. Without one it is the last line, and part of it may be missing. */
  readonly isEnded: boolean;
}

/** The lines of a UTF-8 text, without its byte order mark. @param maxLength - characters */
export async function* splitLines(bytes: Readable, maxLength: number): AsyncGenerator<Line> {
  let line = 0;
  let rest = '';
  const end = (isEnded: boolean): Line => {
    line += 1;
    const text = line === 1 ? rest.replace(/^\uFEFF/, '') : rest;
    rest = '';
    return { line, text, isCut: text.length > maxLength, isEnded };
  };
  for await (const chunk of bytes.setEncoding('utf8') as AsyncIterable<string>) {
    let start = 0;
    for (let at = chunk.indexOf('\n'); at !== -1; at = chunk.indexOf('\n', start)) {
      if (rest.length <= maxLength) rest += chunk.slice(start, at);
      yield end(true);
      start = at + 1;
    }
    if (rest.length <= maxLength) rest += chunk.slice(start);
  }
  if (rest !== '') yield end(false);
}
