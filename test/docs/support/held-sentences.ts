import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

/** Sentences of the documents, and the tests that hold them. */

export const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

export interface HeldSentence {
  readonly text: string;
  readonly tests: readonly (readonly [file: string, title: string])[];
}

/** Of a table such as `test/docs/promises.txt`: first what promises, then, without tests, what does not. */
export function readTable(path: string): readonly HeldSentence[] {
  const listed: HeldSentence[] = [];
  let tests: [file: string, title: string][] = [];
  for (const line of read(path).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, file, title] = /^ {2}(\S+): (.*)$/.exec(line) ?? [];
    if (file !== undefined && title !== undefined) tests.push([file, title]);
    else listed.push({ text: line, tests: (tests = []) });
  }
  return listed;
}

export interface Section {
  readonly title: string | undefined;
  /** Without its heading. */
  readonly lines: readonly string[];
}

export function sectionsOf(page: string, heading = /\n(?=## )/): readonly Section[] {
  return page.split(heading).map((section) => ({
    title: /^#+ (.*)/.exec(section)?.[1],
    lines: section.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#')),
  }));
}

/** As the page shows it, without stress. */
export function sentencesOf(line: string): readonly string[] {
  return line
    .replace(/^- /, '')
    .replace(/\*\*|^_|_$/g, '')
    .replace(/ Tests: .*$/, '')
    .split(/(?<=[.!?])\s+(?=[A-Z`_])/);
}

/** In a call of `it`, of what `it.each` returned, or of `scene`. */
const TITLES =
  /(?:\bit\(\s*|\]\)\(\s*|\)\(\s*)(['"`])((?:(?!\1).)+)\1,\s*(?:async )?\(|\bscene\(\s*(['"`])((?:(?!\3).)+)\3,/g;

export function titlesOf(file: string): readonly string[] {
  return Array.from(read(`test/${file}`).matchAll(TITLES), ([, , test, , scene]) => test ?? scene ?? '');
}

/**
 * Each sentence stands in the table, with tests that exist or as one that promises nothing.
 * @param least - of fewer sentences the pages were not read
 */
export function itHolds(sentences: readonly string[], listed: readonly HeldSentence[], least: number): void {
  const held = listed.filter(({ tests }) => tests.length > 0);

  it('every sentence is held by tests, or is no promise', () => {
    const known = new Set(listed.map(({ text }) => text));
    expect(sentences.length).toBeGreaterThan(least);
    expect(sentences.filter((sentence) => !known.has(sentence))).toEqual([]);
  });

  it('no test is named for a sentence that no page has, and no sentence is listed twice', () => {
    const texts = listed.map(({ text }) => text);
    expect(texts.filter((text) => !sentences.includes(text))).toEqual([]);
    expect(new Set(texts).size).toBe(texts.length);
    // Above those that are no promises, each has a test.
    expect(listed.slice(0, held.length)).toEqual(held);
  });

  it.each(held)('the tests exist that hold: $text', ({ tests }) => {
    for (const [file, title] of tests) expect(titlesOf(file)).toContain(title);
  });
}
