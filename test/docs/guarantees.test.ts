import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

/** Each sentence of the page that promises names the tests that hold it. */

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Sentence {
  readonly text: string;
  readonly tests: readonly (readonly [file: string, title: string])[];
}

/** Those of `promises.txt`: first what promises, then, without tests, what does not. */
function readListed() {
  const listed: Sentence[] = [];
  let tests: [file: string, title: string][] = [];
  for (const line of read('test/docs/promises.txt').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, file, title] = /^ {2}(\S+): (.*)$/.exec(line) ?? [];
    if (file !== undefined && title !== undefined) tests.push([file, title]);
    else listed.push({ text: line, tests: (tests = []) });
  }
  return listed;
}

const listed = readListed();

/** They say on what the promises stand, and where they end. */
const LEFT_OUT = ['Assumptions', 'Not promised'];
/** Of a section: which test files it has, one subject a line. */
const OF_TESTS = /^(Tests:|- (identity|journals and disks|objections and adoption|operators|Redis|processes): )/;

function sentencesOf(page: string) {
  const sections = page.split(/\n(?=## )/).filter((section) => !LEFT_OUT.includes(/^## (.*)/.exec(section)?.[1] ?? ''));
  const lines = sections.flatMap((section) => section.split('\n'));
  return lines
    .filter((line) => line.trim() !== '' && !line.startsWith('#') && !OF_TESTS.test(line))
    .map((line) =>
      line
        .replace(/^- /, '')
        .replace(/\*\*|^_|_$/g, '')
        .replace(/ Tests: .*$/, ''),
    )
    .flatMap((line) => line.split(/(?<=[.!?])\s+(?=[A-Z`_])/));
}

const sentences = sentencesOf(read('docs/guarantees.md'));

it('every sentence of docs/guarantees.md is held by tests, or is no promise', () => {
  const known = new Set(listed.map(({ text }) => text));
  expect(sentences.length).toBeGreaterThan(100);
  expect(sentences.filter((sentence) => !known.has(sentence))).toEqual([]);
});

it('no test is named for a sentence that docs/guarantees.md does not have, and no sentence is listed twice', () => {
  const texts = listed.map(({ text }) => text);
  expect(texts.filter((text) => !sentences.includes(text))).toEqual([]);
  expect(new Set(texts).size).toBe(texts.length);
  // Above those that are no promises, each has a test.
  const held = listed.filter(({ tests }) => tests.length > 0);
  expect(listed.slice(0, held.length)).toEqual(held);
});

/** In a call of `it`, or of what `it.each` returned. */
const TITLES = /(?:\bit\(\s*|\]\)\(\s*|\)\(\s*)(['"`])((?:(?!\1).)+)\1,\s*(?:async )?\(/g;

it.each(listed.filter(({ tests }) => tests.length > 0))('the tests exist that hold: $text', ({ tests }) => {
  for (const [file, title] of tests) {
    const titles = Array.from(read(`test/${file}`).matchAll(TITLES), ([, , text = '']) => text);
    expect(titles).toContain(title);
  }
});
