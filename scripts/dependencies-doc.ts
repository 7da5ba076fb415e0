/** The table of dependencies in docs/architecture.md: which folders of src import each. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { replaceBetween } from './between-marks.js';
import { findTwice } from './find-twice.js';
import { markdownTable } from './markdown-table.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const [BEGIN, END] = ['<!-- dependencies, by `npm run docs` -->\n', '<!-- end of dependencies -->'];

/** @returns the text with the table; a problem for each dependency that nothing imports, or that is installed twice */
export function renderDependencies(text: string): { text: string; problems: readonly string[] } {
  const { dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { dependencies: object };
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
    packages: Parameters<typeof findTwice>[0];
  };
  const names = Object.keys(dependencies);
  const importers = findImporters();
  const foldersOf = (name: string) => [...(importers.get(name.replace(/^@types\//, '')) ?? [])].sort();
  const rows = names.map((name) => [`\`${name}\``, foldersOf(name).join(', ')]);
  return {
    text: replaceBetween(text, BEGIN, END, markdownTable(['package', 'needed by'], rows)),
    problems: [
      ...names
        .filter((name) => foldersOf(name).length === 0)
        .map((name) => `nothing in src imports the dependency ${name}: remove it from package.json`),
      ...findTwice(packages),
    ],
  };
}

/** @returns the folders of src by the package that they import */
function findImporters(): ReadonlyMap<string, ReadonlySet<string>> {
  const importers = new Map<string, Set<string>>();
  for (const file of readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })) {
    if (!/\.c?ts$|\.cjs$/.test(file)) continue;
    const text = readFileSync(`${root}src/${file}`, 'utf8');
    for (const [, name = ''] of text.matchAll(/(?:from |import\(|require\()'((?:@[^/']+\/)?[^./'][^/']*)/g)) {
      const folder = file.split('/')[0] ?? '';
      importers.set(name, (importers.get(name) ?? new Set()).add(folder));
    }
  }
  return importers;
}
