import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

/** What the documents refer to has to exist: links and their anchors, paths of the repository, npm scripts. */

const root = fileURLToPath(new URL('../../', import.meta.url));
const scripts = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> })
  .scripts;

const documents = [root, join(root, 'docs'), join(root, 'test/proofs')]
  .flatMap((folder) =>
    readdirSync(folder, { recursive: folder !== root, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
  .map((path) => path.slice(root.length));

const sources = ['src', 'test', 'scripts'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
);

function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The anchors that a Markdown renderer gives the headings of a document. */
function anchorsOf(path: string): string[] {
  return [...readDocument(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it('a block of commands for operators stops at its first error', () => {
  // Those that no test runs name no language.
  const pages = documents.filter((path) => path.startsWith('docs/runbooks/') || path === 'docs/deploy.md');
  const blocks = pages
    .flatMap((page) => [...readDocument(page).matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)])
    .flatMap(([, language = '', block = '']) => (['', 'sh'].includes(language) ? [block] : []));
  expect(blocks.length).toBeGreaterThan(20);
  for (const block of blocks.filter((each) => each.trim().includes('\n'))) expect(block).toMatch(/^\(set -e\n.*^\)$/ms);
  // Without `-e` redis-cli says that it was refused, and ends as if all were well.
  const refusable = blocks
    .flatMap((block) => block.split('\n'))
    .filter((line) => /\b(BGSAVE|REPLICAOF|CONFIG SET)\b/.test(line));
  expect(refusable.length).toBeGreaterThan(4);
  for (const line of refusable) expect(line).toContain('redis-cli -e');
});

describe.each(documents)('%s', (document) => {
  const text = readDocument(document);

  it('links to files and headings that exist', () => {
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const broken = links.filter((link) => {
      if (link.includes('://')) return false;
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? document : join(dirname(document), file);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  it('names files of the repository that exist', () => {
    // A changelog names what there was.
    if (document === 'CHANGELOG.md') return;
    const paths = [...text.matchAll(/`((?:src|test|docs|scripts|bench|examples)\/[\w./-]*)`/g)].map(
      ([, path = '']) => path,
    );
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it('names source files that exist', () => {
    if (document === 'CHANGELOG.md') return;
    const names = [...text.matchAll(/`([\w-]+(?:\/[\w-]+)*(?:\.slow)?(?:\.test)?\.(?:ts|lua))`/g)].map(
      ([, name = '']) => name,
    );
    expect(names.filter((name) => !sources.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
  });

  it('names npm scripts that exist', () => {
    const named = [...text.matchAll(/npm run (?:--silent |-s )?([a-z][\w:-]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

it('the sources name pages and anchors that exist', () => {
  const named = sources
    .filter((path) => /^src\/.*\.(ts|lua|js|css)$/.test(path))
    .flatMap((path) => [...readDocument(path).matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)]);
  expect(named.length).toBeGreaterThan(20);
  const missing = named.filter(
    ([, page = '', anchor]) =>
      !existsSync(join(root, page)) || (anchor !== undefined && !anchorsOf(page).includes(anchor)),
  );
  expect(missing.map(([reference]) => reference)).toEqual([]);
});
