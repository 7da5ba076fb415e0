import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

/** Documents grow by a sentence at a time, until nobody reads them. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MOST_WORDS = 40_000;
const MOST_WORDS_A_SENTENCE = 30;

const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length;
}

/** The sentences of a page: of paragraphs and list items, without code blocks, tables and headings. */
function sentencesOf(markdown: string): string[] {
  const prose = markdown
    .replace(/^ *```.*?^ *```$/gms, '')
    .replace(/^(?:\||#|!\[|<!--).*$/gm, '')
    .replace(/\]\([^)]*\)/g, ']');
  const blocks = prose.split(/\n\s*\n|\n(?= *(?:[-*]|\d+\.) )/);
  return blocks.flatMap((block) => block.replace(/\s+/g, ' ').split(/(?<=[.?!:])(?:\*\*|_)? /));
}

it('the documents have at most 40,000 words together', () => {
  const listed = execFileSync('git', ['ls-files', '*.md', 'docs/**/*.md'], { cwd: ROOT, encoding: 'utf8' });
  const pages = [...new Set(listed.trim().split('\n'))].filter(
    (path) => (path.startsWith('docs/') || !path.includes('/')) && existsSync(`${ROOT}${path}`),
  );
  expect(pages.length).toBeGreaterThan(30);
  expect(pages.reduce((sum, path) => sum + wordsOf(read(path)), 0)).toBeLessThanOrEqual(MOST_WORDS);
});

const runbooks = readdirSync(`${ROOT}docs/runbooks`).map((name) => `docs/runbooks/${name}`);

describe.each(['README.md', 'docs/guarantees.md', ...runbooks])('%s', (path) => {
  it('has no sentence of more than 30 words', () => {
    const sentences = sentencesOf(read(path));
    expect(sentences.filter((sentence) => wordsOf(sentence) > MOST_WORDS_A_SENTENCE)).toEqual([]);
  });
});
