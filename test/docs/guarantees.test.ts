import { expect, it } from '@jest/globals';
import { read, readTable, sectionsOf, sentencesOf, titlesOf } from './support/held-sentences.js';

/** Each sentence of the page that promises names the tests that hold it. */

const listed = readTable('test/docs/promises.txt');

/** They say on what the promises stand, and where they end. */
const LEFT_OUT = ['Assumptions', 'Not promised'];
/** Of a section: which test files it has, one subject a line. */
const OF_TESTS = /^(Tests:|- (identity|journals and disks|objections and adoption|operators|Redis|processes): )/;

const sentences = sectionsOf(read('docs/guarantees.md'))
  .filter(({ title = '' }) => !LEFT_OUT.includes(title))
  .flatMap(({ lines }) => lines.filter((line) => !OF_TESTS.test(line)).flatMap(sentencesOf));

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

it.each(listed.filter(({ tests }) => tests.length > 0))('the tests exist that hold: $text', ({ tests }) => {
  for (const [file, title] of tests) expect(titlesOf(file)).toContain(title);
});
