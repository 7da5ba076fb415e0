import { expect, it } from '@jest/globals';
import { read, readTable, sectionsOf, sentencesOf, titlesOf } from './support/held-sentences.js';

/** Each sentence about failovers outside of docs/guarantees.md names the tests that hold it. */

const listed = readTable('test/docs/failover-sentences.txt');

/** Of docs/redis.md: in these each sentence is about failovers. */
const WHOLE = ['Replicas', 'Acknowledged changes', 'Failover'];
/** What documentation of others says, and names. */
const LEFT_OUT = ['Managed services', 'Keys'];
const ABOUT_FAILOVERS = /failover|replica/i;

const sentences = ['redis', 'http', 'notifications'].flatMap((name) =>
  sectionsOf(read(`docs/${name}.md`).replace(/^```.*?^```$/gms, ''), /\n(?=#{2,3} )/)
    .filter(({ title = '' }) => !LEFT_OUT.includes(title))
    .flatMap(({ title = '', lines }) => {
      const all = lines.filter((line) => !line.startsWith('|')).flatMap(sentencesOf);
      return name === 'redis' && WHOLE.includes(title) ? all : all.filter((each) => ABOUT_FAILOVERS.test(each));
    }),
);

it('every sentence about failovers is held by tests, or is no promise', () => {
  const known = new Set(listed.map(({ text }) => text));
  expect(sentences.length).toBeGreaterThan(40);
  expect(sentences.filter((sentence) => !known.has(sentence))).toEqual([]);
});

it('no test is named for a sentence that no page has, and no sentence is listed twice', () => {
  const texts = listed.map(({ text }) => text);
  expect(texts.filter((text) => !sentences.includes(text))).toEqual([]);
  expect(new Set(texts).size).toBe(texts.length);
  const held = listed.filter(({ tests }) => tests.length > 0);
  expect(listed.slice(0, held.length)).toEqual(held);
});

it.each(listed.filter(({ tests }) => tests.length > 0))('the tests exist that hold: $text', ({ tests }) => {
  for (const [file, title] of tests) expect(titlesOf(file)).toContain(title);
});
