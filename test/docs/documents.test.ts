import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { validate } from 'dockerfile-utils';
import { renderEnvExample, renderSettingsDoc } from '../../scripts/settings-docs.js';
import { readConfig, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import { SETTINGS } from '../../src/base/settings.js';
import { toExitCode } from '../../src/cli/context/exit-code.js';
import * as index from '../../src/index.js';
import { findBuiltProgram } from '../support/built-program.js';

/** The documents against the repository: what they refer to exists, and they stay short. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MOST_WORDS = 40_000;
const MOST_WORDS_A_SENTENCE = 30;

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const namesIn = (folder: string): string[] => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
const all = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, found = '']) => found);
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

const documents = [
  ...readdirSync(ROOT),
  ...['docs', 'test/proofs'].flatMap((folder) => namesIn(folder).map((name) => `${folder}/${name}`)),
].filter((path) => path.endsWith('.md') && !path.includes('node_modules'));
const sources = ['src', 'test', 'scripts'].flatMap((folder) => namesIn(folder).map((name) => `${folder}/${name}`));

/** The anchors that a Markdown renderer gives the headings of a document. */
function anchorsOf(path: string): string[] {
  return all(read(path), /^#+ (.+)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

const isThere = (path: string, anchor?: string): boolean =>
  existsSync(join(ROOT, path)) && (anchor === undefined || anchorsOf(path).includes(anchor));

describe.each(documents)('%s', (document) => {
  const text = read(document);

  it('links to files and headings, and names npm scripts, that exist', () => {
    const broken = all(text, /\]\(([^)\s]+)\)/g).filter((link) => {
      const [file = '', anchor] = link.split('#');
      return !link.includes('://') && !isThere(file === '' ? document : join(dirname(document), file), anchor);
    });
    expect(broken).toEqual([]);
    const named = all(text, /npm run (?:--silent |-s )?([a-z][\w:-]*)/g);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  it('names files of the repository that exist', () => {
    // A changelog names what there was.
    if (document === 'CHANGELOG.md') return;
    const paths = all(text, /`((?:src|test|docs|scripts|bench|examples)\/[\w./-]*)`/g);
    expect(paths.filter((path) => !isThere(path))).toEqual([]);
    const names = all(text, /`([\w-]+(?:\/[\w-]+)*(?:\.slow)?(?:\.test)?\.(?:ts|lua))`/g);
    expect(names.filter((name) => !sources.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
  });
});

it('the sources name pages and anchors that exist', () => {
  const named = sources
    .filter((path) => /^src\/.*\.(ts|lua|js|css)$/.test(path))
    .flatMap((path) => [...read(path).matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)]);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(([, page = '', anchor]) => !isThere(page, anchor)).map(([name]) => name)).toEqual([]);
});

it('a block of commands for operators stops at its first error', () => {
  // Those that no test runs name no language.
  const pages = documents.filter((path) => path.startsWith('docs/runbooks/') || path === 'docs/deploy.md');
  const blocks = pages
    .flatMap((page) => [...read(page).matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)])
    .flatMap(([, language = '', block = '']) => (['', 'sh'].includes(language) ? [block] : []));
  expect(blocks.length).toBeGreaterThan(20);
  for (const block of blocks.filter((each) => each.trim().includes('\n'))) expect(block).toMatch(/^\(set -e\n.*^\)$/ms);
  // Without `-e` redis-cli says that it was refused, and ends as if all were well.
  const lines = blocks.flatMap((block) => block.split('\n'));
  const refusable = lines.filter((line) => /\b(BGSAVE|REPLICAOF|CONFIG SET)\b/.test(line));
  expect(refusable.length).toBeGreaterThan(4);
  for (const line of refusable) expect(line).toContain('redis-cli -e');
});

describe('documents stay short', () => {
  const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

  /** The sentences of a page: of paragraphs and list items, without code blocks, tables and headings. */
  function sentencesOf(markdown: string): string[] {
    const prose = markdown
      .replace(/^ *```.*?^ *```$/gms, '')
      .replace(/^(?:\||#|!\[|<!--).*$/gm, '')
      .replace(/\]\([^)]*\)/g, ']');
    const blocks = prose.split(/\n\s*\n|\n(?= *(?:[-*]|\d+\.) )/);
    return blocks.flatMap((block) => block.replace(/\s+/g, ' ').split(/(?<=[.?!:])(?:\*\*|_)? /));
  }

  it('in words together', () => {
    const listed = execFileSync('git', ['ls-files', '*.md', 'docs/**/*.md'], { cwd: ROOT, encoding: 'utf8' });
    const pages = [...new Set(listed.trim().split('\n'))].filter(
      (path) => (path.startsWith('docs/') || !path.includes('/')) && isThere(path),
    );
    expect(pages.length).toBeGreaterThan(30);
    expect(pages.reduce((sum, path) => sum + wordsOf(read(path)), 0)).toBeLessThanOrEqual(MOST_WORDS);
  });

  it.each<[string, words: number, lines?: number]>([
    ['README.md', 1_150, 150],
    ['docs/use-from-code.md', 1_500],
    ['docs/api.md', 5_200],
  ])('%s in %d words', (path, words, lines = Infinity) => {
    expect(wordsOf(read(path))).toBeLessThanOrEqual(words);
    expect(read(path).split('\n').length).toBeLessThanOrEqual(lines);
  });

  it.each(['README.md', 'docs/guarantees.md', ...namesIn('docs/runbooks').map((name) => `docs/runbooks/${name}`)])(
    'in each sentence of %s',
    (path) => {
      expect(sentencesOf(read(path)).filter((sentence) => wordsOf(sentence) > MOST_WORDS_A_SENTENCE)).toEqual([]);
    },
  );
});

describe('docs/errors.md', () => {
  const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` +\| `(\w+)` +\| (\d) /gm)].map(
    ([, name = '', code = '', exitCode]) => ({ name, code, exitCode: Number(exitCode) }),
  );
  const text = ['src/base/errors.ts', 'src/gateway/gateway.ts'].map(read).join('\n');

  /** The code of a class, or of the class that it extends. */
  function codeOf(name: string): string | undefined {
    const [, parent = '', body = ''] = new RegExp(`class ${name} extends (\\w+) \\{(.*?)^\\}`, 'ms').exec(text) ?? [];
    return parent === 'PayoutError' ? /super\('(\w+)'/.exec(body)?.[1] : codeOf(parent);
  }

  it('lists every error class that is exported', () => {
    const isErrorClass = (value: unknown): boolean =>
      typeof value === 'function' && value.prototype instanceof index.PayoutError;
    const exported = Object.entries(index).flatMap(([name, value]) => (isErrorClass(value) ? [name] : []));
    expect(rows.map(({ name }) => name).sort()).toEqual(exported.sort());
  });

  it.each(rows)('$name has the code $code and ends a command with $exitCode', ({ name, code, exitCode }) => {
    expect(codeOf(name)).toBe(code);
    expect(toExitCode(new index.PayoutError(code as index.ErrorCode, ''))).toBe(exitCode);
  });
});

describe('the settings', () => {
  const rows = new Map(Object.values(SETTINGS).map((row): [string, Setting] => [row.variable, row]));

  it('are in docs/configuration.md and .env.example as `npm run docs` makes them', () => {
    expect(read('docs/configuration.md')).toBe(renderSettingsDoc());
    expect(read('.env.example')).toBe(renderEnvExample());
  });

  it.each([...rows.values()])('$variable is described, and has a default that its own rule accepts', (row) => {
    const lines = renderSettingsDoc().split('\n');
    expect(lines.find((line) => line.startsWith(`- \`${row.variable}\``))).toMatch(/: [A-Z`].*\.$/);
    if ('default' in row) expect(row.rule.safeParse(row.default).success).toBe(true);
  });

  it('in .env.example are an environment with the defaults of the code', () => {
    const set = [...renderEnvExample().matchAll(/^([A-Z]\w*)=(.*)$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ]);
    const environment = Object.fromEntries(set) as Record<string, string>;
    const names = [...rows].filter(([, { secret }]) => secret !== true).map(([name]) => name as VariableName);
    const required = names.filter((name) => 'required' in (rows.get(name) ?? {}));
    expect(readConfig(names, { ...environment, DASHBOARD_USER: '' })).toEqual(
      readConfig(names, Object.fromEntries(required.map((name) => [name, environment[name]]))),
    );
  });
});

describe('the Dockerfile', () => {
  const dockerfile = read('Dockerfile');

  it('has no mistake, copies every script that the build runs, and pins its images by content', () => {
    expect(validate(dockerfile).map(({ message }) => message)).toEqual([]);
    const built = all(scripts['build'] ?? '', /(scripts\/[\w.-]+)/g);
    expect(built.length).toBeGreaterThan(0);
    expect(built.filter((path) => !dockerfile.includes(path))).toEqual([]);
    const images = all(dockerfile, /^FROM (\S+)/gm);
    expect(images).toHaveLength(2);
    for (const image of images) expect(image).toMatch(/:\d+\.\d+\.\d+[\w-]*@sha256:[0-9a-f]{64}$/);
  });

  it('puts `payouts` on PATH, where the built program runs through a link', async () => {
    expect(dockerfile).toContain('ln -s /app/dist/cli/main.js /usr/local/bin/payouts');
    expect(dockerfile).toContain('ENTRYPOINT ["payouts"]');
    const dir = await mkdtemp(join(tmpdir(), 'payouts-path-'));
    try {
      await symlink(findBuiltProgram(), join(dir, 'payouts'));
      const { status, stdout } = spawnSync(process.execPath, [join(dir, 'payouts'), '--version'], { encoding: 'utf8' });
      expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+/) });
      expect(readFileSync(findBuiltProgram(), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
