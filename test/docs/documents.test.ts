import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { validate } from 'dockerfile-utils';
import { readConfig, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import { SETTINGS } from '../../src/base/settings.js';
import { toExitCode } from '../../src/cli/context/exit-code.js';
import { readPolicyFile } from '../../src/control/policy/policy-file.js';
import * as index from '../../src/index.js';
import { keyEntry, keyringOf, testKey } from '../control/support/keys.js';
import { folderOfTest } from '../worker/support/close-after-test.js';

/** The documents against the repository: what they refer to exists. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

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

it.each(documents)('%s names links, npm scripts and files that exist', (document) => {
  const text = read(document);
  const broken = all(text, /\]\(([^)\s]+)\)/g).filter((link) => {
    const [file = '', anchor] = link.split('#');
    return !link.includes('://') && !isThere(file === '' ? document : join(dirname(document), file), anchor);
  });
  expect(broken).toEqual([]);
  const named = all(text, /npm run (?:--silent |-s )?([a-z][\w:-]*)/g);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  // A changelog names what there was.
  if (document === 'CHANGELOG.md') return;
  const paths = all(text, /`((?:src|test|docs|scripts|bench|examples)\/[\w./-]*)`/g);
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
  const names = all(text, /`([\w-]+(?:\/[\w-]+)*(?:\.slow)?(?:\.test)?\.(?:ts|lua))`/g);
  expect(names.filter((name) => !sources.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
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
  const blocks = pages.flatMap((page) => all(read(page), /^ *```(?:sh)?\n(.*?)^ *```$/gms));
  expect(blocks.length).toBeGreaterThan(20);
  for (const block of blocks.filter((each) => each.trim().includes('\n'))) expect(block).toMatch(/^\(set -e\n.*^\)$/ms);
  // Without `-e` redis-cli says that it was refused, and ends as if all were well.
  for (const line of blocks.flatMap((block) => block.split('\n')))
    if (/\b(BGSAVE|REPLICAOF|CONFIG SET)\b/.test(line)) expect(line).toContain('redis-cli -e');
});

it('docs/errors.md lists every error class that is exported, with the exit code of its code', () => {
  const text = ['src/base/errors.ts', 'src/gateway/gateway.ts'].map(read).join('\n');
  /** The code of a class, or of the class that it extends. */
  const codeOf = (name: string): string | undefined => {
    const [, parent = '', body = ''] = new RegExp(`class ${name} extends (\\w+) \\{(.*?)^\\}`, 'ms').exec(text) ?? [];
    return parent === 'PayoutError' ? /super\('(\w+)'/.exec(body)?.[1] : codeOf(parent);
  };
  const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` +\| `(\w+)` +\| (\d) /gm)];
  const isErrorClass = (value: unknown): boolean =>
    typeof value === 'function' && value.prototype instanceof index.PayoutError;
  const exported = Object.entries(index).flatMap(([name, value]) => (isErrorClass(value) ? [name] : []));
  expect(rows.map(([, name]) => name).sort()).toEqual(exported.sort());
  for (const [, name = '', code = '', exitCode] of rows) {
    expect([name, codeOf(name)]).toEqual([name, code]);
    expect([name, toExitCode(new index.PayoutError(code as index.ErrorCode, ''))]).toEqual([name, Number(exitCode)]);
  }
});

it('.env.example is an environment with the defaults of the code, which their own rules accept', () => {
  const rows = new Map(Object.values(SETTINGS).map((row): [string, Setting] => [row.variable, row]));
  for (const [name, row] of rows)
    if ('default' in row) expect([name, row.rule.safeParse(row.default).success]).toEqual([name, true]);
  const set = [...read('.env.example').matchAll(/^([A-Z]\w*)=(.*)$/gm)];
  const environment = Object.fromEntries(set.map(([, name = '', value = '']) => [name, value]));
  const names = [...rows].filter(([, { secret }]) => secret !== true).map(([name]) => name as VariableName);
  const required = names.filter((name) => 'required' in (rows.get(name) ?? {}));
  expect(readConfig(names, { ...environment, DASHBOARD_USER: '' })).toEqual(
    readConfig(names, Object.fromEntries(required.map((name) => [name, environment[name]]))),
  );
});

it('the Dockerfile has no mistake, copies what the build runs, and pins its images by content', () => {
  const dockerfile = read('Dockerfile');
  expect(validate(dockerfile).map(({ message }) => message)).toEqual([]);
  const built = all(scripts['build'] ?? '', /(scripts\/[\w.-]+)/g);
  expect(built.length).toBeGreaterThan(0);
  expect(built.filter((path) => !dockerfile.includes(path))).toEqual([]);
  const images = all(dockerfile, /^FROM (\S+)/gm);
  expect(images).toHaveLength(2);
  for (const image of images) expect(image).toMatch(/:\d+\.\d+\.\d+[\w-]*@sha256:[0-9a-f]{64}$/);
});

it('the policies of the examples load without a warning, with every person in the keyring, and docs/control.md has each', async () => {
  const dir = await folderOfTest('policies');
  // The folder of a checkout may be one that others can write.
  cpSync(join(ROOT, 'examples'), dir, { recursive: true, mode: 0 });
  const persons = ['alice', 'bob', 'carol', 'dora', 'emil', 'fay', 'gus'];
  const keyring = keyringOf(
    ...persons.map((person, index) => keyEntry(testKey(index + 1), { name: person, role: 'approver', person })),
  );
  const shop = 'policies/shop.yaml';
  for (const name of ['policy.yaml', ...readdirSync(join(dir, 'policies')).map((each) => `policies/${each}`)]) {
    if (!name.endsWith('.yaml')) continue;
    // That of a shop needs no keyring.
    const found = readPolicyFile(join(dir, name), { platformId: 4242, keyring: name === shop ? undefined : keyring });
    expect({ name, ...found }).toMatchObject({ name, warnings: [], policy: { uncovered: 'hold' } });
    expect(read('docs/control.md')).toContain(`(../examples/${name})`);
  }
});
